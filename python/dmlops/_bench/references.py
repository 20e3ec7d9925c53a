"""The result of a problem in float64, or exactly where the elements are integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dmlops._accuracy.exact import ELEMENTWISE
from dmlops._bench.problem import Array, Problem, parameters

Arguments = dict[str, Any]


def reference(problem: Problem) -> Array:
    """Return the result; of several results, the first."""
    x, p = problem.input, problem.arguments
    if x.dtype.kind != "f" and "scale" not in p:
        exact: Array = np.clip(x, x.dtype.type(p["min"]), x.dtype.type(p["max"]))
        return exact
    wide = {
        name: value.astype(np.float64) if isinstance(value, np.ndarray) else value
        for name, value in p.items()
    }
    if problem.operator in ELEMENTWISE:
        y: Array = ELEMENTWISE[problem.operator](x.astype(np.float64), **wide)
    else:
        y = REFERENCES[problem.operator](x.astype(np.float64), wide)
    return y if x.dtype.kind == "f" else np.trunc(y)


def batch_normalization(x: Array, p: Arguments) -> Array:
    """Normalize with given statistics."""
    mean, variance, scale, bias = parameters(p)
    y: Array = (x - mean) / np.sqrt(variance + p["epsilon"]) * scale + bias
    return np.maximum(y, 0) if p["relu"] else y


def normalization(x: Array, p: Arguments) -> Array:
    """Normalize with the statistics over the axes."""
    mean = x.mean(p["axes"], keepdims=True) if p["use_mean"] else 0
    variance = np.square(x - mean).mean(p["axes"], keepdims=True)
    y: Array = (x - mean) / np.sqrt(variance + p["epsilon"]) * p["scale"] + p["bias"]
    return y


def batch_normalization_grad(x: Array, p: Arguments) -> Array:
    """Return the gradient of the input where the statistics are given."""
    y: Array = p["gradient"] * p["scale"] / np.sqrt(p["variance"] + p["epsilon"])
    return y


def batch_normalization_training_grad(x: Array, p: Arguments) -> Array:
    """Return the gradient of the input where the statistics depend on it."""
    gradient, axes = p["gradient"], p["axes"]
    deviation = np.sqrt(p["variance"] + p["epsilon"])
    normalized = (x - x.mean(axes, keepdims=True)) / deviation
    common = gradient.mean(axes, keepdims=True)
    slope = (gradient * normalized).mean(axes, keepdims=True)
    y: Array = p["scale"] / deviation * (gradient - common - normalized * slope)
    return y


def softmax(x: Array, p: Arguments) -> Array:
    """Return the exponentials divided by their sum."""
    e = np.exp(x - x.max(p["axes"], keepdims=True))
    y: Array = e / e.sum(p["axes"], keepdims=True)
    return y


def log_softmax(x: Array, p: Arguments) -> Array:
    """Return the logarithm of softmax."""
    x = x - x.max(p["axes"], keepdims=True)
    y: Array = x - np.log(np.exp(x).sum(p["axes"], keepdims=True))
    return y


def hardmax(x: Array, p: Arguments) -> Array:
    """Return 1 at the first maximum of the axis, and 0 elsewhere."""
    y, (axis,) = np.zeros_like(x), p["axes"]
    np.put_along_axis(y, np.expand_dims(x.argmax(axis), axis), 1, axis)
    return y


REFERENCES: dict[str, Callable[[Array, Arguments], Array]] = {
    "batch_normalization": batch_normalization,
    "log_softmax": log_softmax,
    "softmax": softmax,
    "hardmax": hardmax,
    "mean_variance_normalization": normalization,
    "batch_normalization_training": normalization,
    "batch_normalization_grad": batch_normalization_grad,
    "batch_normalization_training_grad": batch_normalization_training_grad,
}
