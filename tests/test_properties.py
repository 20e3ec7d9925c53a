"""Properties over random shapes, strides and values, found or refuted by Hypothesis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import reference
import samples
from crossing import packed
from hypothesis import given
from hypothesis.extra import numpy as hnp
from layouts import Placed, padded_strides
from operators import normalize
from reference import FLOATS, INTEGERS, assert_same_bits, assert_same_values, assert_within
from variants import on_every_variant

import dmlops
from dmlops import ScaleBias

Array = npt.NDArray[Any]
floats = st.sampled_from(FLOATS)


@st.composite
def shapes(draw: st.DrawFn, min_rank: int = 0) -> tuple[int, ...]:
    """Shapes of up to 8 axes and some 4000 elements, long and short axes mixed."""
    rank = draw(st.integers(min_rank, 8))
    shape, room = [], 4000
    for _ in range(rank):
        size = draw(
            st.sampled_from((0, 1, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 1025))
        )
        size = min(size, room)
        room = max(room // max(size, 1), 1)
        shape.append(size)
    return tuple(draw(st.permutations(shape)))


@st.composite
def placements(
    draw: st.DrawFn, shape: tuple[int, ...], dtype: str, writable: bool = False
) -> Placed:
    """A view of any order, gaps, signs and misalignment; unless writable, zero strides too."""
    rank = len(shape)
    itemsize = np.dtype(dtype).itemsize
    order = draw(st.permutations(range(rank)))
    gaps = draw(st.lists(st.sampled_from((0, 0, 0, 1, 2, 4, 8, 60)), min_size=rank, max_size=rank))
    signs = draw(st.lists(st.sampled_from((1, 1, -1)), min_size=rank, max_size=rank))
    zeros = [False] * rank
    if not writable:
        zeros = draw(
            st.lists(st.sampled_from((False,) * 4 + (True,)), min_size=rank, max_size=rank)
        )
    kept = [1 if zero else size for zero, size in zip(zeros, shape, strict=True)]
    strides = padded_strides(kept, itemsize, order, lambda position: gaps[position])
    strides = tuple(0 if zeros[i] else signs[i] * strides[i] for i in range(rank))
    return Placed(shape, dtype, strides, draw(st.sampled_from((0, 0, 1, itemsize))))


@st.composite
def inputs(draw: st.DrawFn, dtype: str, min_rank: int = 0, spread: float | None = None) -> Array:
    """A strided view of any bits, or of values in a range with special values among them."""
    shape = draw(shapes(min_rank))
    placed = draw(placements(shape, dtype))
    seed = draw(st.integers(0, 2**20))
    if spread is None:
        return placed.fill(samples.any_bits(shape, dtype, seed)).view
    values = samples.uniform(shape, dtype, -spread, spread, seed)
    if values.size:
        special = draw(st.lists(st.sampled_from(samples.specials(dtype).tolist()), max_size=3))
        for i, value in enumerate(special):
            values.flat[(seed + 7 * i) % values.size] = value
    return placed.fill(values).view


def expect(
    data: st.DataObject, operator: Callable[..., Array], x: Array, check: Callable[[Array], None]
) -> None:
    """Check the result on x; expect its bits for packed, in-place and strided calls."""
    out = data.draw(placements(x.shape, x.dtype.name, writable=True))

    def check_calls() -> None:
        result = operator(x)
        check(result)
        dense = packed(x)
        assert_same_bits(operator(dense), result, "packed")
        assert_same_bits(operator(dense, out=dense), result, "in place")
        out.clear()
        operator(x, out=out.view)
        assert_same_bits(out.view, result, "into out")
        out.assert_canaries()

    on_every_variant(check_calls)


@given(data=st.data(), dtype=st.sampled_from(INTEGERS))
def test_clip_of_integers(data: st.DataObject, dtype: str) -> None:
    x = data.draw(inputs(dtype))
    bounds = st.none() | st.integers(-(2**65), 2**65) | st.integers(-300, 300)
    low, high = data.draw(bounds), data.draw(bounds)
    numbers = st.floats(width=32)
    scale = data.draw(st.none() | st.tuples(numbers, numbers))

    def operator(x: Array, *, out: Array | None = None) -> Array:
        return dmlops.clip(x, low, high, scale_bias=scale and ScaleBias(*scale), out=out)

    expected = reference.clip(packed(x), low, high, scale)
    expect(data, operator, x, lambda result: assert_same_values(result, expected))


@given(data=st.data(), dtype=floats)
def test_clip_of_floats(data: st.DataObject, dtype: str) -> None:
    x = data.draw(inputs(dtype))
    low, high = (data.draw(st.none() | st.floats() | st.floats(-9, 9)) for _ in range(2))
    numbers = st.floats(width=32)
    scale = data.draw(st.none() | st.tuples(numbers, numbers))

    def operator(x: Array, *, out: Array | None = None) -> Array:
        return dmlops.clip(x, low, high, scale_bias=scale and ScaleBias(*scale), out=out)

    expected = reference.clip(packed(x), low, high, scale)

    def check(result: Array) -> None:
        assert_same_values(result, expected)
        assert_same_bits(dmlops.clip(result, low, high), result, "clipping again changes nothing")

    expect(data, operator, x, check)


@given(data=st.data(), dtype=floats, alpha=st.floats(width=32), beta=st.floats(width=32))
def test_hard_sigmoid(data: st.DataObject, dtype: str, alpha: float, beta: float) -> None:
    x = data.draw(inputs(dtype, spread=data.draw(st.sampled_from((None, 5.0)))))

    def operator(x: Array, *, out: Array | None = None) -> Array:
        return dmlops.hard_sigmoid(x, alpha, beta, out=out)

    expected = reference.hard_sigmoid(packed(x), alpha, beta)

    def check(result: Array) -> None:
        assert_same_values(result, expected)
        assert not ((result < 0) | (result > 1)).any()

    expect(data, operator, x, check)


@given(data=st.data(), dtype=floats, epsilon=st.floats(2.0**-20, 8, width=32))
def test_batch_normalization(data: st.DataObject, dtype: str, epsilon: float) -> None:
    x = data.draw(inputs(dtype, spread=data.draw(st.sampled_from((1.0, 1000.0)))))
    values = []
    for i, (low, high) in enumerate(((-9.0, 9.0), (0.0, 9.0), (-3.0, 3.0), (-9.0, 9.0))):
        shape = tuple(data.draw(st.sampled_from((1, size))) for size in x.shape)
        placed = data.draw(placements(shape, dtype))
        values.append(placed.fill(samples.uniform(shape, dtype, low, high, seed=i)).view)

    def operator(x: Array, *, out: Array | None = None) -> Array:
        return normalize(x, values, epsilon, out)

    expected = reference.batch_normalization(x, *values, epsilon=epsilon)
    expect(data, operator, x, lambda result: assert_within(result, *expected))


@given(data=st.data(), dtype=floats)
def test_log_softmax(data: st.DataObject, dtype: str) -> None:
    x = data.draw(inputs(dtype, min_rank=1, spread=data.draw(st.sampled_from((1.0, 30.0, 1000.0)))))
    axes = data.draw(st.lists(st.integers(0, x.ndim - 1), min_size=1, unique=True))

    def operator(x: Array, *, out: Array | None = None) -> Array:
        return dmlops.log_softmax(x, axes, out=out)

    expected = reference.log_softmax(x, axes)
    # An error of n ulp of ln(p) changes p by up to n eps p |ln(p)|; n is 2 in float32, and 0.52 in
    # float16. The sum of p |ln(p)|, the entropy, is at most ln(4000) < 8.3.
    tolerance = 8.3 * (0.52 if dtype == "float16" else 2) * float(np.finfo(dtype).eps)

    def check(result: Array) -> None:
        assert_within(result, *expected)
        with np.errstate(all="ignore"):
            sums = np.exp(result.astype(np.float64)).sum(axis=tuple(axes), keepdims=True)
        groups = np.broadcast_to(sums, x.shape)
        assert (np.isnan(groups) | (np.abs(groups - 1) < tolerance)).all(), "probabilities sum to 1"

    expect(data, operator, x, check)


@given(
    values=hnp.arrays(np.float32, st.integers(1, 70), elements=st.floats(-80, 80, width=32)),
    shift=st.integers(-(2**12), 2**12),
)
def test_log_softmax_of_shifted_values(values: Array, shift: int) -> None:
    grid = np.round(values * 4) * np.float32(0.25)  # quarters: the shift is exact
    shifted = (grid + np.float32(shift)).astype(np.float32)
    exact, allowed = reference.log_softmax(grid, (0,))

    def check() -> None:
        for x in (grid, shifted):
            assert_within(dmlops.log_softmax(x), exact, allowed)
        assert not math.isnan(float(dmlops.log_softmax(grid)[0]))

    on_every_variant(check)
