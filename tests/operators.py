"""Each operator with fixed parameters, for tests that hold for all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import samples
from crossing import Operator
from reference import FLOATS

import dmlops

Array = npt.NDArray[Any]


def normalize(
    x: Array, values: Sequence[Array], epsilon: float = 1e-5, out: Array | None = None
) -> Array:
    """Apply batch_normalization with its four parameters in one sequence."""
    mean, variance, scale, bias = values
    return dmlops.batch_normalization(x, mean, variance, scale, bias, epsilon, out=out)


def _clip(x: Array, *, out: Array | None = None) -> Array:
    return dmlops.clip(x, -1, 2, out=out)


def _clip_scaled(x: Array, *, out: Array | None = None) -> Array:
    return dmlops.clip(x, -100, 100, scale_bias=dmlops.ScaleBias(1.5, -0.25), out=out)


def _first(function: Callable[..., Array]) -> Operator:
    return lambda x, out=None: function(x, 0, out=out)


def _all(function: Callable[..., Array]) -> Operator:
    return lambda x, out=None: function(x, range(np.ndim(x)), out=out)


def _batch_normalization(x: Array, *, out: Array | None = None) -> Array:
    """Parameters as long as the last axis, so that each element has its own."""
    shape = (*(1 for _ in np.shape(x)[:-1]), *np.shape(x)[-1:])
    return normalize(x, _parameters(shape, str(getattr(x, "dtype", "float32"))), out=out)


@cache
def _parameters(shape: tuple[int, ...], dtype: str) -> list[Array]:
    return [samples.uniform(shape, dtype, 0.5, 2, seed=i) for i in range(4)]


_FUNCTIONS: dict[str, tuple[Operator, tuple[str, ...]]] = {
    "clip": (_clip, (*FLOATS, "int8", "uint16", "int32", "int64")),
    "clip-scaled": (_clip_scaled, (*FLOATS, "int16", "uint64")),
    "hard_sigmoid": (dmlops.hard_sigmoid, FLOATS),
    "batch_normalization": (_batch_normalization, FLOATS),
    "log_softmax": (dmlops.log_softmax, FLOATS),
    "log_softmax-first": (_first(dmlops.log_softmax), FLOATS),
    "log_softmax-all": (_all(dmlops.log_softmax), FLOATS),
    "softmax": (dmlops.softmax, FLOATS),
    "softmax-first": (_first(dmlops.softmax), FLOATS),
    "hardmax": (dmlops.hardmax, FLOATS),
    "hardmax-all": (_all(dmlops.hardmax), FLOATS),
}

# By name: the function and its data type; the plain name stands for float32.
OPERATORS: dict[str, tuple[Operator, str]] = {
    name if dtype == "float32" else f"{name}-{dtype}": (function, dtype)
    for name, (function, dtypes) in _FUNCTIONS.items()
    for dtype in dtypes
}


def operator_names() -> list[str]:
    """Return the names in OPERATORS, for parametrization."""
    return list(OPERATORS)
