"""Derives the polynomials and tables of src/kernels.

    pip install mpmath numpy scipy && python tools/minimax.py [names]

Each polynomial has the smallest maximum of its weighted error for coefficients in float32 (double
for functions in double): the lowest coefficient is rounded first, and the others are fitted again
after each rounding. The fit is a linear program over a grid of Chebyshev nodes, so the last digit
can depend on the solver's version.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
from scipy.optimize import linprog

Array = np.ndarray[Any, np.dtype[np.float64]]
Function = Callable[[Any], Any]
Kind = type[np.float32] | type[np.float64]

mp.mp.dps = 40
NODES = 1200


def nodes(low: float, high: float) -> Array:
    """Chebyshev nodes of [low, high]."""
    k = np.arange(NODES)
    return (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * (k + 0.5) / NODES)


def solve(basis: Array, values: Array, weight: Array) -> Array:
    """Coefficients with the least maximum of |weight * (values - basis @ coefficients)|."""
    q, r = np.linalg.qr(basis * weight[:, None])
    goal = values * weight
    solution = q.T @ goal  # least squares, improved in units of its own error
    count, degree = q.shape
    scale, ones = np.sqrt(count), np.ones((count, 1))
    for _ in range(3):
        rest = goal - q @ solution
        unit = np.abs(rest).max()
        if unit == 0:
            break
        step = linprog(
            np.r_[np.zeros(degree), 1],
            A_ub=np.block([[-q * scale, -ones], [q * scale, -ones]]),
            b_ub=np.r_[-rest, rest] / unit,
            bounds=[(None, None)] * degree + [(0, None)],
        )
        improved = solution + step.x[:degree] * unit * scale
        if np.abs(goal - q @ improved).max() >= unit:
            break
        solution = improved
    return np.linalg.solve(r, solution)


def fit(
    x: Array, values: Array, weight: Array, degree: int, fixed: tuple[float, ...], *, kind: Kind
) -> list[str]:
    """Return the coefficients from the lowest, as C++ literals, and the error."""
    coefficients: list[float] = []
    rest = values.copy()
    for power in range(degree + 1):
        if power < len(fixed):
            coefficient = fixed[power]
        else:
            basis = np.stack([x**p for p in range(power, degree + 1)], axis=1)
            coefficient = float(kind(solve(basis, rest, weight)[0]))
        coefficients.append(coefficient)
        rest = rest - coefficient * x**power
    literals = [literal(value, kind) for value in coefficients]
    return [*literals, f"error {np.abs(weight * rest).max():.2g}"]


def literal(value: float, kind: Kind = np.float32) -> str:
    """Write a float32 or a double as C++ does: 0x1.8p1f, 0x1.8p1."""
    mantissa, exponent = float(value).hex().split("p")
    suffix = "f" if kind is np.float32 else ""
    return f"{mantissa.rstrip('0').rstrip('.')}p{int(exponent)}{suffix}"


@dataclass
class Polynomial:
    """A function on an interval; the weight converts its error to the result's relative error."""

    function: Function
    weight: Function
    low: float
    high: float
    degree: int
    fixed: tuple[float, ...] = ()
    variable: Function = lambda x: x  # of the polynomial, from that of function and weight
    kind: Kind = np.float32  # of the coefficients

    def fit(self) -> list[str]:
        """Fit it."""
        grid = nodes(self.low, self.high)
        if self.high > 4 * self.low > 0:  # a long tail: more of the grid at its beginning
            middle = 4 * self.low
            grid = np.concatenate([nodes(self.low, middle), nodes(middle, self.high)])
        exact = [mp.mpf(float(x)) for x in grid]
        sample = [np.array([float(f(x)) for x in exact]) for f in (self.function, self.weight)]
        x, weight = self.variable(grid), np.abs(sample[1])
        return fit(x, sample[0], weight, self.degree, self.fixed, kind=self.kind)


def odd(function: Function, factor: float = 1) -> Function:
    """Of s = x^2: function(x) / x - factor."""
    return lambda s: function(mp.sqrt(s)) / mp.sqrt(s) - factor


def upper_tail(x: Any) -> Any:
    """Phi(-x)."""
    return mp.erfc(x / mp.sqrt(2)) / 2


LN2 = float(mp.log(2))
GELU_C = float.fromhex("0x1.bd86e4p0")  # where the function below is very nearly a float32
GELU_0 = float.fromhex("0x1.4b6514p-2")

