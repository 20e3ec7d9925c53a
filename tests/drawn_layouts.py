"""Random shapes and memory layouts, drawn from a seed."""

from __future__ import annotations

import math
from random import Random

Sizes = tuple[int, ...]


def shape(random: Random, elements: int) -> Sizes:
    """Draw a shape of rank 1 to 8 with a limited number of elements, sometimes none."""
    rank = random.randint(1, 8)
    sizes = [1] * rank
    for axis in random.sample(range(rank), rank):
        room = elements // math.prod(sizes)
        sizes[axis] = random.randint(1, min(room, random.choice((4, 4, 9, 70, elements))))
    if random.random() < 0.02:
        sizes[random.randrange(rank)] = 0
    return tuple(sizes)


def strides(
    random: Random, sizes: Sizes, itemsize: int, *, output: bool, reverse: bool = True
) -> Sizes:
    """Draw strides in bytes.

    The axes are in any order, each run is followed by a gap of elements or of bytes or padded to a
    multiple of its length, an axis may be reversed, and an input's axis may be broadcast.
    """
    order = list(reversed(range(len(sizes))))  # the fastest axis first
    if random.random() < 0.7:
        random.shuffle(order)
    padding = random.choice(("none", "gaps", "odd gaps", "pitches"))
    result = [0] * len(sizes)
    run = itemsize
    for axis in order:
        if padding == "gaps":
            run += itemsize * random.randint(0, 2)
        if padding == "odd gaps" and run > itemsize:
            run += random.randint(0, 3)
        if padding == "pitches" and random.random() < 0.4:
            run *= random.choice((2, 3, 4, 8))
        if not output and random.random() < 0.1:
            continue
        result[axis] = -run if reverse and random.random() < 0.1 else run
        run *= max(sizes[axis], 1)
    return tuple(result)


def reach(sizes: Sizes, steps: Sizes, itemsize: int) -> int:
    """Return the extent in bytes."""
    return itemsize + sum(
        max(size - 1, 0) * abs(step) for size, step in zip(sizes, steps, strict=True)
    )
