"""Clip and its gradient, and the activations with two inputs: functions of each element."""

from __future__ import annotations

from .schema import (
    FLOATS,
    INPUT,
    NUMBERS32,
    NUMBERS64,
    OUTPUT,
    SIGNED32,
    SINCE_1_0,
    DataType,
    Field,
    Number,
    Operator,
    Scalar,
    ScaleBias,
    Support,
    Tensor,
)

_SCALE_BIAS = ScaleBias(
    "scale_bias",
    "Applied before the bounds. None is no change.",
    function_text="Applied first, with a single rounding. Integers are computed in float64, "
    "truncated toward zero and saturated.",
)


def _gradient(function: str) -> Tensor:
    text = f"The gradient of {function}'s result: dtype and shape of `input`, any strides."
    return Tensor("input_gradient_tensor", function_text=text)


_OUTPUT_GRADIENT = Tensor("output_gradient_tensor", output=True)
_AT_BOUNDS = "A bound is excluded: the gradient is 0 there. A NaN element gives NaN."
_CLIP_GRADIENT = _gradient("clip")
_CLIP_GRAD = "input_gradient if min < x and x < max else 0"


def _typed_bounds(beyond: str) -> tuple[Field, ...]:
    """Return the bounds in the tensor's data type; `beyond`: of those beyond its range."""
    text = (
        "The bounds, rounded to the dtype; None or NaN is no bound. Bounds for integers must be "
        f"whole numbers; those beyond the dtype's range are {beyond}."
    )
    return (
        DataType("min_max_data_type", "Data type of the bounds; must be that of the tensors."),
        *(
            Scalar(
                name,
                "Of the data type `min_max_data_type`; NaN is no bound. A bound that does not fit "
                "is a ValidationError.",
                function_text=text,
            )
            for name in ("min", "max")
        ),
    )


ELEMENTWISE = (
    Operator(
        name="ELEMENT_WISE_CLIP",
        value=8,
        function="clip",
        formula="maximum(min, minimum(g(x), max))",
        text="``maximum(min, minimum(g(x), max))``, ``g(x) = x * scale + bias``, float32 bounds.",
        fields=(
            *(INPUT, OUTPUT, _SCALE_BIAS),
            *(
                Number(
                    name,
                    "For integer tensors truncated toward zero and saturated; NaN is no bound.",
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
        formula="maximum(min, minimum(g(x), max))",
        text="Clip with bounds in the tensor's own data type, exact for 64-bit integers.",
        fields=(
            *(INPUT, OUTPUT, _SCALE_BIAS),
            *_typed_bounds("saturated"),
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
    Operator(
        name="ELEMENT_WISE_CLIP_GRAD",
        value=142,
        function="clip_grad",
        formula=_CLIP_GRAD,
        fields=(
            *(INPUT, _CLIP_GRADIENT, _OUTPUT_GRADIENT),
            *(
                Number(name, "For integer tensors truncated toward zero; NaN is no bound.")
                for name in ("min", "max")
            ),
        ),
        supports=(
            Support("3_1", 1, 8, NUMBERS32),
            Support("5_0", 1, 8, NUMBERS64),
        ),
        notes=_AT_BOUNDS,
        example="""\
>>> import numpy as np
>>> from dmlops import BufferTensorDesc, Device, ElementWiseClipGradOperatorDesc
>>> values, gradient = np.array([-1, 0, 5, 9], np.int8), np.array([1, 2, 3, 4], np.int8)
>>> x = BufferTensorDesc.from_array(values)
>>> desc = ElementWiseClipGradOperatorDesc(
...     input_tensor=x, input_gradient_tensor=x, output_gradient_tensor=x, min=-1, max=9.5
... )
>>> Device().compile(desc).dispatch(inputs=[values, gradient], outputs=[values])
>>> values
array([0, 2, 3, 0], dtype=int8)
""",
    ),
    Operator(
        name="ELEMENT_WISE_CLIP_GRAD1",
        value=154,
        function="clip_grad",
        formula=_CLIP_GRAD,
        text="The gradient of clip, with bounds in the tensor's own data type.",
        fields=(
            *(INPUT, _CLIP_GRADIENT, _OUTPUT_GRADIENT),
            *_typed_bounds("never reached"),
        ),
        supports=(Support("5_0", 1, 8, NUMBERS64),),
        notes=_AT_BOUNDS,
        example="""\
>>> import numpy as np
>>> from dmlops import BufferTensorDesc, Device, TensorDataType
>>> from dmlops import ElementWiseClipGrad1OperatorDesc
>>> values, gradient = np.array([-1, 0, 5, 9], np.int64), np.array([1, 2, 3, 4], np.int64)
>>> x = BufferTensorDesc.from_array(values)
>>> desc = ElementWiseClipGrad1OperatorDesc(
...     input_tensor=x,
...     input_gradient_tensor=x,
...     output_gradient_tensor=x,
...     min_max_data_type=TensorDataType.INT64,
...     min=-2,
...     max=9,
... )
>>> Device().compile(desc).dispatch(inputs=[values, gradient], outputs=[values])
>>> values
array([1, 2, 3, 0])
""",
    ),
    Operator(
        name="ACTIVATION_PARAMETERIZED_RELU",
        value=42,
        function="parameterized_relu",
        formula="x if x >= 0 else slope * x",
        fields=(
            INPUT,
            Tensor(
                "slope_tensor",
                function_text="Same dtype and number of dimensions as `input`; each size is 1 or "
                "that of `input`.",
            ),
            OUTPUT,
        ),
        supports=(*SINCE_1_0, Support("5_1", 1, 8, SIGNED32)),
        notes="Products of integers are saturated.",
    ),
    Operator(
        name="ACTIVATION_RELU_GRAD",
        value=129,
        function="relu_grad",
        formula="input_gradient if x > 0 else 0",
        fields=(INPUT, _gradient("relu"), _OUTPUT_GRADIENT),
        supports=(
            Support("3_0", 4, 4),
            Support("4_0", 1, 8),
            Support("5_1", 1, 8, SIGNED32),
        ),
        in_place=False,
        notes="A NaN element gives NaN.",
    ),
)
