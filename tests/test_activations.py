"""The activations: values, boundaries, special values, integers, errors, and fused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import samples
from activation_reference import (
    allowed_errors,
    exact_values,
    float32_of_all_magnitudes,
    integer_shrink,
)
from activation_rows import BEYOND_FLOAT32, FUSABLE, ROWS, Row
from descriptors import ACTIVATIONS, data_types
from layouts import BY_NAME, LARGE
from operators import normalize
from reference import FLOATS, assert_same_bits, assert_same_values, assert_within, same_values

import dmlops

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
every_fusable = pytest.mark.parametrize("row", FUSABLE, ids=lambda row: row.name)
BY_ROW = {row.name: row for row in ROWS}
SHRINK_INTEGERS = data_types("shrink")[2:]
# A result of 0 may have either sign: its cause is an underflow, alpha - alpha, or 0 * y.
SIGN_OF_ZERO_IS_FREE = ("parametric_softplus", "softplus", "scaled_elu", "scaled_tanh")


def apply(row: Row, x: Array, parameters: tuple[float, ...] = ()) -> Array:
    result: Array = getattr(dmlops, row.name)(x, *parameters)
    return result


def canonical(x: Array) -> npt.NDArray[np.bool_]:
    """Return where x holds the canonical NaN."""
    bits = x.view(f"u{x.dtype.itemsize}") == reference.CANONICAL_NAN[x.dtype.name]
    return np.asarray(bits)


def check(row: Row, x: Array, parameters: tuple[float, ...]) -> None:
    """Expect the row's values, their signs (of zeros too), and NaN in its canonical form."""
    context = f"{row.name}{parameters} {x.dtype}"
    exact = exact_values(row, x, parameters)
    result = apply(row, x, parameters)
    assert result.dtype == x.dtype
    assert_within(result, exact, allowed_errors(row, exact), context)
    nan = np.isnan(exact)
    assert canonical(result[nan]).all(), context
    wrong = (np.signbit(result) != np.signbit(exact)) & ~nan
    if row.name in SIGN_OF_ZERO_IS_FREE:
        wrong &= result != 0
    assert not wrong.any(), f"{context}: signs at {x[wrong][:5]}: {result[wrong][:5]}"


@every_row
def test_every_float16(row: Row) -> None:
    # float16 is the float32 result rounded once more. The bound is the float32 bound plus half a
    # float16 ulp: the result is the exact one rounded once, except within the float32 bound of a
    # midpoint of two float16 values, where either of the two is allowed.
    for parameters in row.parameters:
        check(row, samples.EVERY_FLOAT16, parameters)


@every_row
def test_float32(row: Row) -> None:
    x = float32_of_all_magnitudes()
    for parameters in row.parameters:
        check(row, x, parameters)
        for scale in map(np.float32, parameters):  # the scales at which the formula changes
            near = samples.uniform((500,), "float32", -20, 20)
            with np.errstate(all="ignore"):
                check(row, np.concatenate([near * scale, near / scale]), parameters)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if BEYOND_FLOAT32 in (row.ulps, row.default_ulps)]
)
def test_rounded_once(row: Row) -> None:
    near = samples.uniform((200_000,), "float32", -1, 1)
    for x in (near, near * 20, float32_of_all_magnitudes()):
        exact = exact_values(row, x, row.parameters[0])
        allowed = BEYOND_FLOAT32 * reference.ulp(exact, "float32")
        assert_within(apply(row, x), exact, allowed, row.name)


