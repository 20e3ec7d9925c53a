"""Normalization, and the softmax family: results that depend on several elements."""

from __future__ import annotations

from functools import partial

from .schema import SINCE_1_0, Activation, Axes, Boolean, Number, Operator, Support, Tensor

_SAME = "Of the same data type and sizes."
_OUTPUT = Tensor("output_tensor", _SAME, output=True)
_PARAMETERS = (
    "The parameters, of the input's data type and dimension count; each size is 1 or the input's."
)

_OLD = """\
>>> from dmlops import {name}, BufferTensorDesc, TensorDataType
>>> from dmlops import required_feature_level
>>> x = BufferTensorDesc(TensorDataType.FLOAT32, (1, 1, 8, 10))
>>> desc = {name}(input_tensor=x, output_tensor=x)
>>> required_feature_level(desc)
FeatureLevel.LEVEL_1_0
"""
_NEW = """\
>>> import numpy as np
>>> from dmlops import {name}, BufferTensorDesc, Device
>>> x = np.array([[2, 0], [1, 1]], np.float32)
>>> tensor = BufferTensorDesc.from_array(x)
>>> desc = {name}(
...     input_tensor=tensor, output_tensor=tensor, axes=(0, 1)
... )
>>> result = np.empty_like(x)
>>> Device().compile(desc).dispatch(inputs=[x], outputs=[result])
>>> result.round(3)
"""


def _softmax_family(
    function: str, values: tuple[int, int], formula: str, text: str, result: str
) -> tuple[Operator, Operator]:
    """Return the rows over the last dimension, and over any dimensions."""
    name = f"ACTIVATION_{function.upper()}"
    new_desc = "".join(word.capitalize() for word in f"{name}1_OPERATOR_DESC".split("_"))
    row = partial(Operator, function=function, family=function, formula=formula, in_place=False)
    return (
        row(
            name=name,
            value=values[0],
            text=f"{text} over the last dimension.",
            fields=tuple(
                Tensor(
                    f"{tensor}_tensor",
                    "Of the same data type and sizes; without leading sizes of 1, at most 2 "
                    "dimensions.",
                    output=tensor == "output",
                )
                for tensor in ("input", "output")
            ),
            supports=SINCE_1_0,
            rows_only=new_desc,
            example=_OLD.format(name=new_desc.replace("1Operator", "Operator")),
        ),
        row(
            name=f"{name}1",
            value=values[1],
            text=f"{text} over any dimensions, together.",
            fields=(
                *(Tensor("input_tensor", _SAME), _OUTPUT),
                Axes(
                    "axes",
                    "The dimensions that make up a group: at least one, none twice, in any order.",
                ),
            ),
            supports=(Support("5_1", 1, 8),),
            notes="AxisCount is the length of `axes`.",
            example=_NEW.format(name=new_desc) + result,
        ),
    )


REDUCTIONS = (
    Operator(
        name="BATCH_NORMALIZATION",
        value=72,
        function="batch_normalization",
        family="batch_normalization",
        formula="scale * (x - mean) / sqrt(variance + epsilon) + bias",
        text="``scale * (x - mean) / sqrt(variance + epsilon) + bias``, then an activation.",
        fields=(
            Tensor("input_tensor", "The tensor to normalize."),
            *(
                Tensor(f"{name}_tensor", _PARAMETERS, broadcast=True)
                for name in ("mean", "variance", "scale", "bias")
            ),
            Tensor("output_tensor", "Of the input's data type and sizes.", output=True),
            Boolean(
                "spatial",
                "Below feature level 4.0, False forbids mean and variance to be broadcast in "
                "height or width; ignored from 4.0 on.",
                True,
            ),
            Number("epsilon", "Added to the variance.", "1e-5"),
            Activation(
                "fused_activation",
                "A descriptor without tensors, such as ``ActivationReluOperatorDesc()``, or a "
                'name, such as ``"relu"``, for the default parameters.',
            ),
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
    *_softmax_family(
        *("log_softmax", (41, 159), "x - max - ln(sum(exp(x - max)))"),
        "The logarithm of the softmax",
        """\
array([[-0.627, -2.627],
       [-1.627, -1.627]], dtype=float32)
""",
    ),
    *_softmax_family(
        *("softmax", (48, 158), "exp(x - max) / sum(exp(x - max))"),
        "Exponentials, divided by their sum",
        """\
array([[0.534, 0.072],
       [0.197, 0.197]], dtype=float32)
""",
    ),
    *_softmax_family(
        *("hardmax", (36, 160), "1 if x is the first maximum else 0"),
        "1 at the first maximum, and 0 elsewhere,",
        """\
array([[1., 0.],
       [0., 0.]], dtype=float32)
""",
    ),
)
