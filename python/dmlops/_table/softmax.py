"""The softmax family: each result depends on its whole group."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from .schema import INPUT, OUTPUT, SINCE_1_0, Axes, Operator, Support, Tensor

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
    row = partial(Operator, function=function, formula=formula, in_place=False)
    old = row(
        name=name,
        value=values[0],
        text=f"{text} over the last dimension.",
        fields=(
            Tensor("input_tensor", "At most 2 dimensions besides leading sizes of 1."),
            OUTPUT,
        ),
        supports=SINCE_1_0,
    )
    new = row(
        name=f"{name}1",
        value=values[1],
        text=f"{text} over any dimensions, together.",
        fields=(
            *(INPUT, OUTPUT),
            Axes(
                "axes",
                "The dimensions that make up a group: at least one, none twice, in any order.",
                function_text="The axes; a negative one counts from the end. An array "
                "without dimensions has axis 0, as in NumPy's reductions.",
            ),
        ),
        supports=(Support("5_1", 1, 8),),
        notes="AxisCount is the length of `axes`.",
    )
    return (
        replace(old, rows_only=new.desc, example=_OLD.format(name=old.desc)),
        replace(new, example=_NEW.format(name=new.desc) + result),
    )


SOFTMAX = (
    *_softmax_family(
        *("log_softmax", (41, 159), "(x - max) - ln(sum(exp(x - max)))"),
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
        *("hardmax", (36, 160), "1 if i == argmax(x) else 0"),
        "1 at the first maximum, and 0 elsewhere,",
        """\
array([[1., 0.],
       [0., 0.]], dtype=float32)
""",
    ),
)
