"""Random cells: each layout is drawn from a seed and the number of its cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from dmlops._bench.cells import DTYPES, FLOATS, Cell, Layout, clip, normalization, with_arrays
from dmlops._bench.problem import Problem, View, permutation

USUAL = ("clip", "hard_sigmoid", "batch_normalization", "log_softmax")  # of published figures
STATISTICS = {  # the further tensors, of the sizes of the statistics
    "batch_normalization_training": ("scale", "bias"),
    "batch_normalization_grad": ("mean", "variance", "scale"),
    "batch_normalization_training_grad": ("mean", "variance", "scale"),
}
OPERATORS = (
    *USUAL,
    *("softmax", "hardmax", "mean_variance_normalization", *STATISTICS),
    *("parameterized_relu", "relu_grad", "clip_grad", "swish", "hard_swish"),
)
RANKS = (1, 6)
BITS = (14.0, 20.0)  # of the number of elements
STEPS = (2, 3, 4)
LARGEST_GAP = 16
LARGEST_BASE = 1 << 23  # elements, padding and skipped ones included: 64 MiB of 64-bit integers


def cells(number: int, seed: int, only: list[str], operators: Sequence[str] = USUAL) -> list[Cell]:
    """Return the cells 0 to `number` - 1 of a seed, filtered by the texts in `only`.

    A text is a cell's number or name, or part of "operator/dtype" or of a kind of layout. A number
    may be `number` or more, since cells do not depend on how many there are.
    """
    if not only:
        return list(drawn(range(number), seed, operators))
    numbers = [int(text) for text in only if text.isdecimal()]
    return [
        cell
        for index, cell in enumerate(drawn(range(max([number - 1, *numbers]) + 1), seed, operators))
        if (index < number or index in numbers) and any(named(cell, text) for text in only)
    ]


def named(cell: Cell, text: str) -> bool:
    """Return True if a text names a cell."""
    _, _, number = cell.layout.partition(":")
    parts = (f"{cell.operator}/{cell.dtype}", *cell.kinds)
    if text.isdecimal():  # not part of a name, such as f32
        return int(text) == int(number)
    return text in (cell.layout, cell.name) or any(text in part for part in parts)


def drawn(numbers: range, seed: int, operators: Sequence[str]) -> Iterator[Cell]:
    """Yield the cells with these numbers."""
    for number in numbers:
        random = Random(f"{seed}:{number}")
        operator = random.choice(operators)
        # Half of clip's cells are floating point, as all of the other operators' are.
        integers = operator == "clip" and random.random() < 0.5
        dtype = random.choice([name for name in DTYPES if (name in FLOATS) != integers])
        layout, kinds = draw(random)
        axis = random.choice([d for d, size in enumerate(layout.result) if size > 1])
        cell = posed(operator, dtype, f"{seed}:{number}", layout, axis)
        yield replace(cell, make=partial(beside_dense_copy, cell.make), kinds=kinds)


def posed(operator: str, dtype: str, name: str, layout: Layout, axis: int) -> Cell:
    """Return the cell of an operator; `axis` is of the parameters or of the groups."""
    if operator == "clip":
        return clip(dtype, name, layout)
    if operator == "batch_normalization":
        return normalization(dtype, name, layout, (axis,), relu=False)
    numbers, arrays = arguments(operator, layout.result, axis)
    return with_arrays(operator, dtype, name, layout, numbers, **arrays)


def arguments(
    operator: str, shape: tuple[int, ...], axis: int
) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    """Return the numbers of an operator, and the shapes of its further tensors."""
    along = tuple(size if d == axis else 1 for d, size in enumerate(shape))
    if operator in STATISTICS:  # of a value along the axis; of a vector, a single one
        own = along if math.prod(shape) > shape[axis] else (1,) * len(shape)
        axes = tuple(d for d, size in enumerate(own) if size == 1)
        arrays = {"gradient": shape} if operator.endswith("grad") else {}
        arrays |= dict.fromkeys(STATISTICS[operator], own)
        return {"axes": axes, "use_mean": True, "epsilon": 1e-5}, arrays
    few: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
        "hard_sigmoid": ({"alpha": 1 / 6, "beta": 0.5}, {}),
        "mean_variance_normalization": (
            {"axes": (axis,), "use_mean": True, "epsilon": 1e-5},
            {"scale": along, "bias": along},
        ),
        "parameterized_relu": ({}, {"slope": along}),
        "relu_grad": ({}, {"gradient": shape}),
        "clip_grad": ({"min": -1.0, "max": 1.0}, {"gradient": shape}),
        "swish": ({}, {}),
        "hard_swish": ({"alpha": 1 / 6, "beta": 0.5}, {}),
    }
    return few.get(operator, ({"axes": (axis,)}, {}))  # by default the softmax family


def beside_dense_copy(make: Callable[[], Problem]) -> Problem:
    """Return a problem whose roofline is a dense copy of its output's size."""
    problem = make()
    return replace(problem, copied=problem.output_base.nbytes)


