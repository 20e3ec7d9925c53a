"""The operators' formulas, as DirectML's documents write them, and the unit of their errors.

The formulas compute in the type of their input. NumPy's widest type has 64 bits of precision on x86
and at least 53 elsewhere, against the 24 of float32: measured errors are off by at most 1e-8 ulp.
The tests use the formulas in float64, and compare them with results of at least 50 decimal digits.
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


def _erfc(x: Array) -> Array:
    """Return math.erfc of the elements in float64, as NumPy lacks it."""
    values = x.ravel().astype(np.float64).tolist()
    return np.array([math.erfc(value) for value in values]).reshape(x.shape)


# The activations consist of functions and operators that C++ has too: tools/generate.py copies them
# into the C++ tests. gelu is written with erfc, since 1 + erf cancels for negative x.
ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "clip_grad": lambda x, gradient, min, max: np.where((x > min) & (x < max), gradient, 0),
    "clip": lambda x, min, max, scale=1, bias=0: np.clip(x * scale + bias, min, max),
    "celu": lambda x, alpha: np.where(x >= 0, x, np.minimum(0, alpha * np.expm1(x / alpha))),
    "elu": lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(x)),
    "gelu": lambda x: np.where(np.isneginf(x), -0.0, x / 2 * _erfc(x * -np.sqrt(0.5))),
    "hard_sigmoid": lambda x, alpha, beta: np.maximum(0, np.minimum(alpha * x + beta, 1)),
    "hard_swish": lambda x, alpha, beta: x * np.maximum(0, np.minimum(alpha * x + beta, 1)),
    "identity": lambda x: x,
    "leaky_relu": lambda x, alpha: np.where(x >= 0, x, alpha * x),
    "linear": lambda x, alpha, beta: alpha * x + beta,
    "parameterized_relu": lambda x, slope: np.where(x >= 0, x, slope * x),
    "parametric_softplus": lambda x, alpha, beta: alpha * _log_of_one_plus_exp(beta * x),
    "relu_grad": lambda x, gradient: np.where(x > 0, gradient, 0),
    "relu": lambda x: np.where(x < 0, 0, x),
    "scaled_elu": lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * (np.expm1(x) + 0)),
    "scaled_tanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "shrink": lambda x, bias, threshold: np.where(
        x > threshold, x - bias, np.where(x < -threshold, x + bias, 0)
    ),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x, steepness: _log_of_one_plus_exp(steepness * x) / steepness,
    "softsign": lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))),
    "swish": lambda x, sigmoid_input_scale=1: x / (1 + np.exp(-sigmoid_input_scale * x)),
    "tanh": np.tanh,
    "thresholded_relu": lambda x, alpha: np.where(x > alpha, x, 0),
}


def exact(
    operator: str, inputs: Sequence[Array], parameters: Mapping[str, float], output: int = 0
) -> Exact:
    """Return an operator's exact results, and the magnitudes whose ulp is the unit of its bound."""
    numbers = {name: np.longdouble(np.float32(value)) for name, value in parameters.items()}
    tensors = [wide(tensor) for tensor in inputs]
    with np.errstate(all="ignore"):
        if operator in GROUPS:
            return GROUPS[operator](*tensors, **numbers)
        if operator in SEVERAL:
            return SEVERAL[operator](*tensors, **numbers)[output]
        value = ELEMENTWISE[operator](*tensors, **numbers)
    return value, np.abs(value)


def _batch_normalization(
    x: Array, mean: Array, variance: Array, scale: Array, bias: Array, *, epsilon: Any
) -> Exact:
    """Return the results, and the largest intermediates: cancellation leaves the error of these."""
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


def _softmax(x: Array) -> Exact:
    """Return the results along the last axis, exact and rounded."""
    terms = np.exp(x - x.max(axis=-1, keepdims=True))
    value = terms / terms.sum(axis=-1, keepdims=True)
    return value, value.astype(np.float32).astype(value.dtype)


def _hardmax(x: Array) -> Exact:
    value = np.zeros_like(x)
    np.put_along_axis(value, x.argmax(axis=-1)[..., None], 1, axis=-1)
    return value, value


def _mean_variance_normalization(
    x: Array, scale: Array, bias: Array, *, epsilon: Any, use_mean: Any = True
) -> Exact:
    """Return the results along the last axis, and the largest intermediates."""
    mean: Array = x.mean(axis=-1, keepdims=True) if use_mean else np.zeros_like(x[..., :1])
    variance = np.square(x - mean).mean(axis=-1, keepdims=True)
    return _batch_normalization(x, mean, variance, scale, bias, epsilon=epsilon)


def _sum(terms: Array) -> Exact:
    """Return the sum along the first axis, and a magnitude for an error in each term of 2^-43."""
    value = terms.sum(axis=0, keepdims=True)
    return value, np.maximum(np.abs(value), np.abs(terms).sum(axis=0, keepdims=True) * 2.0**-19)


def _training(x: Array, scale: Array, bias: Array, *, epsilon: Any) -> tuple[Exact, Exact, Exact]:
    """Return the output along the first axis, mean and variance."""
    count = np.longdouble(len(x))
    mean, of_mean = (total / count for total in _sum(x))
    variance, of_variance = (total / count for total in _sum(np.square(x - mean)))
    output = _batch_normalization(x, mean, variance, scale, bias, epsilon=epsilon)
    return output, (mean, of_mean), (variance, of_variance)


def _gradients(
    x: Array, dy: Array, mean: Array, variance: Array, scale: Array, *, epsilon: Any
) -> tuple[Exact, Exact, Exact]:
    """Return the gradients of input, scale and bias, of groups along the first axis."""
    inverse = 1 / np.sqrt(variance + epsilon)
    value = dy * scale * inverse
    of_scale = _sum(dy * (x - mean) * inverse)
    return (value, np.abs(value)), of_scale, _sum(dy)


def _training_gradients(
    x: Array, dy: Array, mean: Array, variance: Array, scale: Array, *, epsilon: Any
) -> tuple[Exact, Exact, Exact]:
    """Return the gradients with the mean of the input, and the largest intermediates."""
    _, of_scale, of_bias = _gradients(x, dy, mean, variance, scale, epsilon=epsilon)
    factor = scale / np.sqrt(variance + epsilon)
    deviation = x - x.mean(axis=0)
    shift = deviation * (dy * deviation).mean(axis=0) / (variance + epsilon)
    mean_dy = dy.mean(axis=0)
    value = factor * (dy - mean_dy - shift)
    largest = np.maximum(np.maximum(np.abs(dy), np.abs(mean_dy)), np.abs(shift))
    return (value, np.maximum(np.abs(value), np.abs(factor) * largest)), of_scale, of_bias


# By the operator, of tensors and parameters; SEVERAL: an entry for each output.
GROUPS: dict[str, Callable[..., Exact]] = {
    "batch_normalization": _batch_normalization,
    "hardmax": _hardmax,
    "log_softmax": _log_softmax,
    "mean_variance_normalization": _mean_variance_normalization,
    "softmax": _softmax,
}
SEVERAL: dict[str, Callable[..., tuple[Exact, ...]]] = {
    "batch_normalization_grad": _gradients,
    "batch_normalization_training": _training,
    "batch_normalization_training_grad": _training_gradients,
}
