"""References for the operators, in exact or float64 arithmetic, with error bounds."""

from __future__ import annotations

import functools
import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]

FLOATS = ("float32", "float16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
CANONICAL_NAN = {"float32": 0x7FC00000, "float16": 0x7E00}

# The input of DirectML's documentation of LOG_SOFTMAX1, SOFTMAX1 and HARDMAX1.
EXAMPLE = [[[12, 0], [-101, 11]], [[3, 234], [0, -101]]]
# The log softmax of the example by axes, to 16 digits (0 below 1e-39).
LOG_SOFTMAX: dict[tuple[int, ...], list[float]] = {
    (1,): [
        *(0, -11.000016701561318, -113, -1.670156131839396e-05),
        *(-0.04858735157374206, 0, -3.048587351573742, -335),
    ],
    (0,): [-1.2340218972325883e-04, -234, -101, 0, -9.000123402189724, 0, 0, -112],
    (0, 2): [
        *(-222, -234, -112.00001670156132, -1.670156131839396e-05),
        *(-231, 0, -11.000016701561318, -112.00001670156132),
    ],
    (2,): [-6.144193477732806e-06, -12.000006144193478, -112, 0, -231, 0, 0, -101],
    (0, 1, 2): [-222, -234, -335, -223, -231, 0, -234, -335],
}

Reference = TypeVar("Reference", bound=Callable[..., Any])
MOST_REMEMBERED = 128 << 20  # bytes of results


def as_tuple(results: Any) -> tuple[Any, ...]:
    """Return the results of a function that returns one array, or a tuple of several."""
    return results if isinstance(results, tuple) else (results,)


def nearest(value: Fraction, dtype: str) -> float:
    """Return the value of the type next to an exact one; ties go to the even one."""
    info = np.finfo(dtype)
    if value == 0:
        return 0.0
    digits = info.nmant + 1
    exponent = max(_exponent(abs(value)) - digits + 1, int(info.minexp) - int(info.nmant))
    units = round(value / Fraction(2) ** exponent)  # of the last place, half to even
    exact = units * Fraction(2) ** exponent
    fits = abs(exact) <= Fraction(float(info.max))
    return float(exact) if fits else math.copysign(math.inf, value)


def _exponent(value: Fraction) -> int:
    """Return the largest e of which 2**e <= value."""
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e if Fraction(2) ** e <= value else e - 1


def _content(value: Any) -> object:
    if isinstance(value, np.ndarray):
        digest = hashlib.blake2b(value.tobytes(), digest_size=16).digest()
        return value.dtype.str, value.shape, digest
    return repr(value)


def remembered(reference: Reference) -> Reference:
    """Compute a reference once for each content of its arguments.

    Tests that run on several instruction sets need the same reference each time.
    """
    results: OrderedDict[object, tuple[Array, ...]] = OrderedDict()
    size = 0

    @functools.wraps(reference)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        nonlocal size
        key = (*map(_content, arguments), *((k, _content(v)) for k, v in keywords.items()))
        found = results.get(key)
        if found is None:
            computed = reference(*arguments, **keywords)
            found = results[key] = tuple(np.asarray(array) for array in as_tuple(computed))
            for array in found:
                array.flags.writeable = False
                size += array.nbytes
            while size > MOST_REMEMBERED:
                size -= sum(array.nbytes for array in results.popitem(last=False)[1])
        return found if len(found) > 1 else found[0]

    return wrapper  # type: ignore[return-value]


def ulp(x: npt.ArrayLike, dtype: npt.DTypeLike) -> Float64:
    """Return the distance between adjacent numbers of `dtype` at `x` (float64, exact)."""
    info = np.finfo(dtype)
    magnitude = np.abs(np.asarray(x, np.float64))
    ordinary = np.isfinite(magnitude) & (magnitude > 0)
    exponent = np.frexp(np.where(ordinary, magnitude, float(info.tiny)))[1] - 1
    return np.asarray(np.ldexp(1.0, np.maximum(exponent, info.minexp) - info.nmant), np.float64)


def _two_sum(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """Return a + b rounded to float64, and the exact rounding error (Knuth's two-sum)."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def round_sum(high: Float64, low: Float64, dtype: npt.DTypeLike) -> Array:
    """Round the exact high + low once to `dtype`, where |low| is at most half an ulp of high.

    Rounding `high` alone is wrong only at a tie between two adjacent numbers, which goes to even,
    whereas the sign of `low` gives the direction of the exact value.
    """
    nearest = high.astype(dtype)
    remainder = high - nearest.astype(np.float64)
    adjacent = np.nextafter(nearest, np.where(remainder > 0, np.inf, -np.inf).astype(dtype))
    gap = np.abs(adjacent.astype(np.float64) - nearest.astype(np.float64))
    tie = (2 * np.abs(remainder) == gap) & np.isfinite(nearest)
    beyond_tie = tie & (remainder * np.sign(low) > 0)
    return np.asarray(np.where(beyond_tie, adjacent, nearest), dtype)


def fma32(x: npt.ArrayLike, scale: float, bias: float) -> npt.NDArray[np.float32]:
    """Return x * scale + bias with one rounding, to float32; the parameters are float32 values."""
    with np.errstate(all="ignore"):
        scale64, bias64 = np.float64(np.float32(scale)), np.float64(np.float32(bias))
        product = np.asarray(x, np.float64) * scale64  # 24 by 24 bits: exact in float64
        total, lost = _two_sum(product, np.broadcast_to(bias64, product.shape))
        lost = np.where(np.isfinite(total), lost, 0.0)
        return round_sum(total, lost, np.float32)


def _scaled_integers(
    values: list[int], scale: float, bias: float, limits: tuple[int, int]
) -> list[int]:
    """Return fma(float64(x), scale, bias), truncated toward zero and saturated, of each x."""
    low, high = limits
    if scale == 1 and bias == 0:
        return values
    if not (math.isfinite(scale) and math.isfinite(bias)):
        results = (float(x) * scale + bias for x in values)
        return [0 if math.isnan(y) else (high if y > 0 else low) for y in results]
    # As integers over one denominator: Python's division of integers rounds once, to float64.
    (factor, below_factor), (offset, below_offset) = (v.as_integer_ratio() for v in (scale, bias))
    factor, offset = factor * below_offset, offset * below_factor
    below = below_factor * below_offset
    return [min(max(int((int(float(x)) * factor + offset) / below), low), high) for x in values]


def _is_bound(bound: float | None) -> bool:
    return bound is not None and not math.isnan(bound)


def _integer_bound(bound: float | None, limits: tuple[int, int], default: int) -> int:
    """Return a bound truncated and saturated to the type; the default stands for none, or NaN."""
    if bound is None or not _is_bound(bound):
        return default
    if math.isinf(bound):
        return limits[bound > 0]
    return min(max(int(bound), limits[0]), limits[1])


def _clip_integers(
    x: Array, low: float | None, high: float | None, scale: tuple[float, float] | None
) -> Array:
    info = np.iinfo(x.dtype)
    limits = (int(info.min), int(info.max))
    least = x.dtype.type(_integer_bound(low, limits, limits[0]))
    greatest = x.dtype.type(_integer_bound(high, limits, limits[1]))
    if scale is not None:
        factor, offset = (float(np.float32(value)) for value in scale)
        distinct, where = np.unique(x, return_inverse=True)
        scaled = _scaled_integers([int(v) for v in distinct], factor, offset, limits)
        x = np.array(scaled, x.dtype)[where].reshape(x.shape)
    return np.asarray(np.maximum(np.minimum(x, greatest), least))


@remembered
def clip(
    x: Array,
    low: float | None = None,
    high: float | None = None,
    scale: tuple[float, float] | None = None,
) -> Array:
    """Return max(low, min(g(x), high)) exactly, in x's type; `scale` is the pair (scale, bias)."""
    if x.dtype.kind in "iu":
        return _clip_integers(x, low, high, scale)
    value = np.asarray(x, np.float32) if scale is None else fma32(x, *scale)
    with np.errstate(over="ignore"):
        if high is not None and _is_bound(high):
            bound = np.float32(np.float64(high).astype(x.dtype))
            value = np.where(value > bound, bound, value)
        if low is not None and _is_bound(low):
            bound = np.float32(np.float64(low).astype(x.dtype))
            value = np.where(value < bound, bound, value)
        return value.astype(x.dtype)


@remembered
def hard_sigmoid(x: Array, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """Return max(0, min(alpha * x + beta, 1)), rounded to float32, and once more to float16."""
    value = fma32(x, alpha, beta)
    value = np.where(value > 1, np.float32(1), value)
    return np.where(value < 0, np.float32(0), value).astype(x.dtype)


@remembered
def batch_normalization(
    x: Array, mean: Array, variance: Array, scale: Array, bias: Array, *, epsilon: float = 1e-5
) -> tuple[Float64, Float64]:
    """Return scale * (x - mean) / sqrt(variance + epsilon) + bias, and the error allowed.

    Three roundings to float32: the difference moves the product by at most one of its ulp; the
    product's low part and the bias are rounded together by half an ulp; the sum by half an ulp, or
    by one where it reaches a power of two, and then the others are smaller. Together that is below
    2 ulp of the largest intermediate.
    """
    with np.errstate(all="ignore"):
        x, mean, variance, scale, bias = (
            np.asarray(a, np.float64) for a in (x, mean, variance, scale, bias)
        )
        difference = x - mean
        product = scale * (difference / np.sqrt(variance + np.float64(np.float32(epsilon))))
        result = product + bias
        largest = np.maximum(np.maximum(np.abs(product), np.abs(bias)), np.abs(result))
        return result, 2 * ulp(largest, np.float32)


@remembered
def log_softmax(x: Array, axes: int | Sequence[int] = -1) -> tuple[Float64, Float64]:
    """Return (x - max) - ln(sum(exp(x - max))) over `axes` together, and the error allowed.

    The maximum's term exp(0) = 1 is excluded from the sum, and added by log1p, so that the relative
    error of the result is small if one element dominates.
    """
    groups, restore = _as_rows(x, axes)
    if groups.size == 0:
        return np.empty(x.shape), np.empty(x.shape)
    with np.errstate(all="ignore"):
        top = groups.max(axis=1, keepdims=True)
        difference = groups - top
        terms = np.exp(difference)
        np.put_along_axis(terms, groups.argmax(axis=1)[:, None], 0.0, axis=1)
        log_sum = np.log1p(terms.sum(axis=1, keepdims=True))
        result = np.where(np.isfinite(top), difference - log_sum, np.nan)
        larger = np.maximum(np.abs(difference), log_sum)
        # The rounding of the result is up to 1 ulp of the larger term, if the result is a binade
        # above both terms; the errors of exp and of the sum are below 1. Before float16's rounding,
        # the errors are 64 for a sum of up to 127 in float32, 3.4 for exp, 1.3 for the logarithm,
        # 0.5 for the difference.
        units = (8, 2) if x.dtype == np.float32 else (70, 70)
        allowed = np.where(
            result >= -0.1, units[0] * ulp(result, np.float32), units[1] * ulp(larger, np.float32)
        )
        if x.dtype == np.float16 and groups.shape[1] >= 128:
            # The maximum's term is in the sum, too. The promise is a fiftieth of float16's ulp: 64
            # additions are 1/64 of it for ln(1.5).
            allowed = 0.02 * ulp(np.where(result >= -0.1, result, larger), np.float16)
    return restore(result), restore(allowed)


@remembered
def softmax(x: Array, axes: int | Sequence[int] = -1) -> tuple[Float64, Float64]:
    """Return exp(x - max) / sum(exp(x - max)) over `axes` together, and the error allowed: 2 ulp of
    the rounded result in float32, half an ulp more than rounding to float16.
    """
    groups, restore = _as_rows(x, axes)
    if groups.size == 0:
        return np.empty(x.shape), np.empty(x.shape)
    with np.errstate(all="ignore"):
        top = groups.max(axis=1, keepdims=True)
        terms = np.exp(groups - top)
        result = terms / terms.sum(axis=1, keepdims=True)
        result = np.where(np.isfinite(top), result, np.nan)
        allowed = (2 if x.dtype == np.float32 else 0.02) * ulp(result.astype(np.float32), x.dtype)
    return restore(result), restore(allowed)


def hardmax(x: Array, axes: int | Sequence[int] = -1) -> tuple[Float64, Float64]:
    """Return 1 at NumPy's argmax over `axes` together and 0 elsewhere, and no error."""
    groups, restore = _as_rows(x, axes)
    result = np.zeros(groups.shape)
    if groups.size:
        np.put_along_axis(result, groups.argmax(axis=1)[:, None], 1.0, axis=1)
    return restore(result), np.zeros(x.shape)


def _as_rows(x: Array, axes: int | Sequence[int]) -> tuple[Float64, Callable[[Float64], Float64]]:
    """Return the groups over `axes` as rows, in row-major order, and the function that restores
    the shape.
    """
    listed = [axes] if isinstance(axes, int) else list(axes)
    reduced = sorted(axis % x.ndim for axis in listed) if x.ndim else []
    kept = [axis for axis in range(x.ndim) if axis not in reduced]
    order = kept + reduced
    moved = np.transpose(np.asarray(x, np.float64), order)
    rows = moved.reshape(math.prod(moved.shape[: len(kept)]), math.prod(moved.shape[len(kept) :]))
    return rows, lambda values: np.transpose(values.reshape(moved.shape), np.argsort(order))


def same_values(actual: Array, expected: Array) -> npt.NDArray[np.bool_]:
    """Compare element by element: equal (zeros of either sign are equal), or both NaN."""
    if expected.dtype.kind != "f":
        return np.asarray(actual == expected)
    return np.asarray((actual == expected) | (np.isnan(actual) & np.isnan(expected)))


def assert_same_values(actual: Array, expected: Array, context: object = "") -> None:
    """Fail, naming the first element, unless both are of one type and shape and `same_values`."""
    assert actual.dtype == expected.dtype, f"{context}: dtype {actual.dtype}, not {expected.dtype}"
    assert actual.shape == expected.shape, f"{context}: shape {actual.shape}, not {expected.shape}"
    _assert_all(same_values(actual, expected), actual, expected, context)


def assert_same_bits(actual: Array, expected: Array, context: object = "") -> None:
    """Fail, naming the first element, unless both hold the same bytes (zero signs and NaN too)."""
    alike = actual.dtype == expected.dtype and actual.shape == expected.shape
    if alike and actual.tobytes() == expected.tobytes():  # the fastest comparison
        return
    assert actual.dtype == expected.dtype, f"{context}: dtype {actual.dtype}, not {expected.dtype}"
    assert actual.shape == expected.shape, f"{context}: shape {actual.shape}, not {expected.shape}"
    unsigned = f"u{actual.dtype.itemsize}"
    left, right = (np.asarray(a).view(unsigned) for a in (actual, expected))
    _assert_all(left == right, actual, expected, context)


def assert_within(actual: Array, expected: Float64, allowed: Float64, context: object = "") -> None:
    """Fail, naming the worst element, unless `actual` is within `allowed` of `expected`.

    `allowed` is the error in float32; float16 adds half an ulp of its own. An infinite result is
    right if the exact result, moved by the allowed error, rounds to it.
    """
    assert actual.shape == expected.shape, f"{context}: shape {actual.shape}, not {expected.shape}"
    dtype = actual.dtype
    largest = float(np.finfo(dtype).max)
    bound = np.broadcast_to(allowed, expected.shape)
    if dtype == np.float16:
        bound = bound + 0.5 * ulp(np.minimum(np.abs(expected) + bound, largest), dtype)
    with np.errstate(all="ignore"):
        error = np.abs(actual.astype(np.float64) - expected)
        overflow = largest + 0.5 * float(ulp(largest, dtype))
        infinite = (np.sign(actual) == np.sign(expected)) & (np.abs(expected) + bound >= overflow)
        good = np.where(np.isinf(actual), infinite, error <= bound)
        good = np.where(np.isnan(expected), np.isnan(actual), good)
        _assert_all(good, actual, expected, context, error / bound)


def _assert_all(
    good: Array, actual: Array, expected: Array, context: object, severity: Array | None = None
) -> None:
    if good.all():
        return
    wrong = np.argwhere(~good)
    worst = 0 if severity is None else int(np.argmax(np.nan_to_num(severity[~good], nan=np.inf)))
    index = tuple(int(i) for i in wrong[worst])
    detail = "" if severity is None else f", error {severity[index]:.3g} of the bound"
    raise AssertionError(
        f"{context}: {len(wrong)} of {good.size} elements differ; at {index} got "
        f"{actual[index]!r}, not {expected[index]!r}{detail}"
    )
