"""ONNX's normalizations, for every opset that defines them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

import dmlops
from dmlops.onnx._node import (
    Array,
    Node,
    Step,
    along_channels,
    as_float32,
    as_type,
    axes_from,
    broadcastable,
    require_axes,
    require_broadcastable,
    with_checked_parameters,
)
from dmlops.onnx._values import Value, require_consistent

# Batch normalization


def batch_normalization(node: Node) -> Step:
    """Return inference or, from opset 14 on, training."""
    attributes = node.attributes
    if node.version >= 14:
        training = attributes["training_mode"] != 0
    elif node.version >= 7:
        training = len(node.outputs) > 1
    else:
        training = attributes["is_test"] == 0
    if training and node.version < 14:
        raise node.refuse(
            f"training in opset {node.version}, which does not define the variance (population or "
            "sample); convert the model to opset 14"
        )
    if not training and len(node.outputs) > 1:
        raise node.invalid(
            f"{len(node.outputs)} outputs, but inference has only Y; remove the others, or enable "
            "training"
        )
    step: Step = partial(_infer, epsilon=attributes["epsilon"])
    if training:
        step = partial(
            _train,
            epsilon=attributes["epsilon"],
            momentum=attributes["momentum"],
            outputs=len(node.outputs),
        )
    return with_checked_parameters(node, step)


def _infer(
    x: Array, scale: Array, bias: Array, mean: Array, variance: Array, *, epsilon: float
) -> Array:
    """Normalize, with parameters per channel or per element of a sample (spatial=0, to opset 8)."""
    arrays = (x, *(along_channels(array, x.ndim) for array in (mean, variance, scale, bias)))
    if any(array.dtype != x.dtype for array in arrays):  # from opset 14 on
        arrays = tuple(map(as_float32, arrays))
    x_given, mean, variance, scale, bias = arrays
    result = dmlops.batch_normalization(x_given, mean, variance, scale, bias, epsilon)
    return as_type(result, x.dtype)


def _train(
    x: Array,
    scale: Array,
    bias: Array,
    input_mean: Array,
    input_variance: Array,
    *,
    epsilon: float,
    momentum: float,
    outputs: int,
) -> Array | tuple[Array, ...]:
    """Normalize each channel with its own statistics, and update the running ones."""
    # The variance of float16 numbers can exceed float16.
    scale, bias = (as_float32(along_channels(array, x.ndim)) for array in (scale, bias))
    result, *current = dmlops.batch_normalization_training(
        as_float32(x), scale, bias, None, epsilon
    )
    y = as_type(result, x.dtype)
    if outputs == 1:
        return y
    running = map(partial(_running, momentum), (input_mean, input_variance), current)
    return (y, *running)[:outputs]


def _running(momentum: float, given: Array, current: Array) -> Array:
    """Return a running statistic with the current one added, rounded once."""
    new = current.astype(np.float64).reshape(given.shape)
    return as_type(momentum * given.astype(np.float64) + (1 - momentum) * new, given.dtype)


# Normalizations of groups of axes


def _statistics(x: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """Return mean and variance over some axes, which remain with size 1, in float32."""
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    one, zero = (np.broadcast_to(np.float32(value), shape) for value in (1, 0))
    _, mean, variance = dmlops.batch_normalization_training(as_float32(x), one, zero)
    return mean, variance


def _require_float32(node: Node) -> None:
    """Refuse other types of the intermediate results."""
    stash_type = node.attributes.get("stash_type", 1)
    if stash_type != 1:
        raise node.refuse(f"stash_type={stash_type}; dmlops supports 1, computation in float32")


def layer_normalization(node: Node) -> Step:
    """Return the normalization of the axes from `axis` on."""
    axis, epsilon = node.attributes["axis"], node.attributes["epsilon"]
    _require_float32(node)
    require_axes(node, axis)
    require_broadcastable(node)
    for declared in filter(None, node.outputs[1:]):
        statistic = Value("", np.dtype(np.float32))
        require_consistent(f"{node.label}: the statistic", statistic, declared)

    def run(x: Array, scale: Array, bias: Array | None = None) -> Array | tuple[Array, ...]:
        axes = axes_from(axis, x.ndim)
        scale = broadcastable(scale, x.ndim)
        bias = None if bias is None else broadcastable(bias, x.ndim)
        y = dmlops.mean_variance_normalization(x, scale, bias, axes, epsilon=epsilon)
        if len(node.outputs) == 1:
            return y
        mean, variance = _statistics(x, axes)
        with np.errstate(divide="ignore", invalid="ignore"):  # equal elements, a negative epsilon
            inverse = 1 / np.sqrt(variance + np.float32(epsilon))
        return (y, mean, inverse)[: len(node.outputs)]

    return run


def rms_normalization(node: Node) -> Step:
    """Return the division of the axes from `axis` on by their root mean square."""
    axis, epsilon = node.attributes["axis"], node.attributes["epsilon"]
    _require_float32(node)
    require_axes(node, axis)
    require_broadcastable(node)

    def run(x: Array, scale: Array) -> Array:
        axes = axes_from(axis, x.ndim)
        dtype, scale = scale.dtype, broadcastable(scale, x.ndim)  # the result has scale's type
        if x.dtype != dtype:
            x, scale = as_float32(x), as_float32(scale)
        y = dmlops.mean_variance_normalization(
            x, scale, None, axes, use_mean=False, epsilon=epsilon
        )
        return as_type(y, dtype)

    return run


def instance_normalization(node: Node) -> Step:
    """Return the normalization of each channel of a sample."""

    def run(x: Array, scale: Array, bias: Array) -> Array:
        return dmlops.mean_variance_normalization(
            x,
            along_channels(scale, x.ndim),
            along_channels(bias, x.ndim),
            range(2, x.ndim),
            epsilon=node.attributes["epsilon"],
        )

    return with_checked_parameters(node, run)


def group_normalization(node: Node) -> Step:
    """Return the normalization of groups of channels of a sample, scaled by channel."""
    groups, epsilon = node.attributes["num_groups"], node.attributes["epsilon"]
    _require_float32(node)
    sizes = node.input(0).known_shape
    channels = sizes[1] if sizes is not None and len(sizes) > 1 else None
    if groups < 1 or (channels is not None and channels % groups):
        raise node.invalid(_wrong_groups(groups, channels))

    def run(x: Array, scale: Array, bias: Array) -> Array:
        if x.ndim < 2 or x.shape[1] % groups:
            raise ValueError(_wrong_groups(groups, x.shape[1] if x.ndim > 1 else None))
        size = x.shape[1] // groups
        y = dmlops.mean_variance_normalization(
            x.reshape(x.shape[0], groups, size, math.prod(x.shape[2:])),
            scale.reshape(1, groups, size, 1),
            bias.reshape(1, groups, size, 1),
            (2, 3),
            epsilon=epsilon,
        )
        return y.reshape(x.shape)

    return with_checked_parameters(node, run)


def _wrong_groups(groups: int, channels: int | None) -> str:
    given = "dimension 1 of the input" if channels is None else f"{channels} channels"
    return f"num_groups={groups} must be positive and divide {given}"


# Above 0, and so small that the scale of usual variances is 1, which rounds nothing.
_EPSILON = 2.0**-100


def mean_variance_normalization(node: Node) -> Step:
    """Return ``(x - mean) / (sqrt(variance) + 1e-9)``, as the function in the definition has it."""
    axes = node.attributes["axes"]
    require_axes(node, *axes)

    def run(x: Array) -> Array:
        over = [axes_from(axis, x.ndim)[0] for axis in axes] or range(x.ndim)
        wide = as_float32(x)
        # dmlops divides by sqrt(variance + epsilon), for which the scale substitutes ONNX's sum.
        # The 1e-9 makes the result 0 where all elements are equal.
        largest = np.finfo(np.float32).max  # the variance of float32 numbers can exceed float32
        variance = np.minimum(_statistics(wide, over)[1], largest).astype(np.float64)
        scale = np.sqrt(variance + _EPSILON) / (np.sqrt(variance) + 1e-9)
        y = dmlops.mean_variance_normalization(
            wide, scale.astype(np.float32), None, over, epsilon=_EPSILON
        )
        return as_type(y, x.dtype)

    return run