def draw(random: Random) -> tuple[Layout, tuple[str, ...]]:
    """Return a layout and its kinds. The input's axes are drawn in the order of memory first."""
    while True:
        sizes = shape(random)
        long = [d for d, size in enumerate(sizes) if size > 1]
        broadcast = some(random, long, 0.15, 0.05)
        long = [d for d in long if d not in broadcast]
        steps = {d: random.choice(STEPS) for d in some(random, long, 0.3, 0.1)}
        reverse = some(random, long, 0.15)
        padded = some(random, long[1:], 0.2, 0.1)  # no gap follows the outermost axis
        order = list(range(len(sizes)))
        if random.random() < 0.5:
            random.shuffle(order)
        same_order = random.random() < 0.5

        base, slices = [], []
        for d, size in enumerate(sizes):
            step = steps.get(d, 1)
            extent = 1 if d in broadcast else size * step
            gap = random.randint(1, min(LARGEST_GAP, extent)) if d in padded else 0
            base.append(extent + gap)
            if d in reverse:
                slices.append(slice((size - 1) * step, None, -step))
            else:
                slices.append(slice(None, extent if gap else None, step if step > 1 else None))
        if math.prod(base) <= LARGEST_BASE:
            break

    cut = any(part != slice(None) for part in slices)
    seen = tuple(sizes[d] for d in order) if broadcast else ()
    view = View(tuple(slices) if cut else (), permutation((), tuple(order)), seen)
    moved = [d for d in order if sizes[d] > 1] != [d for d, size in enumerate(sizes) if size > 1]
    layout = Layout(tuple(base), view, same_order)
    kinds = [f"step {step}" for step in sorted(set(steps.values()))]
    kinds += ["reversed"] * bool(reverse) + ["padded"] * bool(padded)
    kinds += ["broadcast"] * bool(broadcast)
    if moved:
        kinds.append("permuted, same order" if same_order else "permuted, output dense")
    return layout, tuple(kinds) or ("dense",)


def shape(random: Random) -> tuple[int, ...]:
    """Return a shape. Its number of elements and its sizes are uniform in their logarithms."""
    bits = random.uniform(*BITS)
    cuts = sorted(random.uniform(0, bits) for _ in range(random.randint(*RANKS) - 1))
    sizes = [
        round(2 ** (after - before))
        for before, after in zip([0.0, *cuts], [*cuts, bits], strict=True)
    ]
    largest = sizes.index(max(sizes))  # compensates for the rounding of the other sizes
    sizes[largest] = max(1, int(2**bits * sizes[largest] / math.prod(sizes)))
    return tuple(sizes)


def some(random: Random, axes: list[int], one: float, two: float = 0.0) -> list[int]:
    """Return one or two of the axes, with these probabilities, or none."""
    (count,) = random.choices((0, 1, 2), (1 - one - two, one, two))
    return random.sample(axes, min(count, len(axes)))
