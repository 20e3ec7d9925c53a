"""Digests of all operators' results on fixed recipes of inputs; as a program, prints them as JSON.

The recipes are integer arithmetic (see samples), so that other programs can repeat them. Equal
digests mean equal bits: of instruction sets, thread counts, compilers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import samples
from layouts import BY_NAME, LARGE
from operators import normalize
from reference import FLOATS, INTEGERS

import dmlops

Array = npt.NDArray[Any]

LENGTHS = (1, 3, 7, 16, 31, 33, 64, 65, 100, 127, 129, 257, 1000, 1025, 4099)
VIEWS = ("c", "transposed", "negative", "every-second", "unaligned", "shuffled-gaps", "zero-last")
PARAMETERS = ((0.2, 0.5), (1 / 6, 0.5), (-1e-3, 1e-8), (3e38, -1e38))


def _elementwise(dtype: str) -> Iterator[tuple[str, Array]]:
    """Results on any bit pattern (every special value among them) and near the bounds."""
    scale = dmlops.ScaleBias(0.3, -0.7)
    for seed, count in enumerate((*LENGTHS, 70_001)):
        x = samples.any_bits((count,), dtype, seed)
        yield "clip", dmlops.clip(x, 3, 77)
        yield "clip scaled", dmlops.clip(x, -5, 1000, scale_bias=scale)
        if dtype in FLOATS:
            near = samples.uniform((count,), dtype, -4, 4, seed)
            for alpha, beta in PARAMETERS:
                yield "hard_sigmoid", dmlops.hard_sigmoid(x, alpha, beta)
                yield "hard_sigmoid", dmlops.hard_sigmoid(near, alpha, beta)


def _normalizations(dtype: str) -> Iterator[tuple[str, Array]]:
    for name in VIEWS:
        for shape in ((3, 5, 37), (2, 33, 66), (1, 7, 1), (4, 3, 2, 2, 5)):
            channels = [size if axis == 1 else 1 for axis, size in enumerate(shape)]
            x = BY_NAME[name].view(samples.uniform(shape, dtype, -50, 50))
            for sizes in (channels, shape):
                values = [samples.uniform(sizes, dtype, 0.1, 3, seed) for seed in range(4)]
                yield "batch_normalization", dmlops.batch_normalization(x, *values)
    for seed, count in enumerate(LENGTHS):
        x, *values = [samples.any_bits((3, count), dtype, 5 * seed + i) for i in range(5)]
        yield "batch_normalization any bits", normalize(x, values, 1e-3)


def _log_softmaxes(dtype: str) -> Iterator[tuple[str, Array]]:
    for seed, count in enumerate((*LENGTHS, 70_001)):
        for spread in (0.1, 20.0, 300.0):
            x = samples.uniform((3, count), dtype, -spread, spread, seed)
            yield "log_softmax", dmlops.log_softmax(x)
            yield "log_softmax first", dmlops.log_softmax(x.T, 0)
            yield "log_softmax beside", dmlops.log_softmax(x, 0)
        yield (
            "log_softmax any bits",
            dmlops.log_softmax(samples.any_bits((40, count), dtype, seed), 0),
        )
    for name in VIEWS:
        for axes in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)):
            x = BY_NAME[name].view(samples.uniform((5, 18, 37), dtype, -9, 9))
            yield f"log_softmax {axes}", dmlops.log_softmax(x, axes)


def _large(dtype: str) -> Iterator[tuple[str, Array]]:
    """Enough work for every thread, in shapes that split unevenly."""
    x = samples.uniform((LARGE,), dtype, -9, 9)
    yield "clip large", dmlops.clip(x, -3, 3)
    yield "clip large reversed", dmlops.clip(x[::-1], -3, 3)
    yield "hard_sigmoid large", dmlops.hard_sigmoid(x)
    table = x[: 1021 * 1027].reshape(1021, 1027)
    values = [samples.uniform((1, 1027), dtype, 0.1, 3, seed) for seed in range(4)]
    for name, view in (("rows", table), ("columns", np.array(table, order="F"))):
        yield f"batch_normalization large {name}", dmlops.batch_normalization(view, *values)
        yield f"log_softmax large {name}", dmlops.log_softmax(view)
        yield f"log_softmax large {name}, first", dmlops.log_softmax(view, 0)
    yield "log_softmax large, one group", dmlops.log_softmax(x)


def digests() -> dict[str, str]:
    """Return name -> SHA-256 over all the results of that name, dtype by dtype."""
    running: dict[str, Any] = {}
    recipes = [
        (dtype, recipe) for dtype in FLOATS for recipe in (_normalizations, _log_softmaxes, _large)
    ]
    for dtype, recipe in [(dtype, _elementwise) for dtype in FLOATS + INTEGERS] + recipes:
        for name, result in recipe(dtype):
            digest = running.setdefault(f"{name} {dtype}", hashlib.sha256())
            digest.update(np.ascontiguousarray(result).tobytes())
    return {name: digest.hexdigest() for name, digest in running.items()}


if __name__ == "__main__":
    threads = dmlops.get_num_threads()
    print(json.dumps({"isa": dmlops.isa(), "threads": threads, "digests": digests()}, indent=1))
