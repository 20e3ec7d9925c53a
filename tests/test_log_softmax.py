"""log_softmax: accuracy relative to the result, and every set of axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import samples
from crossing import packed
from layouts import BY_NAME, LARGE, LAYOUTS, SHAPES, SIZES
from reference import EXAMPLE, FLOATS, LOG_SOFTMAX, assert_same_bits, assert_within
from variants import Extent

import dmlops

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]


def check(x: Array, axes: int | Sequence[int] = -1, context: object = "") -> Array:
    """Expect the reference's values within its bound; return the result."""
    result = dmlops.log_softmax(x, axes)
    assert result.dtype == x.dtype
    assert_within(result, *reference.log_softmax(x, axes), f"{context} axes {axes}")
    return result


def subsets(rank: int) -> Iterator[tuple[int, ...]]:
    for count in range(1, rank + 1):
        yield from itertools.combinations(range(rank), count)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axes", LOG_SOFTMAX, ids=str)
def test_published_values(dtype: str, axes: tuple[int, ...]) -> None:
    x = np.array(EXAMPLE, dtype)
    expected = np.array(LOG_SOFTMAX[axes]).reshape(2, 2, 2)
    exact, allowed = reference.log_softmax(x, axes)
    np.testing.assert_allclose(exact, expected, rtol=1e-14, atol=1e-39)
    assert_within(dmlops.log_softmax(x, axes), expected, allowed + 1e-39)


