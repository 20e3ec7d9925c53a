"""clip: exact in every data type, with and without scale and bias."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import samples
from crossing import cross_sizes
from layouts import LARGE, SHAPES, SIZES, Placed, padded_strides
from reference import FLOATS, INTEGERS, assert_same_bits, assert_same_values
from variants import ISAS, POLICIES, pairwise

import dmlops
from dmlops import ScaleBias

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]
DTYPES = FLOATS + INTEGERS
FLOAT_SCALES = (
    *((1.0, 0.0), (2.0, 0.0), (1.0, -3.0), (-0.5, 0.25), (0.1, 0.1), (0.0, 2.0)),
    *((3e38, 1.0), (1e-40, 0.0), (1.0, 1e-45), (math.inf, 0.0), (-1.0, math.inf), (math.nan, 0.0)),
)
INTEGER_SCALES = (
    *FLOAT_SCALES,
    *((1.0, 0.5), (-1.0, 0.0), (-1.0, -0.999), (0.99999994, 0.0), (1.0, 2.0**40), (2.0**-40, 0.0)),
)


def both(
    x: Array, low: Any, high: Any, scale: tuple[float, float] | None = None
) -> tuple[Array, Array]:
    """Return the package's result and the reference's."""
    bound = None if scale is None else ScaleBias(*scale)
    return dmlops.clip(x, low, high, scale_bias=bound), reference.clip(x, low, high, scale)


def integer_bounds(dtype: str) -> list[Any]:
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    beyond = [low - 1, high + 1, -(10**30), 10**30, -3.0, 5.0, -1e30, 1e30, math.nan]
    return [None, low, low + 1, 0, 3, high - 1, high, *beyond]


def float_bounds(dtype: str) -> list[Any]:
    info = np.finfo(dtype)
    tiny = float(info.smallest_subnormal)
    return [
        None,
        0.0,
        -1.0,
        0.1,
        6,
        -tiny,
        tiny,
        float(info.max),
        math.inf,
        -math.inf,
        math.nan,
        1e300,
    ]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_pair_of_bounds_on_integers(dtype: str) -> None:
    x = np.concatenate([samples.specials(dtype), samples.any_bits((61,), dtype)])
    for low, high in itertools.product(integer_bounds(dtype), repeat=2):
        assert_same_values(*both(x, low, high), f"{dtype} in [{low}, {high}]")


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_pair_of_bounds_on_floats(dtype: str) -> None:
    x = np.concatenate([samples.specials(dtype), samples.any_bits((61,), dtype)])
    for low, high in itertools.product(float_bounds(dtype), repeat=2):
        assert_same_values(*both(x, low, high), f"{dtype} in [{low}, {high}]")


@pytest.mark.parametrize("dtype", DTYPES)
def test_scale_bias(dtype: str) -> None:
    x = np.concatenate([samples.specials(dtype), samples.any_bits((99,), dtype)])
    integral = dtype in INTEGERS
    limits = [(None, None), (2, 100), (None, 7), (7, 2)]
    for scale in INTEGER_SCALES if integral else FLOAT_SCALES:
        for low, high in limits:
            assert_same_values(*both(x, low, high, scale), f"{dtype} * {scale} in [{low}, {high}]")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_unit_scale_leaves_integers_exact(dtype: str) -> None:
    x = np.concatenate([samples.specials(dtype), samples.any_bits((500,), dtype)])
    assert_same_values(dmlops.clip(x, scale_bias=ScaleBias(1.0, 0.0)), x)
    assert_same_values(dmlops.clip(x, scale_bias=ScaleBias()), x)
    assert_same_values(dmlops.clip(x), x)


def test_integer_scaling_truncates_and_saturates() -> None:
    x = np.array([-7, -3, -1, 0, 1, 3, 7], np.int32)
    assert dmlops.clip(x, scale_bias=ScaleBias(0.5)).tolist() == [-3, -1, 0, 0, 0, 1, 3]
    big = ScaleBias(2.0**40, 0.0)
    low, high = -(2**31), 2**31 - 1
    assert dmlops.clip(x, scale_bias=big).tolist() == [low] * 3 + [0] + [high] * 3
    assert dmlops.clip(x, -2, 2, scale_bias=big).tolist() == [-2] * 3 + [0] + [2] * 3
    assert dmlops.clip(x, 5, scale_bias=ScaleBias(math.nan)).tolist() == [5] * 7
    top = np.array([2**64 - 1, 2**63, 0], np.uint64)
    assert dmlops.clip(top, scale_bias=ScaleBias(1.0, 1.0)).tolist() == [2**64 - 1, 2**63, 1]
    assert dmlops.clip(top, scale_bias=ScaleBias(-1.0, 0.0)).tolist() == [0, 0, 0]


@pytest.mark.usefixtures("isa")
def test_integer_scaling_is_one_fused_operation() -> None:
    # 32 by 24 bits do not fit float64: a rounded product would truncate some of these differently.
    x = samples.any_bits((3000,), np.int32, seed=4)
    y = samples.any_bits((3000,), np.int64, seed=5)
    for scale in ((float(np.float32(0.1)), -0.5), (1 / 3, 1e-3), (1 + 2.0**-23, 0.5)):
        for values in (x, x.view(np.uint32), y, y.view(np.uint64)):
            assert_same_values(*both(values, None, None, scale), f"{values.dtype} * {scale}")
    x, half = np.full(40, 2**52 + 1, np.int64), 3 * (2**52 + 1) // 2  # the product is half + 0.5
    for bias, above in ((-(2.0**-60), 0), (0.0, 1), (2.0**-60, 1)):
        assert (dmlops.clip(x, scale_bias=ScaleBias(1.5, bias)) == half + above).all()
        assert (dmlops.clip(-x, scale_bias=ScaleBias(1.5, -bias)) == -half - above).all()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_scale_of_many_integers(dtype: str) -> None:
    # Enough for vectors and for tables of all bytes. Products that are just below a whole number,
    # as 10 * float32(0.7) is, must not be rounded up to it.
    if dtype in ("int8", "uint8"):
        x = np.arange(256, dtype=np.uint8).view(dtype)
    else:
        x = np.concatenate([np.arange(60).astype(dtype), samples.any_bits((100,), dtype)])
    tenths = [(k / 10, b / 10) for k in (-7, 1, 3, 7, 29) for b in (0, -33, 5)]
    for scale in (*INTEGER_SCALES, *tenths):
        single = (float(np.float32(scale[0])), float(np.float32(scale[1])))
        for low, high in ((None, None), (3, 100)):
            expected = np.tile(reference.clip(x, low, high, single), 5)
            result = dmlops.clip(np.tile(x, 5), low, high, scale_bias=ScaleBias(*single))
            assert_same_values(result, expected, f"{dtype} * {scale} in [{low}, {high}]")


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_limits_of_64_bits(dtype: str) -> None:
    high = int(np.iinfo(dtype).max)
    x = np.array([high, high - 1, high - 1024, 2**53 + 1], dtype)
    assert dmlops.clip(x, high - 1).tolist() == [high] + [high - 1] * 3
    assert dmlops.clip(x, None, high - 1).tolist() == [high - 1, high - 1, high - 1024, 2**53 + 1]
    assert dmlops.clip(x, high + 1).tolist() == [high] * 4
    assert dmlops.clip(x, None, 2**53 + 1).tolist() == [2**53 + 1] * 4
    numpy_bound = np.array(high - 2, dtype)[()]
    assert dmlops.clip(x, None, numpy_bound).tolist() == [
        high - 2,
        high - 2,
        high - 1024,
        2**53 + 1,
    ]


def test_float_bounds_are_rounded_once() -> None:
    x = np.array([4.0, -4.0], np.float16)
    above_tie = 1 + 2.0**-11 + 2.0**-40  # float32 would round it to the tie, and the tie to 1
    assert dmlops.clip(x, -above_tie, above_tie).tolist() == [1 + 2.0**-10, -1 - 2.0**-10]
    assert dmlops.clip(x, None, 1 + 2.0**-11).tolist() == [1.0, -4.0]
    assert dmlops.clip(x.astype(np.float32), None, 16777217).tolist() == [4.0, -4.0]
    assert dmlops.clip(np.array([1e9], np.float32), None, 16777217).tolist() == [16777216.0]
    assert dmlops.clip(x, None, 65519.0).tolist() == [4.0, -4.0]
    assert dmlops.clip(np.array([math.inf], np.float16), None, 65519.0).tolist() == [65504.0]
    assert dmlops.clip(np.array([math.inf], np.float16), None, 65520.0).tolist() == [math.inf]


def test_whole_bounds_of_any_size_on_floats() -> None:
    x = np.array([3e38, -3e38], np.float32)
    for bound in (2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**65, 10**30):
        nearest = float(np.float32(bound))
        assert dmlops.clip(x, None, bound).tolist() == [nearest, x[1]], bound
        assert dmlops.clip(x, -bound).tolist() == [x[0], -nearest], bound
    for beyond in (10**39, 10**400):
        assert dmlops.clip(x, -beyond, beyond).tolist() == x.tolist()
        assert dmlops.clip(x, beyond).tolist() == [math.inf] * 2
    tie_and_more = 2**60 + 2**36 + 1  # float64 would round it to the tie
    assert dmlops.clip(x, None, tie_and_more).tolist() == [2.0**60 + 2.0**37, x[1]]
    half = np.array([6e4, -6e4], np.float16)
    assert dmlops.clip(half, None, 2049).tolist() == [2048, -6e4]
    assert dmlops.clip(half, -(10**30), 10**30).tolist() == half.tolist()


def test_min_above_max_gives_min() -> None:
    for dtype in DTYPES:
        x = samples.any_bits((300,), dtype, seed=6)
        result = dmlops.clip(x, 5, 2)
        nans = np.isnan(x) if dtype in FLOATS else np.zeros(300, bool)
        assert (result[~nans] == 5).all()
        assert (result[nans] != result[nans]).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_sign_bits(dtype: str) -> None:
    bits = f"u{np.dtype(dtype).itemsize}"
    quiet = {"float32": 0, "float16": 0x0200}[dtype]  # float32 keeps signaling NaNs
    x = samples.any_bits((1 << 16,), dtype, seed=7)
    if dtype == "float32":
        x[::7].view(bits)[...] |= 0x7F800000  # NaN of many payloads
    nan = np.isnan(x)
    assert nan.sum() > 1000
    for low, high in ((None, None), (-1.0, 1.0), (math.nan, math.nan)):
        for scale_bias in (None, ScaleBias(1.0, 0.0)):
            passed = dmlops.clip(x, low, high, scale_bias=scale_bias)[nan].view(bits)
            assert (passed == x[nan].view(bits) | quiet).all(), f"[{low}, {high}], {scale_bias}"
    scaled = dmlops.clip(x, -1.0, 1.0, scale_bias=ScaleBias(2.0, 0.0))[nan].view(bits)
    assert (scaled == reference.CANONICAL_NAN[dtype]).all()
    assert_same_bits(dmlops.clip(x[~nan]), x[~nan], "finite values and infinities pass")


def test_every_float16() -> None:
    x = samples.EVERY_FLOAT16
    for low, high in ((None, None), (-1.5, 6.0), (-(2.0**-24), 2.0**-24), (-math.inf, 65504)):
        for scale in (None, (1.0, 0.0), (0.1, 0.1), (1e-3, 1e-8), (500.0, -3.0)):
            assert_same_values(*both(x, low, high, scale), f"{scale} in [{low}, {high}]")


def test_bits_of_every_float16_between_all_kinds_of_bounds() -> None:
    # Bounds of both signs, zeros among them: equal zeros keep their sign, NaN becomes quiet.
    bits = np.arange(65536, dtype=np.uint16)
    x = bits.view(np.float16).astype(np.float32)
    positive = (0x0000, 0x0001, 0x03FF, 0x0400, 0x3555, 0x3C00, 0x7BFF, 0x7C00)
    bounds = [*positive, *(pattern | 0x8000 for pattern in positive)]
    for low, high in itertools.product(bounds, repeat=2):
        minimum, maximum = (float(np.uint16(b).view(np.float16)) for b in (low, high))
        expected = np.where(x > maximum, np.uint16(high), bits)
        below = expected.view(np.float16).astype(np.float32) < minimum
        expected = np.where(np.isnan(x), bits | 0x0200, np.where(below, low, expected))
        result = dmlops.clip(bits.view(np.float16), minimum, maximum).view(np.uint16)
        wrong = np.flatnonzero(result != expected)
        assert not wrong.size, (
            f"{wrong[0]:#06x} in [{low:#06x}, {high:#06x}] gives {result[wrong[0]]:#06x}"
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [None, (0.75, 1.5)], ids=["plain", "scaled"])
def test_sizes(dtype: str, scale: tuple[float, float] | None) -> None:
    x = samples.any_bits((max(SIZES) * 2 + 8,), dtype, seed=8)
    bound = None if scale is None else ScaleBias(*scale)

    def operator(values: Array, *, out: Array | None = None) -> Array:
        return dmlops.clip(values, 2, 100, scale_bias=bound, out=out)

    cross_sizes(operator, x, reference.clip(x, 2, 100, scale), assert_same_values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes(dtype: str) -> None:
    for shape in SHAPES:
        x = samples.any_bits(shape, dtype, seed=9)
        for scale in (None, (0.75, 1.5)):
            assert_same_values(*both(x, 2, 100, scale), f"{dtype} {shape} {scale}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_large(dtype: str) -> None:
    x = samples.any_bits((LARGE,), dtype, seed=10)
    low, high = (np.array(v, dtype) for v in (2, 100))
    with np.errstate(invalid="ignore"):
        expected = np.maximum(np.minimum(x, high), low)
    assert_same_values(dmlops.clip(x, 2, 100), expected)
    assert_same_values(dmlops.clip(x[::-1], 2, 100), expected[::-1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_permutations_of_small_dimensions(dtype: str) -> None:
    # Layouts that are gathered through an offset table, in blocks if the input is dense.
    random = np.random.default_rng(14)
    for _ in range(60):
        rank = int(random.integers(3, 9))
        shape = random.integers(1, 2 + 5000 ** (1 / rank), rank)
        x = samples.any_bits(tuple(shape.tolist()), dtype, seed=15)
        view = np.transpose(x, random.permutation(rank))[..., :: int(random.choice([1, 1, -1, 2]))]
        result = np.empty(view.shape, dtype)
        dmlops.clip(view, 2, 100, out=result)
        assert_same_values(result, reference.clip(view, 2, 100), f"{view.shape} {view.strides}")


def test_published_example() -> None:
    x = np.arange(-4, 5, dtype=np.float32)
    assert dmlops.clip(x, -2.5, 2.5).tolist() == [-2.5, -2.5, -2, -1, 0, 1, 2, 2.5, 2.5]
    assert dmlops.clip(x, -2.5, 2.5, out=x) is x
    assert x.tolist() == [-2.5, -2.5, -2, -1, 0, 1, 2, 2.5, 2.5]


def test_subnormals_are_kept() -> None:
    for dtype in FLOATS:
        tiny = np.finfo(dtype).smallest_subnormal
        x = np.array([tiny, -tiny, 3 * tiny] * 20, dtype)
        assert_same_bits(dmlops.clip(x, -1.0, 1.0), x)
        assert_same_bits(dmlops.clip(x, scale_bias=ScaleBias(2.0)), x + x)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
@pytest.mark.parametrize("scale", [None, (1.0, 3.0)])
def test_output_just_beyond_the_input(dtype: str, scale: tuple[float, float] | None) -> None:
    """Loops iterate backwards on store-to-load aliasing (1 MiB): every length of a few vectors."""
    itemsize = np.dtype(dtype).itemsize
    memory = np.zeros((1 << 20) + (1 << 14), np.uint8)
    bound = None if scale is None else ScaleBias(*scale)
    for count in [*range(1, 300), 1000, 1024]:
        for beyond in (itemsize, 16, 64, 1024, 1032):
            x = memory[:8192].view(dtype)[:count]
            x[:] = samples.any_bits((count,), dtype, seed=count)
            begin = (1 << 20) + beyond
            around = memory[begin - itemsize : begin + (count + 1) * itemsize].view(dtype)
            around[:] = 77
            dmlops.clip(x, 2, 100, scale_bias=bound, out=around[1:-1])
            assert_same_values(around[1:-1], reference.clip(x, 2, 100, scale), f"{count} {beyond}")
            assert around[0] == around[-1] == 77


@pytest.mark.parametrize("shape", [(64, 64), (129, 65), (300, 70), (1100, 140), (70, 1024)])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
@pytest.mark.parametrize("offset", [0, 1, 9])
def test_transposed_in_squares(dtype: str, shape: tuple[int, int], offset: int) -> None:
    """Whole squares of cache lines and remainders, at all alignments."""
    size = math.prod(shape)
    values = (np.arange(size + offset) * 40503 % 251 - 125).astype(dtype)
    x = values[offset:].reshape(shape).T
    out = np.zeros_like(values)[offset:].reshape(x.shape)
    dmlops.clip(x, -50, 50, out=out)
    assert_same_values(out, reference.clip(x, -50, 50))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
def test_transposed_between_canaries(dtype: str) -> None:
    """Rows at all alignments, between elements that must not change."""
    random = np.random.default_rng(17)
    for _ in range(60):
        rows, columns = random.integers(8, 300, 2).tolist()
        before, after = random.integers(0, 70, 2).tolist()
        x = samples.any_bits((columns, rows), dtype, seed=18).T
        out = np.full((rows + 2, before + columns + after), 77, dtype)
        expected = out.copy()
        part = (slice(1, -1), slice(before, before + columns))
        dmlops.clip(x, 2, 100, out=out[part])
        expected[part] = reference.clip(x, 2, 100)
        assert_same_values(out, expected, f"{x.shape} between {before} and {after}")


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_permutations_in_squares(dtype: str, threads: int) -> None:
    """Check rows and columns of several dimensions each, at all alignments, between canaries."""
    dmlops.set_num_threads(threads)
    random = np.random.default_rng(16)
    itemsize = np.dtype(dtype).itemsize
    # The first layout has one dimension of rows and one of columns, which is split into shards.
    cases = [((8, 9, 11, 7, 8, 9), (3, 5, 4, 1, 0, 2), 0)]
    for _ in range(40):
        rank = int(random.integers(4, 9))
        sizes = random.choice([2, 3, 4, 5, 7, 8, 11], rank).tolist()
        while math.prod(sizes) > 60000:
            sizes[sizes.index(max(sizes))] = 2
        cases.append((tuple(sizes), tuple(random.permutation(rank).tolist()), rank))
    for sizes, axes, padded in cases:
        offset = int(random.integers(0, 20))
        x = samples.any_bits((math.prod(sizes) + offset,), dtype, seed=17)[offset:]
        view = x.reshape(sizes).transpose(axes)
        gaps = [0] * 8
        if padded:
            gaps[int(random.integers(1, 7))] = itemsize
        strides = padded_strides(view.shape, itemsize, None, gaps.__getitem__)
        out = Placed(view.shape, dtype, strides, misalignment=offset % 4 * itemsize)
        dmlops.clip(view, 2, 100, out=out.view)
        assert_same_values(out.view, reference.clip(view, 2, 100), f"{view.shape} {view.strides}")
        out.assert_canaries(view.shape)


@pairwise(
    scale=[None, (1.0, 3.0)],
    dtype=["int8", "float16", "float32", "uint32", "int64"],
    threads=[1, 2, 3],
    isa=ISAS,
    policy=POLICIES,
)
def test_layers_of_short_rows(
    scale: tuple[float, float] | None, dtype: str, threads: int, isa: str, policy: str
) -> None:
    """Check padding in each dimension: threads split the dimension of 3."""
    dmlops.set_num_threads(threads)
    length = 480 // np.dtype(dtype).itemsize
    sizes = (4, 4, 4, 4, 4, 3, length)
    part = tuple(slice(0, size) for size in sizes)
    base = samples.any_bits(tuple(size + 1 for size in sizes), dtype, seed=18)
    bound = None if scale is None else ScaleBias(*scale)
    out = np.zeros_like(base)
    dmlops.clip(base[part], 2, 100, scale_bias=bound, out=out[part])
    expected = np.zeros_like(base)
    expected[part] = reference.clip(base[part], 2, 100, scale)
    assert_same_values(out, expected)
