"""Python's numbers as parameters: rounded once to the type they become, or refused by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from descriptors import batch_normalization, clip, clip1, tensor
from hypothesis import example, given
from hypothesis import strategies as st
from reference import nearest

import dmlops
from dmlops import Device, ScaleBias, ValidationError

Array = npt.NDArray[Any]
X = np.zeros(3, np.float32)
ONE = np.ones(1, np.float32)


def of_clip(value: Any, dtype: str) -> float:
    """Return a converted bound, as the result for infinite elements."""
    x = np.full(1, math.inf if value < 0 else -math.inf, dtype)
    return float(dmlops.clip(x, None, value)[0] if value < 0 else dmlops.clip(x, value)[0])


def of_clip1(value: Any, dtype: str) -> float:
    """Return a converted bound of CLIP1."""
    x = np.full(1, -math.inf, dtype)
    desc = clip1(tensor((1,), dtype.upper()), min=value, max=math.inf)
    Device().compile(desc).dispatch([x], [x])
    return float(x[0])


def of_clip_desc(value: Any, _: str) -> float:
    """Return a converted FLOAT field."""
    x = np.full(1, -math.inf, np.float32)
    Device().compile(clip(tensor((1,)), min=value, max=math.inf)).dispatch([x], [x])
    return float(x[0])


def of_linear(value: Any, _: str) -> float:
    """Return a converted parameter of an activation."""
    return float(dmlops.linear(ONE, value)[0])


def of_scale(value: Any, _: str) -> float:
    """Return a converted scale."""
    return float(dmlops.clip(ONE, scale_bias=ScaleBias(value, 0))[0])


CONVERSIONS = (of_clip, of_clip1, of_clip_desc, of_linear, of_scale)


def close_to_ties() -> st.SearchStrategy[Fraction]:
    """Draw numbers next to the middle of two float32 or float16: closer than a double can be."""

    def number(digits: int, half: int, shift: int, off: int, sign: int) -> Fraction:
        units = Fraction(2) ** digits + 2 * half + 1 + Fraction(off, 2**60)
        return sign * units * Fraction(2) ** (shift - digits)

    return st.builds(
        number,
        st.sampled_from((11, 24)),
        st.integers(0, 2**10 - 1),
        st.integers(-20, 15),
        st.integers(-3, 3),
        st.sampled_from((1, -1)),
    )


@given(close_to_ties())
@example(Fraction(2**70 + 2**46 + 1))
@example(Fraction(2**70 + 3 * 2**46 - 1))
@example(-Fraction(2**70 + 2**46 + 1))
@example(Fraction(2**127))
@example(Fraction(1, 3))
def test_numbers_are_rounded_once(exact: Fraction) -> None:
    with localcontext() as context:
        context.prec = 400
        kinds: list[Any] = [exact, Decimal(exact.numerator) / exact.denominator]
    if exact.denominator == 1:
        kinds.append(int(exact))
    for value in kinds:
        for dtype in ("float32", "float16"):
            expected = nearest(exact, dtype)
            for convert in CONVERSIONS if dtype == "float32" else CONVERSIONS[:2]:
                if math.isfinite(expected):
                    assert convert(value, dtype) == expected, (convert, value, dtype)


def test_long_doubles_are_rounded_once() -> None:
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("a long double is a double here")
    value = np.longdouble(1) + np.longdouble(2) ** -24 + np.longdouble(2) ** -60
    assert of_clip(value, "float32") == of_linear(value, "") == 1 + 2**-23


@pytest.mark.parametrize("kind", [int, Fraction, Decimal, np.longdouble])
@pytest.mark.parametrize("value", [2**60 + 1, -(2**60) - 1, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_bounds_of_integers_are_exact(kind: Callable[[int], Any], value: int) -> None:
    if kind is np.longdouble and int(kind(value)) != value:
        pytest.skip("a long double is a double here")
    x = np.array([-(2**63), 2**63 - 1], np.int64)
    assert dmlops.clip(x, kind(value))[0] == value
    assert dmlops.clip(x, None, kind(value))[1] == value


def test_bounds_past_64_bits_saturate() -> None:
    x = np.array([0, 2**64 - 1], np.uint64)
    for value in (2**64, 2**70 + 1, Fraction(2**80), Decimal(2) ** 90, 10**400):
        assert (dmlops.clip(x, value) == 2**64 - 1).all()
        assert (dmlops.clip(x, -value) == x).all()
        assert (dmlops.clip(x, None, -value) == 0).all()


TOO_LARGE = {
    "10**400": 10**400,
    "-10**400": -(10**400),
    "10**5000": 10**5000,  # more digits than Python writes
    "2**128": 2**128,
    "a fraction": Fraction(10**400),
}


@pytest.mark.parametrize("value", TOO_LARGE.values(), ids=TOO_LARGE)
def test_numbers_that_do_not_fit(value: Any) -> None:
    ones = np.ones(3, np.float32)
    calls: dict[str, Callable[[], Any]] = {
        "elu: alpha": lambda: dmlops.elu(X, value),
        "hard_sigmoid: beta": lambda: dmlops.hard_sigmoid(X, 0.1, value),
        "batch_normalization: epsilon": lambda: dmlops.batch_normalization(
            X, ones, ones, ones, ones, value
        ),
        "clip: scale of scale_bias": lambda: dmlops.clip(X, scale_bias=ScaleBias(value, 0)),
        "clip: bias of scale_bias": lambda: dmlops.clip(X, scale_bias=ScaleBias(1, value)),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=rf"^{name} is .*, which does not fit float32"):
            call()
    x = tensor((3,))
    for desc in (clip(x, min=value), clip1(x, min=value), batch_normalization(x, epsilon=value)):
        with pytest.raises(ValidationError, match=r"is .*, which does not fit FLOAT"):
            Device().compile(desc)


@pytest.mark.parametrize("value", TOO_LARGE.values(), ids=TOO_LARGE)
def test_numbers_of_threads_that_do_not_fit(value: Any) -> None:
    error = TypeError if isinstance(value, Fraction) else ValueError
    with pytest.raises(error, match=r"must be from 1 to 1024|integer"):
        dmlops.set_num_threads(value)


class Incomparable:
    """A number that cannot be compared."""

    def __float__(self) -> float:
        return 0.1

    def __gt__(self, other: object) -> bool:
        raise TypeError("not comparable")

    __lt__ = __gt__


class Interrupted(Incomparable):
    """Raises an exception that must be propagated."""

    def __gt__(self, other: object) -> bool:
        raise KeyboardInterrupt

    __lt__ = __gt__


def test_numbers_that_cannot_be_compared() -> None:
    assert dmlops.linear(ONE, Incomparable())[0] == np.float32(0.1)
    with pytest.raises(KeyboardInterrupt):
        dmlops.linear(ONE, Interrupted())
