"""The polynomials of src/kernels are those that tools/minimax.py derives."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import mpmath
import pytest

pytest.importorskip("scipy")
ROOT = Path(__file__).parents[1]
if not (ROOT / "tools").exists():  # in an sdist
    pytest.skip("tools/minimax.py is part of the repository only", allow_module_level=True)
sys.path.insert(0, str(ROOT / "tools"))
minimax: Any = pytest.importorskip("minimax")

MATH, SOFTMAX = "simd/math.hpp", "softmax/softmax_terms.hpp"
SOURCES = [  # the polynomial's file, and its error, which the file's comments or the tool state
    ("exp", MATH, 3.7e-9),
    ("log", MATH, 5e-9),
    ("exp, double", MATH, 4e-11),
    ("softmax", SOFTMAX, 1.7e-10),
    ("softmax, float16", SOFTMAX, 2.7e-6),
]
CASES = pytest.mark.parametrize(("name", "file", "error"), SOURCES, ids=[row[0] for row in SOURCES])


def literals(file: str) -> list[float]:
    """Return the hexadecimal numbers of a source file."""
    text = (ROOT / "src/kernels" / file).read_text()
    return [float.fromhex(word) for word in re.findall(r"-?0x1[.\da-f]*p-?\d+", text)]


def in_source(name: str, file: str, error: float) -> tuple[Any, list[float]]:
    """Return a polynomial, and for each coefficient of its fit the nearest number in the source."""
    polynomial = minimax.POLYNOMIALS[name]
    *fitted, _ = polynomial.fit()
    values = [float.fromhex(literal.rstrip("f")) for literal in fitted]
    fixed = len(polynomial.fixed)
    numbers = literals(file)
    near = [min(numbers, key=lambda number: abs(number - value)) for value in values[fixed:]]
    # The last digits depend on the solver, which ends within 1e-5 of the least error: some ulp in
    # float32; in double, a change that alters the polynomial by less than 1 % of its error.
    size = max(abs(float(polynomial.variable(x))) for x in (polynomial.low, polynomial.high))
    for power, (number, value) in enumerate(zip(near, values[fixed:], strict=True), fixed):
        is_double = polynomial.kind is minimax.np.float64
        allowed = 0.01 * error / size**power if is_double else 2.0**-20 * abs(value)
        assert abs(number - value) <= allowed, (power, number, value)
    return polynomial, values[:fixed] + near


@CASES
def test_constants_and_their_error(name: str, file: str, error: float) -> None:
    polynomial, coefficients = in_source(name, file, error)
    low, high = polynomial.low, polynomial.high
    worst = mpmath.mpf(0)
    for i in range(301):  # not the nodes of the fit
        x = mpmath.mpf(low) + (mpmath.mpf(high) - low) * (i + mpmath.mpf(0.3)) / 301
        powers = (polynomial.variable(x) ** k for k in range(len(coefficients)))
        value = mpmath.fdot(coefficients, powers)
        worst = max(worst, abs((value - polynomial.function(x)) * polynomial.weight(x)))
    assert error / 2 < worst <= 1.02 * error  # the comments round it


def test_divisor_of_softmax() -> None:
    multiple, quotient = minimax.softmax_divisor()
    text = (ROOT / "src/kernels" / SOFTMAX).read_text()
    assert f"kMultiple = {multiple}.0f" in text
    assert f"splat<f32x>(-{quotient})" in text
