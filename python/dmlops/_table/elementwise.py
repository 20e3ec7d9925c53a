"""Clip: a function of each element, with bounds in several types."""

from __future__ import annotations

from .schema import (
    FLOATS,
    NUMBERS32,
    NUMBERS64,
    DataType,
    Number,
    Operator,
    Scalar,
    ScaleBias,
    Support,
    Tensor,
)

_SAME = "Of the same data type and sizes."
_INPUT = Tensor("input_tensor", _SAME)
_OUTPUT = Tensor("output_tensor", _SAME, output=True)
_SCALE_BIAS = ScaleBias("scale_bias", "Applied first. None is no change.")

ELEMENTWISE = (
    Operator(
        name="ELEMENT_WISE_CLIP",
        value=8,
        function="clip",
        family="clip",
        formula="max(min, minimum(g(x), max))",
        text="``max(min, minimum(g(x), max))`` with float32 bounds, ``g(x) = x * scale + bias``.",
        fields=(
            *(_INPUT, _OUTPUT, _SCALE_BIAS),
            *(
                Number(
                    name,
                    "Truncated toward zero and saturated for integer tensors. NaN is no bound.",
                )
                for name in ("min", "max")
            ),
        ),
        supports=(
            Support("1_0", 4, 4, FLOATS),
            Support("2_1", 4, 4, NUMBERS32),
            Support("3_0", 1, 8, NUMBERS32),
            Support("5_0", 1, 8, NUMBERS64),
        ),
        example="""\
>>> import numpy as np
>>> from dmlops import BufferTensorDesc, Device, ElementWiseClipOperatorDesc, TensorDataType
>>> x = BufferTensorDesc(TensorDataType.INT8, (4,))
>>> desc = ElementWiseClipOperatorDesc(input_tensor=x, output_tensor=x, min=-2.5, max=1e9)
>>> values = np.array([-100, -2, 0, 100], np.int8)
>>> Device().compile(desc).dispatch(inputs=[values], outputs=[values])
>>> values
array([ -2,  -2,   0, 100], dtype=int8)
""",
    ),
    Operator(
        name="ELEMENT_WISE_CLIP1",
        value=153,
        function="clip",
        family="clip1",
        formula="max(min, minimum(g(x), max))",
        text="Clip with bounds in the tensor's own data type, exact for 64-bit integers.",
        fields=(
            *(_INPUT, _OUTPUT, _SCALE_BIAS),
            DataType("min_max_data_type", "Data type of the bounds; must be that of the tensors."),
            *(
                Scalar(name, "Values of that data type. NaN is no bound.")
                for name in ("min", "max")
            ),
        ),
        supports=(Support("5_0", 1, 8, NUMBERS64),),
        example="""\
>>> import numpy as np
>>> from dmlops import BufferTensorDesc, Device, ElementWiseClip1OperatorDesc, TensorDataType
>>> values = np.array([2**62 + 3, 5], np.int64)
>>> x = BufferTensorDesc.from_array(values)
>>> desc = ElementWiseClip1OperatorDesc(
...     input_tensor=x,
...     output_tensor=x,
...     min_max_data_type=TensorDataType.INT64,
...     min=7,
...     max=2**62 + 1,
... )
>>> Device().compile(desc).dispatch(inputs=[values], outputs=[values])
>>> values - 2**62
array([                   1, -4611686018427387897])
""",
    ),
)