@pytest.mark.parametrize(
    ("name", "x", "parameters"),
    [
        # e^-|z| next to 1
        ("softplus", -1.4586707e12, (-6.273321738977794e-19,)),
        # a finite result with an infinite inverse of the steepness
        ("softplus", float.fromhex("-0x1.e4032p+127"), (float.fromhex("0x1.fd514p-130"),)),
        # an exponential of 2^255, and of 2^277
        ("celu", -8.46e-39, (-4.78e-41,)),
        ("celu", float.fromhex("-0x1.8p-142"), (float.fromhex("-0x1p-149"),)),
        ("celu", float.fromhex("-0x1.d38508p-93"), (float.fromhex("-0x1.aecd8cp-100"),)),
        # infinite results, and finite ones near overflow
        ("celu", float.fromhex("-0x1.c363ccp+127"), (float.fromhex("-0x1.fffffep+126"),)),
        ("celu", float.fromhex("-0x1.c363ccp+126"), (float.fromhex("-0x1.fffffep+126"),)),
        # k alpha ln(2) for k in the hundreds; e^(x / alpha) close to 1
        ("celu", float.fromhex("-0x1.776fd8p-53"), (float.fromhex("-0x1.8700e2p-60"),)),
        ("celu", float.fromhex("-0x1.e93a16p-7"), (float.fromhex("-0x1.604214p-2"),)),
        # subnormal
        ("celu", float.fromhex("-0x1.33fd9p-129"), (float.fromhex("-0x1.7bd538p-128"),)),
        ("celu", float.fromhex("-0x1.b22a04p-127"), (1.0,)),
        (
            *("parametric_softplus", float.fromhex("-0x1.cf1336p+68")),
            (float.fromhex("-0x1.fffffcp+127"), float.fromhex("0x1.a646d2p-62")),
        ),
    ],
)
def test_hard_cases(name: str, x: float, parameters: tuple[float, ...]) -> None:
    check(BY_ROW[name], np.array([x], np.float32), parameters)


def test_by_hand() -> None:
    x = np.array([-2, 0, 1, 4], np.float32)
    third = np.float32(1) / np.float32(3)
    for name, parameters, expected in (
        ("leaky_relu", (0.25,), [-0.5, 0, 1, 4]),
        ("linear", (3.0, -1.0), [-7, -1, 2, 11]),
        ("relu", (), [0, 0, 1, 4]),
        ("softsign", (), [-2 * third, 0, 0.5, np.float32(0.8)]),
        ("thresholded_relu", (), [0, 0, 0, 4]),
        ("shrink", (0.5, 1.0), [-1.5, 0, 0, 3.5]),
        ("elu", (2.0,), [np.float32(2 * math.expm1(-2)), 0, 1, 4]),
        ("scaled_elu", (0.0, 2.0), [0, 0, 2, 8]),
    ):
        result = apply(BY_ROW[name], x, parameters)
        assert result.tolist() == [float(value) for value in expected], name  # type: ignore[arg-type]
    corners = np.array([-4, -3, 0, 3, 4], np.float32)
    assert dmlops.hard_swish(corners).tolist() == [0, 0, 0, 3, 4]


@pytest.mark.parametrize("dtype", FLOATS)
@every_row
def test_infinities(row: Row, dtype: str) -> None:
    result = apply(row, np.array([-math.inf, math.inf] * 20, dtype))
    expected = np.array(row.limits * 20, dtype)
    assert_same_values(result, expected)


# Activations that keep the sign of a zero; the others return 0, or add a number.
KEEPS_ZERO = ("elu", "celu", "identity", "leaky_relu", "relu", "scaled_tanh", "softsign", "tanh")


