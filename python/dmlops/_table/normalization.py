"""Normalization with given statistics and with the input's, and the gradients."""

from __future__ import annotations

from dataclasses import replace

from .schema import OUTPUT, Activation, Axes, Boolean, Field, Number, Operator, Support, Tensor

_FORMULA = "scale * (x - mean) / sqrt(variance + epsilon) + bias"
_PARAMETERS = "The parameters, of the input's data type and rank; each size is 1 or the input's."
_INPUT = Tensor("input_tensor", "The tensor to normalize.")
_EPSILON = Number("epsilon", "Added to the variance.", "1e-5")
_FUSED = Activation(
    "fused_activation",
    "Applied last: a descriptor without tensors, such as "
    '``ActivationLeakyReluOperatorDesc(alpha=0.1)``, or a name, such as ``"relu"``, for the '
    "default parameters.",
)


def _group(name: str, like: str, text: str, *, output: bool = False) -> Tensor:
    """Return a tensor with an element for each group."""
    return Tensor(f"{name}_tensor", text, output=output, like=f"{like}_tensor")


# Mean-variance normalization

_OPTIONAL = tuple(
    Tensor(
        f"{name}_tensor",
        "Of the input's data type and rank; each size is 1 or the input's. None is "
        "a scale of 1 or a bias of 0.",
        broadcast=True,
        optional=True,
    )
    for name in ("scale", "bias")
)
_AXES = Axes(
    "axes",
    "The dimensions that make up a group, none twice, in any order; if empty, nothing is reduced.",
    function_text="The axes that make up a group; a negative one counts from the end. An empty "
    "sequence makes each element a group.",
    may_be_empty=True,
)
_AXIS_COUNT = "AxisCount is the length of `axes`."
_NO_DIVISION = "False: no division by ``sqrt(variance + epsilon)``."
_NORMALIZE = Boolean("normalize_variance", _NO_DIVISION, True)


def _mean_variance_normalization(
    version: str, value: int, supports: tuple[Support, ...], *more: Field, notes: str
) -> Operator:
    """Return the row of a version."""
    row = Operator(
        name=f"MEAN_VARIANCE_NORMALIZATION{version}",
        value=value,
        function="mean_variance_normalization",
        formula=_FORMULA,
        text="Normalization with the mean and the variance of the input, then an activation.",
        fields=(_INPUT, *_OPTIONAL, OUTPUT, *more, _EPSILON, _FUSED),
        supports=supports,
        in_place=False,
        notes=notes,
    )
    axes = "axes=(3,), " if _AXES in more else ""
    return replace(row, example=_MEAN_VARIANCE_EXAMPLE.format(name=row.desc, axes=axes))


_MEAN_VARIANCE_EXAMPLE = """\
>>> import numpy as np
>>> from dmlops import BufferTensorDesc, Device
>>> from dmlops import {name}
>>> x = np.array([1, 2, 3, 6], np.float32).reshape(1, 1, 1, 4)
>>> tensor = BufferTensorDesc.from_array(x)
>>> desc = {name}(
...     input_tensor=tensor, output_tensor=tensor, {axes}epsilon=0.5
... )
>>> result = np.empty_like(x)
>>> Device().compile(desc).dispatch(inputs=[x, None, None], outputs=[result])
>>> result.ravel()
array([-1. , -0.5,  0. ,  1.5], dtype=float32)
"""

# Batch normalization: training and gradients

_STATISTICS = (
    "Of the input's data type and rank, all of the same sizes, each 1 or the input's. Groups are "
    "taken over the dimensions of size 1."
)
_EXAMPLE = """\
>>> import numpy as np
>>> from dmlops import BufferTensorDesc, Device
>>> from dmlops import {name}
>>> x, one = np.array([[1], [2], [3], [6]], np.float32), np.ones((1, 1), np.float32)
>>> whole, group = BufferTensorDesc.from_array(x), BufferTensorDesc.from_array(one)
>>> desc = {name}(
"""
_TRAINING_EXAMPLE = """\
...     input_tensor=whole,
...     scale_tensor=group,
...     bias_tensor=group,
...     output_tensor=whole,
...     output_mean_tensor=group,
...     output_variance_tensor=group,
...     epsilon=0.5,
... )
>>> y, mean, variance = np.empty_like(x), np.empty_like(one), np.empty_like(one)
>>> Device().compile(desc).dispatch([x, 2 * one, one, None], [y, mean, variance])
>>> y.ravel(), float(mean[0, 0]), float(variance[0, 0])
(array([-1.,  0.,  1.,  4.], dtype=float32), 3.0, 3.5)
"""
_GRADIENT_EXAMPLE = """\
...     input_tensor=whole,
...     input_gradient_tensor=whole,
...     mean_tensor=group,
...     variance_tensor=group,
...     scale_tensor=group,
...     output_gradient_tensor=whole,
...     output_scale_gradient_tensor=group,
...     output_bias_gradient_tensor=group,
...     epsilon=0.5,
... )
>>> dy = np.array([[1], [0], [0], [-1]], np.float32)
>>> dx, dscale, dbias = np.empty_like(x), np.empty_like(one), np.empty_like(one)
>>> Device().compile(desc).dispatch([x, dy, 3 * one, 3.5 * one, 2 * one], [dx, dscale, dbias])
>>> dx.ravel(), float(dscale[0, 0]), float(dbias[0, 0])
"""