POLYNOMIALS = {
    "exp": Polynomial(
        lambda r: (mp.expm1(r) - r) / r**2,
        lambda r: r**2 / mp.exp(r),
        -LN2 / 2 * 1.0001,
        LN2 / 2 * 1.0001,
        4,
        (0.5,),
    ),
    "log": Polynomial(
        lambda m: (mp.log1p(m) - m) / m**2,
        lambda m: m**2 / mp.log1p(m),
        -0.25,
        0.5,
        8,
        (-0.5,),
    ),
    # The terms beyond m - m^2 / 2, over m^3. The result is k ln(2) more, with k > 0 if m < 0.
    "log, pair": Polynomial(
        lambda m: (mp.log1p(m) - m + m**2 / 2) / m**3,
        lambda m: m**3 / (mp.log1p(m) + (mp.log(2) if m < 0 else 0)),
        -0.25,
        0.5,
        8,
    ),
    # In -x^2 / 2, as the code has it.
    "gelu, near": Polynomial(
        odd(lambda x: 0.5 - upper_tail(x), 0),
        lambda s: mp.sqrt(s) / upper_tail(mp.sqrt(s)),
        0,
        0.64,
        4,
        variable=lambda s: s * -0.5,
    ),
    "gelu, far": Polynomial(
        lambda x: x * upper_tail(x) * mp.exp(x * x / 2),
        lambda x: 1 / (x * upper_tail(x) * mp.exp(x * x / 2)),
        0.8,
        14.6,
        9,
        (GELU_0,),
        lambda x: (x - GELU_C) / (x + GELU_C),
    ),
    # The terms of (e^2h - 1) / 2 beyond h + h^2, over h^3.
    "exp_terms": Polynomial(
        lambda h: (mp.expm1(2 * h) - 2 * h - 2 * h * h) / (2 * h**3),
        lambda h: 2 * h**3 / mp.exp(2 * h),
        -0.02175,
        0.02375,
        2,
    ),
    # In 4 q^2, as the code has it.
    "softplus": Polynomial(
        lambda s: odd(lambda q: 2 * mp.atanh(q / 2), 1)(s) / (4 * s),
        lambda s: 4 * s * mp.sqrt(s) / (2 * mp.atanh(mp.sqrt(s) / 2)),
        0,
        4 / 9,
        3,
        variable=lambda s: s * 4,
    ),
    "scaled_tanh": Polynomial(
        lambda s: odd(mp.tanh, 1)(s) / s,
        lambda s: s * mp.sqrt(s) / mp.tanh(mp.sqrt(s)),
        0,
        0.4225,
        4,
    ),
    # The terms of softmax: (e^r - 1) / r, and 2^f for float16.
    "softmax": Polynomial(
        lambda r: mp.expm1(r) / r,
        lambda r: r / mp.exp(r),
        -LN2 / 16 * 1.0001,
        LN2 / 16 * 1.0001,
        3,
        (1, 0.5),
    ),
    "softmax, float16": Polynomial(
        lambda f: mp.mpf(2) ** f, lambda f: mp.mpf(2) ** -f, -0.5 * 1.0001, 0.5 * 1.0001, 4
    ),
    # log1p and exp_of_remainder in double; the first is artanh(z) / z in z^2.
    "log1p, double": Polynomial(
        odd(mp.atanh, 0),
        lambda s: mp.sqrt(s) / mp.atanh(mp.sqrt(s)),
        0,
        0.04,
        4,
        kind=np.float64,
    ),
    "exp, double": Polynomial(mp.exp, lambda r: mp.exp(-r), -LN2 / 2, LN2 / 2, 7, kind=np.float64),
}


def eighth(j: int) -> str:
    """Return kEighthBits[j] and kEighthShift[j]: the nearby shift with the most exact float."""
    exact, unit = mp.mpf(2) ** (mp.mpf(j) / 8), 2.0**-28
    center, width = (-(2**20) - 2**15, 2**14) if j == 1 else (0, 2**14 if j else 0)

    def error(step: int) -> Any:
        value = exact * mp.exp(step * unit)
        return abs(np.float32(float(value)).item() / value - 1)

    step = min(range(center - width, center + width + 1), key=error)
    bits = np.float32(float(exact * mp.exp(step * unit))).view(np.int32)
    return f"{int(bits) - (127 << 23) - (j << 20)} {literal(step * unit)}"


def softmax_powers() -> list[str]:
    """Return SoftmaxTerm's kBits, and c: the one for which c 2^(k/8) are nearest to floats."""
    first = np.arange(1 << 23, dtype=np.int32) + np.float32(0.5).view(np.int32)  # an octave
    exact = first.view(np.float32).astype(np.float64)[:, None] * 2 ** (np.arange(8) / 8)
    errors = exact.astype(np.float32) / exact - 1
    middle = (errors.max(axis=1) + errors.min(axis=1)) / 2
    best = np.argmin(errors.max(axis=1) - errors.min(axis=1))
    bits = exact[best].astype(np.float32).view(np.int32) - (np.arange(8) << 20)
    return [*map(str, bits), f"c {exact[best, 0] * (1 + middle[best]):.8f}"]


def softmax_divisor() -> list[str]:
    """Return ln(2) / 8 / multiple: the multiple whose quotient is nearest to a float.

    The largest quotient, 8 (256 + 132) log2(e), times the multiple is below 2^24, as SoftmaxTerm
    requires.
    """
    largest = int(2**24 / (8 * (256 + 132) / LN2))

    def error(multiple: int) -> float:
        return abs(np.float32(LN2 / 8 / multiple).item() * multiple * 8 / LN2 - 1)

    multiple = min(range(1, largest), key=error)
    return [str(multiple), literal(np.float32(LN2 / 8 / multiple).item())]


TABLES: dict[str, Callable[[], list[str]]] = {
    "eighths": lambda: [eighth(j) for j in range(8)],
    "softmax, powers": softmax_powers,
    "softmax, divisor": softmax_divisor,
}


def main() -> None:
    """Print the polynomials and tables that the arguments name, or all."""
    for name in sys.argv[1:] or [*POLYNOMIALS, *TABLES]:
        found = TABLES[name]() if name in TABLES else POLYNOMIALS[name].fit()
        print(f"{name}: {', '.join(found)}", flush=True)


if __name__ == "__main__":
    main()