def test_by_hand() -> None:
    x = np.zeros((2, 4), np.float32)
    assert (dmlops.log_softmax(x) == np.float32(-math.log(4))).all()
    assert (dmlops.log_softmax(x, 0) == np.float32(-math.log(2))).all()
    assert (dmlops.log_softmax(x, (0, 1)) == np.float32(-math.log(8))).all()
    assert (dmlops.log_softmax(x[:, :1]) == 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_every_set_of_axes(dtype: str, layout: Any) -> None:
    for shape in [shape for shape in SHAPES if 0 < len(shape) <= 5] + [(3, 4, 5, 6)]:
        x = layout.view(samples.uniform(shape, dtype, -8, 8))
        for axes in subsets(len(shape)):
            result = check(x, axes, f"{layout} {shape}")
            assert_same_bits(
                result, dmlops.log_softmax(packed(x), axes), f"{layout} {shape} {axes}"
            )


@pytest.mark.parametrize("dtype", FLOATS)
def test_axes_of_rank_8(dtype: str) -> None:
    shape = (2, 3, 2, 1, 2, 3, 2, 3)
    x = samples.uniform(shape, dtype, -8, 8)
    odd = BY_NAME["shuffled-gaps"].view(x)
    for axes in itertools.islice(subsets(8), 0, None, 2):
        assert_same_bits(dmlops.log_softmax(odd, axes), check(x, axes), axes)


def test_axes_in_any_order_and_negative() -> None:
    x = samples.uniform((3, 4, 5, 6), np.float32)
    for axes in subsets(4):
        expected = dmlops.log_softmax(x, axes)
        for order in itertools.permutations(axes):
            assert_same_bits(dmlops.log_softmax(x, order), expected, order)
            negative = [axis - 4 if i % 2 else axis for i, axis in enumerate(order)]
            assert_same_bits(dmlops.log_softmax(x, negative), expected, negative)
    for axis in range(4):
        assert_same_bits(dmlops.log_softmax(x, axis), dmlops.log_softmax(x, [axis]))
        assert_same_bits(dmlops.log_softmax(x, axis - 4), dmlops.log_softmax(x, np.int64(axis)))
    assert_same_bits(dmlops.log_softmax(x), dmlops.log_softmax(x, axes=3))


@pytest.mark.parametrize("dtype", FLOATS)
def test_sizes_of_groups(dtype: str) -> None:
    for size in SIZES:
        rows = 5 if size < 300 else 2
        x = samples.uniform((rows, size), dtype, -20, 20, seed=size)
        last = check(x, 1, f"group of {size}, last axis")
        assert_same_bits(
            dmlops.log_softmax(x[:, ::-1], 1), dmlops.log_softmax(packed(x[:, ::-1]), 1)
        )
        if size:
            assert_same_bits(last[:1], dmlops.log_softmax(x[:1], 1), "each row by itself")
        first = check(packed(x.T), 0, f"group of {size}, first axis")
        assert_same_bits(first.T, last, f"group of {size}: the axis's place changes nothing")
        assert_same_bits(dmlops.log_softmax(x.T, 0).T, last, f"group of {size}: a view of the same")


@pytest.mark.parametrize("dtype", FLOATS)
def test_sizes_beside_the_group(dtype: str) -> None:
    """Groups along an axis other than the last: enough columns to fill blocks, and a remainder."""
    for size, group in itertools.product(SIZES[: SIZES.index(513)], (1, 2, 7, 66)):
        x = samples.uniform((2, group, size), dtype, -20, 20, seed=size)
        result = check(x, 1, f"{size} groups of {group} side by side")
        moved = packed(x.swapaxes(1, 2))
        assert_same_bits(result.swapaxes(1, 2), dmlops.log_softmax(moved, 2), f"{size} of {group}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_large(dtype: str, extent: Extent) -> None:
    for shape in extent.of(((1, LARGE), (3, 349_526), (1031, 1019), (LARGE // 3, 3)), 2):
        x = samples.uniform(shape, dtype, -20, 20)
        result = check(x, 1, shape)
        transposed = dmlops.log_softmax(packed(x.T), 0)
        assert_same_bits(transposed.T, result, f"{shape} transposed")
    image = samples.uniform((2, 21, 150, 170), dtype, -20, 20)
    result = check(image, 1, "classes of pixels")
    last = packed(image.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    assert_same_bits(dmlops.log_softmax(last, 1), result, "channels last")
    check(image, (2, 3), "pixels of classes")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [10, 1000, 100_000])
def test_sums_keep_their_digits(dtype: str, count: int) -> None:
    check(np.zeros((1, count), dtype), context="equal")
    check(samples.uniform((2, count), dtype, 0, 2.0**-10), context="nearly equal")
    check(samples.uniform((2, count), dtype, -0.5, 0.5), context="about 1")
    check(samples.uniform((2, count), dtype, 0, 60000), context="far apart")
    check(samples.uniform((2, count), dtype, 2000, 2001), context="a large offset")
    growing = (np.arange(count) * (16 / count)).astype(dtype)
    check(np.stack([growing, growing[::-1]]), context="growing and falling")
    check(
        np.stack([growing, growing[::-1]], axis=1), 0, context="growing and falling, side by side"
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("group", [2, 3, 17, 64, 65, 100, 129])
def test_one_dominates_at_every_position(dtype: str, group: int) -> None:
    """The result of the dominating element, -ln(1 + s) for small s, has a small relative error."""
    for lead in (1, 3, 5, 9, 12, 17, 25, 40, 80, 100, 110, 300):
        x = samples.uniform((group, group), dtype, -1, 0)
        np.fill_diagonal(x, lead)
        last = check(x, 1, f"lead {lead}")
        assert_same_bits(check(packed(x.T), 0, f"lead {lead}").T, last, f"lead {lead}")
        assert (np.diagonal(last) <= 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("group", [257, 1000, 4099, 100_000])
def test_one_of_many_dominates(dtype: str, group: int) -> None:
    """Results from -0.1 to the smallest of the type are within 8 ulp."""
    end = 16 if dtype == "float16" else 85  # the result is about -e^-lead
    leads = np.linspace(2.5, end, 6 if group > 5000 else 40)
    x = samples.uniform((leads.size, group), dtype, -1, 0, seed=group)
    places = np.arange(leads.size) * (group - 1) // (leads.size - 1)
    x[np.arange(leads.size), places] = (leads + math.log(group)).astype(dtype)
    last = check(x, 1, f"group of {group}")
    dominating = last[np.arange(leads.size), places]
    assert ((dominating < 0) & (dominating > -0.1)).all()
    assert_same_bits(check(packed(x.T), 0, f"group of {group}").T, last, "side by side")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("group", [45, 127, 128, 4096])
def test_one_dominates_many_equals(dtype: str, group: int) -> None:
    """All additions of a small sum, of one term and smaller, equal ones, round in one direction."""
    first = np.arange(8, 12 if dtype == "float16" else 30, 0.5)
    second = np.arange(1, 8, 0.5)
    groups = np.full((first.size, second.size, group), 0.75, dtype)  # at 0: powers of two
    groups[..., 1] += second
    groups[..., 0] += first[:, None] + second
    x = groups.reshape(-1, group)
    last = check(x, 1, f"group of {group}")
    assert_same_bits(check(packed(x.T), 0, f"group of {group}").T, last, "side by side")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("group", [127, 128, 1000, 1024, 1025])
def test_many_equals_at_every_height(dtype: str, group: int) -> None:
    """Plain sums of e^x must not exceed float32's range."""
    heights = np.concatenate([np.arange(-70, -55), np.arange(25, 50)])
    x = np.repeat(heights.astype(dtype)[:, None], group, axis=1)
    last = check(x, 1, f"group of {group}")
    assert_same_bits(check(packed(x.T), 0, f"group of {group}").T, last, "side by side")


@pytest.mark.parametrize("group", [128, 1000, 1024, 2000])
def test_float16_is_rounded_once(group: int, extent: Extent) -> None:
    """All additions of equal terms to the maximum's lane round in one direction."""
    rests = np.array([0.03, 0.05, 0.07, 0.1, 0.4, 0.5, 0.51, 0.6, 1])  # e^(x - max), in all
    offsets = np.array(extent.of(samples.uniform((400,), np.float16, -8, 8), 8))
    x = np.empty((offsets.size, rests.size, group), np.float16)
    x[...] = offsets[:, None, None]
    x[..., group // 3] += np.log((group - 1) / rests).astype(np.float16)
    exact, _ = reference.log_softmax(x.reshape(-1, group), 1)
    result = dmlops.log_softmax(x.reshape(-1, group))
    assert_within(result, exact, 0.02 * reference.ulp(exact, "float16"), f"group of {group}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("group", [3, 16, 40, 130, 1100])
def test_neighbors_change_nothing(dtype: str, group: int) -> None:
    """Maxima from one end of the type to the other, where one dominates and where none does."""
    offsets = [-60000, -300, -65, -64, -63, -1, 0, 1, 39, 40, 41, 43, 44, 87, 89, 300, 60000]
    leads = [0, 5, 13, 14, 15, 17, 80]
    lowest = [0, -90, -140, -4000, -math.inf]
    choices = list(itertools.product(offsets, leads, lowest))
    x = samples.uniform((len(choices), group), dtype, -1, 0, seed=group)
    for i, (offset, lead, low) in enumerate(choices):
        x[i] += dtype_of(dtype, offset)
        x[i, group // 2] = min(offset + lead, np.finfo(dtype).max)
        x[i, -1] += dtype_of(dtype, low)
    together = check(x, 1, f"group of {group}")
    assert_same_bits(check(packed(x.T), 0, f"group of {group}").T, together, "side by side")
    alone = np.concatenate([dmlops.log_softmax(row[np.newaxis]) for row in x])
    assert_same_bits(alone, together, f"group of {group}: each by itself")


@pytest.mark.parametrize("group", [2, 3, 7, 16, 17])
@pytest.mark.parametrize("others", [1, 30, 250])
def test_short_groups_beside_others_with_large_distances(group: int, others: int) -> None:
    """Some vectors of columns need further sums; the bits are those of each group by itself."""
    x = samples.uniform((group, 300), "float32", -3, 3)
    far = [-math.inf, math.inf, math.nan, *(-14.0, -15.9, -16.1, -22.0, -90.0, 17.0, 60.0, 1e30)]
    for i in range(others):
        x[i % group, 7 * i % 300] = far[i % len(far)]
    together = check(x, 0, f"{others} groups with large distances")
    alone = np.stack([dmlops.log_softmax(x[:, i]) for i in range(300)], axis=1)
    assert_same_bits(together, alone)


@pytest.mark.parametrize("dtype", FLOATS)
def test_leads_of_every_size(dtype: str) -> None:
    step = 2.0**-7 if dtype == "float16" else 2.0**-12
    lead = np.arange(0, 120 if dtype == "float32" else 20, step).astype(dtype)
    for offset in (0.0, -3.0):
        check(
            np.stack([lead + dtype_of(dtype, offset), np.full_like(lead, offset)], axis=1),
            1,
            offset,
        )
    check(np.stack([lead, 0 * lead, 0 * lead - 1]), 0, "three, side by side")
    check(np.stack([-lead, 0 * lead]), 0, "the second leads")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("group", [2, 3, 4])
def test_results_in_a_binade_above_their_parts(dtype: str, group: int) -> None:
    """If x - max and ln(sum) are just below a power of two, the last rounding counts twice."""
    worst = [0.240651473402977, -0.24363484978675842]
    check(np.array([worst], dtype), context="-0.484 - 0.480")
    for spread in (0.3, 0.5, 1):
        check(samples.uniform((400_000 // group, group), dtype, -spread, spread, seed=group))


def dtype_of(dtype: str, value: float) -> Any:
    return np.dtype(dtype).type(value)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1])
def test_infinities_and_nan_at_every_position(dtype: str, axis: int) -> None:
    bits = f"u{np.dtype(dtype).itemsize}"
    for group in (1, 2, 3, 16, 37, 70, 133):
        for value in (math.nan, math.inf, -math.inf):
            x = samples.uniform((group + 2, group), dtype)
            x[np.arange(group), np.arange(group)] = value
            x[group] = -math.inf
            result = dmlops.log_softmax(x if axis else packed(x.T), axis)
            result = result if axis else packed(result.T)
            expected, allowed = reference.log_softmax(x, 1)
            context = f"group of {group}, {value} on the diagonal"
            assert_within(result, expected, allowed, context)
            alone = np.concatenate([dmlops.log_softmax(row[np.newaxis]) for row in x])
            assert_same_bits(alone, result, f"{context}: each by itself")
            nan = np.isnan(result)
            assert nan[group].all(), context
            assert not nan[group + 1].any(), context
            assert (result[nan].view(bits) == reference.CANONICAL_NAN[dtype]).all(), context
            if value == -math.inf and group > 1:
                assert (np.diagonal(result) == -math.inf).all(), context


@pytest.mark.parametrize("dtype", FLOATS)
def test_extreme_values(dtype: str) -> None:
    high = float(np.finfo(dtype).max)
    tiny = float(np.finfo(dtype).smallest_subnormal)
    rows = [
        [high, high, 0],
        [-high, -high, -high],
        [high, -high, 0],
        [tiny, -tiny, 0],
        [0.0, -0.0, tiny],
    ]
    x = np.array(rows, dtype)
    check(x, 1)
    check(packed(x.T), 0)
    check(np.tile(x, 30), 1)


def test_every_float16_against_zero() -> None:
    every = samples.EVERY_FLOAT16
    check(np.stack([every, np.zeros_like(every)], axis=1), 1)
    check(np.stack([every, np.zeros_like(every)]), 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_empty(dtype: str) -> None:
    for shape in ((0,), (3, 0), (0, 3), (2, 0, 3)):
        for axes in subsets(len(shape)):
            result = dmlops.log_softmax(np.zeros(shape, dtype), axes)
            assert result.shape == shape
            assert result.dtype == dtype


@pytest.mark.parametrize("dtype", FLOATS)
def test_permuted_groups_into_padded_ones(dtype: str) -> None:
    # A step between groups that equals a step between elements must not be confused with it.
    x = samples.uniform((3, 4, 300, 5), dtype, seed=16).transpose(2, 1, 0, 3)
    expected = dmlops.log_softmax(x.copy())
    for pitch in range(1, 17):
        padded = np.zeros((*x.shape[:3], 5 * pitch), dtype)
        dmlops.log_softmax(x, out=padded[..., :5])
        assert_same_bits(padded[..., :5], expected, pitch)
        assert not padded[..., 5:].any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_rank_0(dtype: str) -> None:
    for value in (0, -3, 5, math.inf, -math.inf, math.nan):
        x = np.array(value, dtype)
        expected = dmlops.log_softmax(x.reshape(1)).reshape(())
        assert expected == 0 if math.isfinite(value) else np.isnan(expected)
        for axes in (0, -1, [0], (-1,)):
            assert_same_bits(dmlops.log_softmax(x, axes), expected)
            out = np.empty_like(x)
            assert dmlops.log_softmax(x, axes, out=out) is out
            assert_same_bits(out, expected)
