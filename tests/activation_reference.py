"""The activations in float64, one row each: allowed error, and values to test with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import samples
from descriptors import ACTIVATIONS
from reference import Float64, remembered, ulp

from dmlops._accuracy.exact import ELEMENTWISE, shrink

Array = npt.NDArray[Any]

# In ulp of float32. Formulas in extended precision are rounded once; a product with their result is
# rounded again, and can double the first rounding error.
PIECEWISE_LINEAR, LINEAR, CURVED = 0.5, 1.0, 2.0
BEYOND_FLOAT32 = 0.52
PRODUCT = 2 * BEYOND_FLOAT32 + 0.5
PRODUCT_OF_LINES = 1.5  # a factor rounded once, which counts up to twice, and the product


@dataclass(frozen=True)
class Row:
    """An activation and the properties of its results.

    Its formula in `ELEMENTWISE` takes float64 values, and parameters that are float32 values. The
    product of two float32 values is exact in float64, so the formula's own error is far below
    `ulps`. The first of the `parameters` are the defaults; with them, the results at -infinity and
    infinity are the `limits`.
    """

    name: str
    ulps: float
    limits: tuple[float, float]
    fields: tuple[str, ...] = ()
    parameters: tuple[tuple[float, ...], ...] = ((),)

    def exact(self, x: npt.ArrayLike, parameters: tuple[float, ...]) -> Float64:
        """Return the result in float64; NaN wherever x is NaN."""
        return _exact(self.name, np.asarray(x), parameters)

    def allowed(self, exact: Float64) -> Float64:
        """Return the error bound of a float32 result."""
        return np.asarray(self.ulps * ulp(exact, np.float32), np.float64)


@remembered
def _exact(name: str, x: Array, parameters: tuple[float, ...]) -> Float64:
    rounded = [np.float64(np.float32(parameter)) for parameter in parameters]
    with np.errstate(all="ignore"):
        wide = np.asarray(x, np.float64)
        value = np.asarray(ELEMENTWISE[name](wide, *rounded), np.float64)
    return np.asarray(np.where(np.isnan(wide), np.nan, value), np.float64)


def integer_shrink(x: Array, bias: float, threshold: float) -> Array:
    """Return shrink in float64, truncated toward zero and saturated; NaN gives 0."""
    bias, threshold = float(np.float32(bias)), float(np.float32(threshold))
    with np.errstate(invalid="ignore"):
        value = np.trunc(shrink(x.astype(np.float64), bias, threshold))
    info = np.iinfo(x.dtype)
    value = np.where(np.isnan(value), 0.0, value)
    return np.clip(value, float(info.min), float(info.max)).astype(np.int64).astype(x.dtype)


def float32_of_all_magnitudes() -> Array:
    """Return all signs and exponents, mantissas at both ends and between, and special values."""
    tops = np.arange(512, dtype=np.uint32)[:, None] << np.uint32(23)
    mantissas = samples.any_bits((512, 24), "uint32") & np.uint32(0x7FFFFF)
    mantissas[:, :4] = (0, 1, 0x400000, 0x7FFFFF)
    bits = (tops | mantissas).ravel()
    small = samples.uniform((4000,), "float32", -1, 1)
    ordinary = samples.uniform((8000,), "float32", -110, 110, seed=1)
    return np.concatenate([bits.view(np.float32), small, ordinary, samples.specials("float32")])


_UP, _ALL, _UNIT, _ODD = (0, math.inf), (-math.inf, math.inf), (0, 1), (-1, 1)
_SELU_LIMIT = float(np.float32(-1.7580993))
_INF, _NAN = math.inf, math.nan
_ONE = ((1.0,), (0.5,), (-2.0,), (0.0,), (1e30,), (1e-40,))

ROWS = (
    Row("elu", PRODUCT, (-1, _INF), ("alpha",), (*_ONE, (_NAN,))),
    Row(
        "celu",
        CURVED,
        (-1, _INF),
        ("alpha",),
        (*_ONE, (3.0,), (0.001,), (-0.001,), (-1e-37,), (-1e10,)),
    ),
    Row(
        *("hard_sigmoid", LINEAR, _UNIT, ("alpha", "beta")),
        ((0.2, 0.5), (1 / 6, 0.5), (-0.2, 0.5), (0.0, 0.25), (_INF, 0.0), (0.2, _NAN)),
    ),
    Row("identity", PIECEWISE_LINEAR, _ALL),
    Row(
        *("leaky_relu", PIECEWISE_LINEAR, _ALL, ("alpha",)),
        ((0.01,), (0.3,), (-1.5,), (0.0,), (1e-40,), (3e38,), (_INF,), (_NAN,)),
    ),
    Row(
        *("linear", LINEAR, _ALL, ("alpha", "beta")),
        (
            *((1.0, 0.0), (2.0, -1.0), (1 / 3, 2 / 3), (-0.7, 1e-6), (0.0, 3.0), (1e38, -1e38)),
            *((1e-40, 1e-41), (_INF, 1.0), (1.0, -_INF), (_NAN, 0.0)),
        ),
    ),
    Row(
        *("parametric_softplus", CURVED, _UP, ("alpha", "beta")),
        (
            *((1.0, 1.0), (0.5, 2.0), (-1.5, 0.7), (2.0, -3.0), (0.0, 1.0), (1.0, 0.0)),
            *((1e30, 1e-3), (1e-40, 1.0), (1e-30, 1e30), (3.0, 1e-40), (_NAN, 1.0), (1.0, _NAN)),
            *((1e-40, 1e-38), (1e-45, -1e-45), (1.8588975e37, 3.091656e-19)),
        ),
    ),
    Row("relu", PIECEWISE_LINEAR, _UP),
    Row(
        *("scaled_elu", PRODUCT, (_SELU_LIMIT, _INF), ("alpha", "gamma")),
        (
            *((1.67326319217681884765625, 1.05070102214813232421875), (1.6732, 1.0507)),
            *((0.5, -2.0), (-1.0, 3.0), (0.0, 1.0), (1.0, 0.0)),
            *((1e30, 1e-30), (1e-20, 1e-20), (3e38, 3e38), (-21.396524, -4.0936763e-39)),
            *((1e-45, 1e-45), (_NAN, 1.0)),
        ),
    ),
    Row(
        *("scaled_tanh", CURVED, _ODD, ("alpha", "beta")),
        (
            *((1.0, 0.5), (1.0, 1.0), (1.7159, 2 / 3), (-2.0, 0.3), (0.4, -5.0), (0.0, 1.0)),
            *((1.0, 0.0), (1e-40, 1.0), (1e30, 1e-30), (1e-30, 1e30), (_NAN, 1.0), (1.0, _NAN)),
        ),
    ),
    Row("sigmoid", CURVED, _UNIT),
    Row(
        *("softplus", CURVED, _UP, ("steepness",)),
        (
            (1.0,),
            (2.0,),
            (50.0,),
            (0.1,),
            (1e-3,),
            (-1.0,),
            (1e30,),
            (1e-40,),
            (2.14e-35,),
            (0.0,),
            (_NAN,),
        ),
    ),
    Row("softsign", CURVED, _ODD),
    Row("tanh", BEYOND_FLOAT32, _ODD),
    Row(
        *("thresholded_relu", PIECEWISE_LINEAR, _UP, ("alpha",)),
        ((1.0,), (0.3,), (0.0,), (-1.5,), (1e-40,), (_INF,), (-_INF,), (_NAN,)),
    ),
    Row(
        *("shrink", PIECEWISE_LINEAR, _ALL, ("bias", "threshold")),
        (
            *((0.0, 0.5), (0.5, 0.5), (0.1, 1.0), (-0.7, 2.0), (3.0, 0.0), (0.25, -1.0)),
            *((1e30, 1.0), (0.5, _INF), (_INF, 1.0), (0.5, _NAN), (_NAN, 0.5)),
        ),
    ),
    Row("gelu", CURVED, _UP),
    # The formula multiplies -infinity by 0.
    Row(
        *("hard_swish", PRODUCT_OF_LINES, (_NAN, _INF), ("alpha", "beta")),
        (
            *((1 / 6, 0.5), (0.2, 0.5), (-0.25, 1.5), (0.0, 0.25), (1.0, 0.0)),
            *((1e-44, 0.0), (-1e-40, 1e-42), (1e30, -1e30), (_INF, 0.0), (_NAN, 0.5), (0.2, _NAN)),
        ),
    ),
    # The formula divides -infinity by infinity.
    Row(
        *("swish", CURVED, (_NAN, _INF), ("sigmoid_input_scale",)),
        (
            *((1.0,), (1.702,), (-0.75,), (0.0,), (1e-3,), (1e30,), (-1e-38,), (1e-40,), (3e38,)),
            *((0.0078125,), (_NAN,)),
        ),
    ),
)
FUSABLE = tuple(row for row in ROWS if row.name in ACTIVATIONS)
