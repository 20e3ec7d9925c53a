"""Checks that every operator must pass: pairs of layouts, and sizes with every remainder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from layouts import LAYOUTS, OUT_LAYOUTS, SIZES, Layout
from reference import assert_same_bits

Array = npt.NDArray[Any]


class Operator(Protocol):
    """An operator with its parameters bound: one array in, one array out."""

    def __call__(self, x: Array, /, *, out: Array | None = None) -> Array: ...


def packed(view: Array) -> Array:
    """Return a C-contiguous copy (of any rank, unlike ascontiguousarray, which has no rank 0)."""
    return np.array(view, order="C", copy=True)


def cross_layouts(
    operator: Operator,
    values: Array,
    context: object,
    inputs: Iterable[Layout] = LAYOUTS,
    outputs: Iterable[Layout] = OUT_LAYOUTS,
) -> None:
    """Expect the packed form's bits from every pair of layouts, and no byte written elsewhere."""
    targets = [(target, target.place(values.shape, values.dtype)) for target in outputs]
    for layout in inputs:
        placed = layout.place(values.shape, values.dtype).fill(values)
        placed.view.flags.writeable = False
        before = packed(placed.view)
        expected = operator(before)
        where = f"{context}, shape {values.shape}, input {layout}"
        assert_same_bits(operator(placed.view), expected, f"{where}, new result")
        for target, out in targets:
            here = f"{where}, out {target}"
            out.clear()
            assert operator(placed.view, out=out.view) is out.view, here
            assert_same_bits(out.view, expected, here)
            out.assert_canaries(here)
        assert_same_bits(placed.view, before, f"{where}: the input itself")
        placed.assert_canaries(f"{where}: the input's surroundings")


def cross_sizes(
    operator: Operator,
    values: Array,
    expected: Array,
    check: Callable[[Array, Array, object], None],
) -> None:
    """Apply an elementwise operator to runs of every size, from starts of several alignments."""
    itemsize = values.dtype.itemsize
    for size in SIZES:
        for start in (0, 1, 3):
            for step in (1, 2, -1) if size < 300 else (1,):
                stop = start + size * abs(step)
                run = values[start:stop][::step][:size]
                buffer = np.zeros(size + 2, values.dtype)
                out = buffer[1:-1]
                operator(run, out=out)
                context = f"size {size}, start {start * itemsize} bytes, step {step}"
                check(out, expected[start:stop][::step][:size], context)
                assert not buffer[[0, -1]].any(), f"{context}: wrote beside the output"
