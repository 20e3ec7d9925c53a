"""The activations in float64, with their error bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import samples
from activation_rows import Row
from reference import Float64, remembered, ulp

from dmlops._accuracy.exact import ELEMENTWISE

Array = npt.NDArray[Any]


def exact_values(row: Row, x: npt.ArrayLike, parameters: tuple[float, ...]) -> Float64:
    """Return the results in float64; NaN wherever x is NaN.

    The formula takes float64 values, and parameters that are float32 values. The product of two
    float32 values is exact in float64, so the formula's own error is far below the row's bound.
    """
    return _exact(row.name, np.asarray(x), parameters)


def allowed_errors(row: Row, exact: Float64) -> Float64:
    """Return the error bounds of float32 results."""
    return np.asarray(row.ulps * ulp(exact, np.float32), np.float64)


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
        value = np.trunc(ELEMENTWISE["shrink"](x.astype(np.float64), bias, threshold))
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
