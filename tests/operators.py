"""Each operator with fixed parameters, for tests that hold for all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
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
    return normalize(x, _parameters(x), out=out)


def _training(x: Array, *, out: Array | None = None) -> Array:
    """Return the first output, with groups over all axes but the last."""
    outputs = None if out is None else (out, None, None)
    return dmlops.batch_normalization_training(x, *_parameters(x)[:2], out=outputs)[0]


def _parameters(x: Array) -> list[Array]:
    shape = (*(1 for _ in np.shape(x)[:-1]), *np.shape(x)[-1:])
    return [moderate(shape, _dtype(x), seed) for seed in range(4)]


def _two_inputs(function: Callable[..., Array]) -> Operator:
    """Apply a function to the array and to another one of its shape."""
    return lambda x, out=None: function(x, moderate(np.shape(x), _dtype(x), 9), out=out)


def _dtype(x: Any) -> Any:
    return getattr(x, "dtype", "float32")


@cache
def moderate(shape: tuple[int, ...], dtype: npt.DTypeLike, seed: int) -> Array:
    """Return values in [0.5, 2), which are the same for each call."""
    values = samples.uniform(shape, dtype, 0.5, 2, seed=seed)
    values.flags.writeable = False
    return values


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
    "clip_grad": (_two_inputs(partial(dmlops.clip_grad, min=-1, max=2)), (*FLOATS, "uint8")),
    "relu_grad": (_two_inputs(dmlops.relu_grad), (*FLOATS, "int16")),
    "parameterized_relu": (_two_inputs(dmlops.parameterized_relu), (*FLOATS, "int32")),
    "mean_variance_normalization": (dmlops.mean_variance_normalization, FLOATS),
    "batch_normalization_training": (_training, FLOATS),
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
