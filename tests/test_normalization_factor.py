"""batch_normalization's factor, scale / sqrt(variance + epsilon), of all sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import samples
from crossing import packed
from layouts import LAYOUTS
from normalization import check, parameters
from operators import normalize
from reference import assert_same_bits, assert_within

import dmlops

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((1.5, 1.5, 1e-40, 1e20, 2.0), 2.0),  # x = mean
        ((1e-5, 0.0, 1e-40, 9.5e19, 0.0), 9.5e34),  # the factor is above float32
        ((1e30, 0.0, 1e30, 1e-34, 0.0), 1e-19),  # and below it
        ((3e20, -5e19, 3e38, 3e-22, 0.0), 6.0622e-21),  # a subnormal factor
    ],
)
def test_factor_beyond_float32(operands: Sequence[float], expected: float) -> None:
    for length in (1, 5, 67, 1500):
        x, *values = (np.full(length, v, np.float32) for v in operands)
        for forms in (values, [v[:1] for v in values]):
            result = check(x, forms, length, epsilon=0.0)
            np.testing.assert_allclose(result, expected, rtol=1e-4)


@pytest.mark.parametrize("epsilon", [0.0, 1e-30, 1e-5])
def test_float16_parameters_of_all_classes(epsilon: float) -> None:
    """A scale of float16 is of usual magnitude, 0, infinite or NaN, beside any variance."""
    classes = [0.0, -0.0, 6e-8, 1.5, -2.0, 65504.0, -math.inf, math.inf, math.nan]
    grids = np.meshgrid(classes, classes, [6e-8, 3.0, -1.0])
    scale, variance, x = (grid.ravel().astype(np.float16) for grid in grids)
    zero = np.zeros_like(x)
    exact, _ = reference.batch_normalization(x, zero, variance, scale, zero, epsilon=epsilon)
    for k in range(x.size):  # one element among usual ones, with parameters of each element
        operands = [np.full(40, v, np.float16) for v in (x[k], 0.0, 1.0, 1.0, 0.0)]
        operands[2][7], operands[3][7] = variance[k], scale[k]
        result = normalize(operands[0], operands[1:], epsilon)[7]
        with np.errstate(over="ignore"):
            expected = exact[k].astype(np.float16)
        np.testing.assert_allclose(result, expected, rtol=2e-3, atol=6e-8, err_msg=str(k))


def any_magnitude(count: int) -> list[Array]:
    """Return operands of all magnitudes without overflow of float32."""
    bits = samples.any_bits((5, 8 * count), np.float32)
    x, mean, variance, scale, bias = np.where(np.isfinite(bits), bits, np.float32(0.75))
    variance = np.abs(variance)
    kind = np.arange(8 * count) % 4
    mean = np.where(kind == 0, np.float32(0), np.where(kind == 1, x * np.float32(0.9), mean))
    with np.errstate(all="ignore"):
        difference = x.astype(np.float64) - mean
        quotient = difference / np.sqrt(variance.astype(np.float64))
        product = scale * quotient
        bias = np.where(kind < 3, (-0.7 * product).astype(np.float32), bias)
        limit = float(np.finfo(np.float32).max)
        within = [np.abs(v) <= limit for v in (difference, quotient, product, bias)]
    kept = np.flatnonzero(np.all(within, axis=0))[:count]
    assert len(kept) == count
    return [v[kept] for v in (x, mean, variance, scale, bias)]


def test_parameters_of_all_magnitudes() -> None:
    x, *values = any_magnitude(1 << 18)
    result = check(x, values, epsilon=0.0)
    for seed in (1, 2):  # independent of adjacent channels
        order = np.argsort(samples.hashed(x.size, seed=seed))
        shuffled = normalize(x[order], [v[order] for v in values], 0.0)
        assert_same_bits(shuffled, result[order], seed)


@pytest.mark.parametrize("fused", [None, dmlops.ActivationTanhOperatorDesc()], ids=str)
@pytest.mark.parametrize("channels", [1, 3, 40, 1100])
def test_extreme_channels_among_usual_ones(channels: int, fused: Any) -> None:
    """Channels with a factor beyond float32 do not change the bits of others, in any layout."""
    extreme = np.arange(channels) % 3 == 0
    usual = parameters((channels,), "float32")
    wide = any_magnitude(channels)[1:]
    both = [np.where(extreme, w, u) for w, u in zip(wide, usual, strict=True)]

    def run(x: Array, values: Sequence[Array], out: Array | None = None) -> Array:
        mean, variance, scale, bias = values
        return dmlops.batch_normalization(
            x, mean, variance, scale, bias, 0.0, fused_activation=fused, out=out
        )

    for length in (1, 2, 7, 16, 70, 600):
        if channels * length > 100_000:
            continue
        x = samples.uniform((2, channels, length), np.float32, seed=length)
        shaped = [v.reshape(1, channels, 1) for v in both]
        full = [packed(np.broadcast_to(v, x.shape)) for v in shaped]
        expected = run(x.ravel(), [v.ravel() for v in full]).reshape(x.shape)
        if fused is None:
            assert_within(
                expected, *reference.batch_normalization(x, *shaped, epsilon=0.0), str(length)
            )
        plain = run(x, [v.reshape(1, channels, 1) for v in usual])
        assert_same_bits(expected[:, ~extreme], plain[:, ~extreme], f"usual, {length}")
        for layout in LAYOUTS:
            view = layout.view(x)
            dense = run(packed(view).ravel(), [v.ravel() for v in full]).reshape(x.shape)
            context = f"{layout}, {channels} channels of {length}"
            assert_same_bits(run(view, shaped), dense, context)
        last = packed(x.transpose(0, 2, 1)).transpose(0, 2, 1)
        assert_same_bits(run(last, shaped), expected, f"channels last, {length}")
        for out in (last, x.copy()):
            assert_same_bits(run(out, shaped, out), expected, f"in place, {length}")


def factor(variance: Array, scale: Array, epsilon: float) -> Array:
    """Return scale / sqrt(variance + epsilon), as the result for 1 of mean 0 and bias 0."""
    one, zero = np.ones_like(variance), np.zeros_like(variance)
    return dmlops.batch_normalization(one, zero, variance, scale, zero, epsilon)


def assert_factor(variance: Array, scale: Array, epsilon: float) -> None:
    total = variance.astype(np.float64) + np.float64(np.float32(epsilon))
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = scale / np.sqrt(total)
    size = np.abs(expected)
    normal = (size >= 2.0**-126) & (size <= 2.0**127)
    assert normal.mean() > 0.3
    error = np.abs(factor(variance, scale, epsilon) - expected) / reference.ulp(expected, "f")
    assert (error <= 0.51)[normal].all()


@pytest.mark.parametrize("epsilon", [0.0, 1e-5, 0.7, 3.0, -0.9])
def test_factor(epsilon: float) -> None:
    dense = np.arange(0x3F800000, 0x40800000, 61, dtype=np.uint32).view(np.float32)  # from 1 to 4
    assert_factor(dense, samples.uniform(dense.shape, "f", 1, 2), epsilon)
    edges = np.array([2.0**-63, 2.0**65], np.float32).view(np.int32)  # where the formula changes
    near = (edges[:, None] + np.arange(-2000, 2000, dtype=np.int32)).view(np.float32)
    for variance in (near, near[::-1]):
        assert_factor(variance, near, epsilon)
        assert_factor(variance, -near, epsilon)


@pytest.mark.parametrize("epsilon", [0.0, 1e-30, 1e-5, 1e30])
def test_factor_of_any_size(epsilon: float) -> None:
    variance, scale = samples.any_bits((2, 1 << 18), np.float32)
    finite = np.isfinite(variance) & np.isfinite(scale)
    assert_factor(np.abs(variance[finite]), scale[finite], epsilon)


@pytest.mark.parametrize(("variance", "scale"), [(0, 0), (0, -114), (-90, 0), (70, 20)])
@pytest.mark.parametrize("bias", [0.0, 0.25, -1.0])
def test_products_next_to_powers_of_two(variance: int, scale: int, bias: float) -> None:
    # A sum that rounds up to a power of two has an error of one ulp: a further one is too many.
    count = 1 << 18
    x = samples.uniform((count,), "f", 1, 2)
    mean = samples.uniform((count,), "f", -1, 1, seed=1)
    variances = samples.uniform((count,), "f", 1, 4, seed=2) * np.float32(2.0**variance)
    difference, power = x.astype(np.float64) - mean, 2.0 ** (scale - variance / 2)
    near = 1 + samples.uniform((count,), "d", -2e-7, 2e-7, seed=3)
    scales = (power * (1 - bias) * near / difference * np.sqrt(variances)).astype(np.float32)
    biases = np.full(count, power * bias, np.float32)
    check(x, [mean, variances, scales, biases], epsilon=0.0)


def test_infinite_input_times_a_factor_of_any_size() -> None:
    variance, scale = samples.any_bits((2, 1 << 16), np.float32)
    zero = np.zeros_like(scale)
    with np.errstate(all="ignore"):
        exact = scale / np.sqrt(np.abs(variance).astype(np.float64))
        for x in (math.inf, -math.inf):
            infinite = np.full_like(scale, x)
            result = normalize(infinite, [zero, np.abs(variance), scale, zero], 0.0)
            np.testing.assert_array_equal(result, x * exact)


def test_factor_is_exact_where_it_can_be() -> None:
    exponents = np.arange(-70, 71, dtype=np.float64)
    scale, variance = np.meshgrid(2.0**exponents, 4.0 ** (exponents / 2).round())
    scale, variance = scale.astype(np.float32), variance.astype(np.float32)
    for odd in (1, 3, 7):
        result = factor(np.float32(odd * odd) * variance, odd * scale, 0.0)
        assert (result == scale / np.sqrt(variance.astype(np.float64))).all()
    quarter = np.full(67, 0.25, np.float32)
    assert (factor(quarter, quarter, 0.75) == 0.25).all()
    assert (factor(quarter, quarter, 3.75) == 0.125).all()


@pytest.mark.parametrize("use_mean", [True, False])
@pytest.mark.parametrize("magnitude", [5e-44, 1e-40, 1e-20, 1e-10])
@pytest.mark.parametrize("shape", [(3, 40), (200, 3), (40, 700)])
def test_quotients_below_the_range_of_float32(
    shape: tuple[int, int], magnitude: float, use_mean: bool
) -> None:
    """A scale of each element amplifies their rounding."""
    x = samples.uniform(shape, "float32", -magnitude, magnitude, seed=1)
    scale = samples.uniform(shape, "float32", 1e36, 3e37, seed=2)
    for axis, epsilon in itertools.product((0, 1), (1e-5, 1e30)):
        wide = x.astype(np.float64)
        d = wide - wide.mean(axis, keepdims=True) if use_mean else wide
        variance = (d * d).mean(axis, keepdims=True) + np.float64(np.float32(epsilon))
        expected = d / np.sqrt(variance) * scale
        result = dmlops.mean_variance_normalization(
            x, scale, axes=axis, use_mean=use_mean, epsilon=epsilon
        )
        terms = np.abs(wide).max() / np.sqrt(variance) * scale if use_mean else np.abs(expected)
        assert (np.abs(result - expected) <= 2 * np.spacing(terms.astype(np.float32))).all()
