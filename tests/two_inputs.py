"""References for the elementwise operators with two inputs, in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def is_nan(x: Array) -> Array:
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def clip_grad(x: Array, gradient: Array, low: Any, high: Any) -> Array:
    """Compare as Python's exact numbers where NumPy would round a bound."""
    if x.dtype.kind == "f":
        bounds = [None if b is None or math.isnan(b) else x.dtype.type(b) for b in (low, high)]
        values: Any = x
    else:
        bounds = [None if isinstance(b, float) and math.isnan(b) else b for b in (low, high)]
        values = x.astype(object)
    passes = np.ones(x.shape, bool)
    if bounds[0] is not None:
        passes &= (values > bounds[0]).astype(bool)
    if bounds[1] is not None:
        passes &= (values < bounds[1]).astype(bool)
    return np.where(is_nan(x), x, np.where(passes, gradient, x.dtype.type(0)))


def relu_grad(x: Array, gradient: Array) -> Array:
    return np.where(is_nan(x), x, np.where(x > 0, gradient, x.dtype.type(0)))


def parameterized_relu(x: Array, slope: Array) -> Array:
    wide = np.float64 if x.dtype.kind == "f" else np.int64
    with np.errstate(all="ignore"):
        product = x.astype(wide) * slope.astype(wide)
        if x.dtype.kind != "f":
            product = np.clip(product, np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
        return np.where(x >= 0, x, product.astype(x.dtype))