def _gradient(name: str, value: int, since: str, *texts: str) -> Operator:
    formula, text, result = texts
    row = Operator(
        name=name,
        value=value,
        function=name.lower(),
        formula=formula,
        text=text,
        fields=(
            Tensor("input_tensor", "The tensor that was normalized."),
            Tensor("input_gradient_tensor", "The gradient of the result, of the input's sizes."),
            Tensor("mean_tensor", _STATISTICS, broadcast=True),
            *(_group(each, "mean", _STATISTICS) for each in ("variance", "scale")),
            Tensor("output_gradient_tensor", "The gradient of the input.", output=True),
            *(
                _group(f"output_{each}_gradient", "mean", "Of the mean's sizes.", output=True)
                for each in ("scale", "bias")
            ),
            _EPSILON,
        ),
        supports=(Support(since, 1, 8),),
        in_place=False,
    )
    return replace(row, example=_EXAMPLE.format(name=row.desc) + _GRADIENT_EXAMPLE + result)


_TRAINING = Operator(
    name="BATCH_NORMALIZATION_TRAINING",
    value=151,
    function="batch_normalization_training",
    formula=f"{_FORMULA} + fused_add",
    text="Batch normalization with the mean and the variance of the input, then an activation.",
    fields=(
        _INPUT,
        Tensor("scale_tensor", _STATISTICS, broadcast=True),
        _group("bias", "scale", _STATISTICS),
        Tensor(
            "fused_add_tensor", "Of the input's sizes; added before the activation.", optional=True
        ),
        OUTPUT,
        *(
            _group(f"output_{each}", "scale", "Of the scale's sizes.", output=True)
            for each in ("mean", "variance")
        ),
        _EPSILON,
        _FUSED,
    ),
    supports=(Support("4_1", 1, 8),),
    in_place=False,
    notes="The variance is that of the population.",
)

NORMALIZATION = (
    Operator(
        name="BATCH_NORMALIZATION",
        value=72,
        function="batch_normalization",
        formula=_FORMULA,
        text="``scale * (x - mean) / sqrt(variance + epsilon) + bias``, then an activation.",
        fields=(
            _INPUT,
            *(
                Tensor(f"{name}_tensor", _PARAMETERS, broadcast=True)
                for name in ("mean", "variance", "scale", "bias")
            ),
            OUTPUT,
            Boolean(
                "spatial",
                "Below feature level 4.0, False forbids mean and variance to be broadcast in "
                "height or width; ignored from 4.0 on.",
                True,
                ignored=True,
            ),
            _EPSILON,
            _FUSED,
        ),
        supports=(Support("1_0", 4, 4), Support("3_1", 1, 8)),
        in_place=False,
        example="""\
>>> import numpy as np
>>> from dmlops import (
...     ActivationReluOperatorDesc,
...     BatchNormalizationOperatorDesc,
...     BufferTensorDesc,
...     Device,
... )
>>> x = np.array([[[1, 3], [5, 9]]], np.float32)  # 1 image, 2 channels, 2 pixels
>>> mean, variance, scale, bias = (
...     np.array(v, np.float32).reshape(1, 2, 1) for v in ([2, 7], [1, 4], [1, 1], [0, 10])
... )
>>> image, channels = BufferTensorDesc.from_array(x), BufferTensorDesc.from_array(mean)
>>> desc = BatchNormalizationOperatorDesc(
...     input_tensor=image,
...     mean_tensor=channels,
...     variance_tensor=channels,
...     scale_tensor=channels,
...     bias_tensor=channels,
...     output_tensor=image,
...     epsilon=0.0,
...     fused_activation=ActivationReluOperatorDesc(),
... )
>>> result = np.empty_like(x)
>>> Device().compile(desc).dispatch(inputs=[x, mean, variance, scale, bias], outputs=[result])
>>> result
array([[[ 0.,  1.],
        [ 9., 11.]]], dtype=float32)
""",
    ),
    _mean_variance_normalization(
        *("", 73, (Support("1_0", 4, 4),)),
        Boolean("cross_channel", "True: groups of dimensions 1 to 3. False: 2 and 3.", False),
        _NORMALIZE,
        notes="Below feature level 5.2, scale and bias must be both given or both None.",
    ),
    _mean_variance_normalization(
        *("1", 115, (Support("2_1", 4, 4), Support("3_1", 1, 8))),
        *(_AXES, _NORMALIZE),
        notes="Below feature level 5.2, scale and bias must be both given or both None; below 4.0, "
        f"their size in dimension 1 must be the input's. {_AXIS_COUNT}",
    ),
    _mean_variance_normalization(
        *("2", 171, (Support("6_3", 1, 8),), _AXES),
        Boolean("use_mean", "False: the mean counts as 0, also in the variance.", True),
        Boolean("use_variance", _NO_DIVISION, True),
        notes=_AXIS_COUNT,
    ),
    replace(_TRAINING, example=_EXAMPLE.format(name=_TRAINING.desc) + _TRAINING_EXAMPLE),
    _gradient(
        *("BATCH_NORMALIZATION_GRAD", 146, "3_1"),
        "dy * scale / sqrt(variance + epsilon)",
        "The gradients of batch normalization with constant mean and variance.",
        "(array([ 1.,  0.,  0., -1.], dtype=float32), -2.5, 0.0)\n",
    ),
    replace(
        _gradient(
            *("BATCH_NORMALIZATION_TRAINING_GRAD", 152, "4_1"),
            "scale / sqrt(variance + epsilon) * (dy - mean(dy) - (x - mean(x)) * "
            "mean(dy * (x - mean(x))) / (variance + epsilon))",
            "The gradients of batch normalization with the mean and the variance of the input.",
            "(array([ 0.375 , -0.3125,  0.    , -0.0625], dtype=float32), -2.5, 0.0)\n",
        ),
        notes="Only the gradient of the scale uses the mean tensor.",
    ),
)
