"""The operators' formulas, as DirectML's documents write them, and the unit of their errors.

The formulas compute in the type of their input. NumPy's widest type has 64 bits of precision on x86
and at least 53 elsewhere, against the 24 of float32: measured errors are off by at most 1e-8 ulp.
The tests use the formulas in float64, and compare them with results of 50 decimal digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Exact = tuple[Array, Array]  # the results, and the magnitudes whose ulp is the unit


def wide(x: Any) -> Array:
    """Return the values in the widest type."""
    return np.asarray(x, np.longdouble)


def _log_of_one_plus_exp(z: Array) -> Array:
    """Return ln(1 + e^z) without overflow of e^z."""
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def _gelu(x: Array) -> Array:
    """Return x / 2 erfc(-x / sqrt(2)), since 1 + erf cancels for negative x."""
    ends = (x.ravel().astype(np.float64) * -math.sqrt(0.5)).tolist()
    tails = np.array([math.erfc(end) for end in ends]).reshape(x.shape)
    return np.where(np.isneginf(x), -0.0, x * tails / 2)


def shrink(x: Array, bias: Any, threshold: Any) -> Array:
    """Return x - bias above the threshold, x + bias below its negative, and 0 between."""
    return np.where(x > threshold, x - bias, np.where(x < -threshold, x + bias, 0))


ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "clip": lambda x, min, max, scale=1, bias=0: np.clip(x * scale + bias, min, max),
    "celu": lambda x, alpha: np.where(x >= 0, x, np.minimum(0, alpha * np.expm1(x / alpha))),
    "elu": lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(x)),
    "gelu": _gelu,
    "hard_sigmoid": lambda x, alpha, beta: np.maximum(0, np.minimum(alpha * x + beta, 1)),
    "hard_swish": lambda x, alpha, beta: x * np.maximum(0, np.minimum(alpha * x + beta, 1)),
    "identity": lambda x: x,
    "leaky_relu": lambda x, alpha: np.where(x >= 0, x, alpha * x),
    "linear": lambda x, alpha, beta: alpha * x + beta,
    "parametric_softplus": lambda x, alpha, beta: alpha * _log_of_one_plus_exp(beta * x),
    "relu": lambda x: np.where(x < 0, 0, x),
    "scaled_elu": lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(x)),
    "scaled_tanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "shrink": shrink,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x, steepness: _log_of_one_plus_exp(steepness * x) / steepness,
    "softsign": lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))),
    "swish": lambda x, sigmoid_input_scale: x / (1 + np.exp(-sigmoid_input_scale * x)),
    "tanh": np.tanh,
    "thresholded_relu": lambda x, alpha: np.where(x > alpha, x, 0),
}


def exact(operator: str, inputs: Sequence[Array], parameters: Mapping[str, float]) -> Exact:
    """Return an operator's exact results, and the magnitudes whose ulp is the unit of its bound."""
    numbers = {name: np.longdouble(np.float32(value)) for name, value in parameters.items()}
    x, *_ = tensors = [wide(tensor) for tensor in inputs]
    with np.errstate(all="ignore"):
        if operator == "batch_normalization":
            return _batch_normalization(tensors, numbers["epsilon"])
        if operator == "log_softmax":
            return _log_softmax(x)
        value = ELEMENTWISE[operator](x, **numbers)
    return value, np.abs(value)


def _batch_normalization(tensors: Sequence[Array], epsilon: np.longdouble) -> Exact:
    """Return the results, and the largest intermediates: cancellation leaves the error of these."""
    x, mean, variance, scale, bias = tensors
    product = scale * ((x - mean) / np.sqrt(variance + epsilon))
    result = product + bias
    largest = np.maximum(np.maximum(np.abs(product), np.abs(bias)), np.abs(result))
    return result, largest


def _log_softmax(x: Array) -> Exact:
    """Return the results along the last axis, and the larger of |x - max| and ln(sum)."""
    top = x.max(axis=-1, keepdims=True)
    difference = x - top
    terms = np.exp(difference)
    np.put_along_axis(terms, x.argmax(axis=-1)[..., None], 0, axis=-1)
    log_sum = np.log1p(terms.sum(axis=-1, keepdims=True))
    return difference - log_sum, np.maximum(np.abs(difference), log_sum)