@pytest.mark.parametrize("dtype", FLOATS)
def test_signed_zeros(dtype: str) -> None:
    x = np.array([-0.0, 0.0] * 20, dtype)
    for name in (*KEEPS_ZERO, "gelu"):
        assert_same_bits(apply(BY_ROW[name], x), x, name)
    for name in ("linear", "scaled_elu", "thresholded_relu", "shrink"):
        assert_same_bits(apply(BY_ROW[name], x), np.zeros(40, dtype), name)
    assert_same_bits(dmlops.linear(x, 1.0, -0.0), x)
    assert_same_bits(dmlops.scaled_tanh(x, -1.0), -x)
    assert_same_bits(dmlops.thresholded_relu(x, -1.0), x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_boundaries(dtype: str) -> None:
    one, zero = np.array(1, dtype), np.array(0, dtype)
    smallest = np.nextafter(zero, one)

    def at(*values: Any) -> Array:
        return np.array(values * 10, dtype)

    above, below = np.nextafter(one, 2 * one), np.nextafter(one, zero)
    x = at(below, one, above)
    assert_same_bits(dmlops.thresholded_relu(x, 1.0), at(0, 0, above))  # x > alpha
    x = at(-above, -one, -below, below, one, above)
    assert_same_bits(dmlops.shrink(x, 0.0, 1.0), at(-above, 0, 0, 0, 0, above))  # strict, twice
    x = at(-smallest, zero, smallest)
    assert_same_bits(dmlops.thresholded_relu(x, 0.0), at(0, 0, smallest))
    assert_same_bits(dmlops.shrink(x, 0.0, 0.0), x)
    assert_same_bits(dmlops.relu(x), at(0, 0, smallest))
    # With x >= 0 the branch without alpha is taken, also for infinite alpha; x > 0 excludes 0.
    assert_same_bits(dmlops.leaky_relu(x, math.inf), at(-math.inf, 0, smallest))
    assert_same_bits(dmlops.elu(at(0, one), math.nan), at(0, one))
    assert_same_bits(dmlops.celu(at(0, one, -one), 0.0), at(0, one, -0.0))
    assert np.isnan(dmlops.scaled_elu(at(0), math.nan, 1.0)).all()
    assert_same_bits(dmlops.scaled_elu(at(smallest), math.nan, 1.0), at(smallest))


@pytest.mark.parametrize("dtype", FLOATS)
@every_row
def test_sizes(row: Row, dtype: str) -> None:
    # The remainder of a row gives the bits of its body: every size gives the bits of a long row.
    x = samples.uniform((1100,), dtype, seed=5)
    expected = apply(row, x)
    for size in (*range(70), 127, 255, 1023):
        assert_same_bits(apply(row, x[3 : 3 + size]), expected[3 : 3 + size], size)


@every_row
def test_in_place_and_in_parts(row: Row) -> None:
    x = samples.uniform((LARGE // 4,), "float32", -30, 30, seed=7)
    expected = np.concatenate([apply(row, part) for part in np.array_split(x, 7)])
    dmlops.set_num_threads(2)
    assert_same_bits(apply(row, x), expected)
    assert getattr(dmlops, row.name)(x, out=x) is x
    assert_same_bits(x, expected)


@pytest.mark.parametrize("dtype", SHRINK_INTEGERS)
def test_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.concatenate([samples.any_bits((3000,), dtype), samples.specials(dtype)])
    if info.bits == 8:  # a long row, and shorter ones, which may use another loop
        x = np.concatenate([np.arange(256, dtype=np.uint8).view(dtype)] * 8)
    if dtype in data_types("relu"):
        assert_same_bits(dmlops.relu(x), np.maximum(x, 0).astype(dtype))
        assert_same_bits(dmlops.relu(x[5:105]), np.maximum(x[5:105], 0).astype(dtype))
    biases = (0.0, 1.0, 0.5, -0.75, 3.9, 100.0, -1e10, 1e10, math.inf, -math.inf, math.nan)
    thresholds = (0.5, 0.0, 3.0, -2.0, 127.0, 1e6, math.inf, math.nan)
    for bias, threshold in itertools.product(biases, thresholds):
        context = f"{dtype} bias {bias} threshold {threshold}"
        expected = integer_shrink(x, bias, threshold)
        assert_same_bits(dmlops.shrink(x, bias, threshold), expected, context)
        for part in (slice(0, 200), slice(101, 256), slice(None, None, -3)):
            assert_same_bits(dmlops.shrink(x[part], bias, threshold), expected[part], context)
    assert_same_bits(dmlops.shrink(x), x)


def test_shrink_of_integers_by_hand() -> None:
    x = np.array([-128, -3, -1, 0, 1, 3, 127], np.int8)
    assert dmlops.shrink(x, 1.5, 2.0).tolist() == [-126, -1, 0, 0, 0, 1, 125]
    assert dmlops.shrink(x, -10.0, 2.0).tolist() == [-128, -13, 0, 0, 0, 13, 127]
    unsigned = np.array([0, 1, 3, 255], np.uint8)
    assert dmlops.shrink(unsigned, 5.0, 0.5).tolist() == [0, 0, 0, 250]
    wide = np.array([2**31 - 1, -(2**31)], np.int32)
    assert dmlops.shrink(wide, 0.0, 0.0).tolist() == [2**31 - 1, -(2**31)]


def fused(row: Row, parameters: tuple[float, ...]) -> Any:
    return ACTIVATIONS[row.name](**dict(zip(row.fields, parameters, strict=True)))


def fused_cases(dtype: str) -> list[tuple[str, Array, list[Array]]]:
    """Return inputs with infinities and NaN among them, and their parameters, of several forms."""

    def case(shape: tuple[int, ...], of: tuple[int, ...]) -> tuple[Array, list[Array]]:
        x = samples.uniform(shape, dtype, -9, 9, seed=8)
        special = samples.specials(dtype)[::-1]
        spots = x.reshape(-1)[::41][: special.size]
        spots[...] = special[: spots.size]
        ranges = ((-1, 1), (0.25, 4), (-2, 2), (-1, 1))
        return x, [samples.uniform(of, dtype, *r, seed=9 + i) for i, r in enumerate(ranges)]

    first = case((2, 3, 5, 35), (1, 3, 1, 1))
    return [
        ("channels first", *first),
        ("channels last in memory", BY_NAME["channels-last"].view(first[0]), first[1]),
        ("channels last", *case((2, 7, 5, 19), (1, 1, 1, 19))),
        ("a vector of channels", *case((37, 70), (1, 70))),
        ("an element each", *case((3, 70), (3, 70))),
    ]


@every_fusable
def test_fused(row: Row) -> None:
    for form, x, values in fused_cases("float32"):
        between = normalize(x, values)
        for parameters in row.parameters:
            result = dmlops.batch_normalization(x, *values, fused_activation=fused(row, parameters))
            expected = apply(row, between, parameters)
            assert_same_bits(result, expected, f"{row.name}{parameters}, {form}")


# The intermediate float32 result is off by at most a thousandth of an ulp of float16, which decides
# the rounding of a few results.
@every_fusable
def test_fused_in_float16(row: Row) -> None:
    for form, x, values in fused_cases("float16"):
        wide, mean, variance, scale, bias = (a.astype(np.float32) for a in (x, *values))
        between = normalize(wide, [mean, variance, scale, bias])
        with np.errstate(all="ignore"):
            product = (wide - mean) * scale / np.sqrt(variance)
            error = 0.001 * reference.ulp(np.maximum(np.abs(product), np.abs(bias)), "float16")
        for parameters in row.parameters:
            result = dmlops.batch_normalization(x, *values, fused_activation=fused(row, parameters))
            with np.errstate(all="ignore"):
                near = [
                    apply(row, (between + shift).astype(np.float32), parameters).astype("float16")
                    for shift in (-error, 0 * error, error)
                ]
            nan = np.isnan(near[1])
            fits = (np.fmin.reduce(near) <= result) & (result <= np.fmax.reduce(near))
            context = f"{row.name}{parameters}, {form}"
            assert (canonical(result) == nan).all(), context
            assert (fits | nan).all(), context


@pytest.mark.parametrize("exponent", range(-126, -88))
def test_swish_with_a_tiny_factor(exponent: int) -> None:
    """e^-|z| is below 2^-252 where the product with a large x is still a float32."""
    factor = 2.0**exponent
    wide = np.linspace(-200, -1, 997).astype(np.float32).astype(np.float64) / factor
    wide = wide[np.abs(wide) < 2.0**128]
    x = wide.astype(np.float32)  # exact, as the factor is a power of two
    exact = wide / (1 + np.exp(-factor * wide))
    # The exponential in float64 adds 2^-29 of an ulp of float32.
    ulp = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    assert (np.abs(dmlops.swish(x, factor) - exact) <= 2 * ulp).all()


def test_fused_is_not_rounded_in_between() -> None:
    form, x, values = fused_cases("float16")[0]
    desc = dmlops.ActivationLinearOperatorDesc(alpha=3.0, beta=0.25)
    fused = dmlops.batch_normalization(x, *values, fused_activation=desc)
    twice = dmlops.linear(normalize(x, values), 3.0, 0.25)
    assert not same_values(fused, twice).all(), form
