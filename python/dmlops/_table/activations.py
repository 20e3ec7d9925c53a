"""The activations: functions of each element, with up to two parameters.

The fusable ones come first, in the order of C++'s `Activation`; further ones are added at the end.
"""

from __future__ import annotations

from typing import Any

from .schema import INPUT, NUMBERS32, OUTPUT, SIGNED32, SINCE_1_0, Field, Number, Operator, Support

_LIMIT = "The result tends to ``-alpha`` for very negative ``x``."
_SELU_ALPHA, _SELU_GAMMA = "1.67326319217681884765625", "1.05070102214813232421875"
EXACT, ONE = 0.5, 1.0  # ulp, where it is not 2


def _activation(name: str, value: int, formula: str, *numbers: Field, **more: Any) -> Operator:
    """Return a row; the function has the operator's name in small letters."""
    row: dict[str, Any] = {"supports": SINCE_1_0, "fusable": True} | more
    return Operator(
        name=f"ACTIVATION_{name}",
        value=value,
        function=name.lower(),
        formula=formula,
        activation=True,
        fields=(INPUT, OUTPUT, *numbers),
        **row,
    )


ACTIVATIONS = (
    _activation(
        *("ELU", 35, "x if x >= 0 else alpha * (exp(x) - 1)"),
        Number("alpha", _LIMIT, "1.0"),
        results=(-0.8647, -0.2212, 1.0, 3.0),
        error=(0.518, -0.0456761308),
        work="long",
        onnx="Elu",
        onnx_attributes={"alpha": "alpha"},
    ),
    _activation(
        *("CELU", 128, "max(0, x) + min(0, alpha * (exp(x / alpha) - 1))"),
        Number("alpha", _LIMIT, "1.0"),
        supports=(Support("3_0", 1, 8),),
        results=(-0.8647, -0.2212, 1.0, 3.0),
        error=(0.518, -0.0456761308),
        remark="With alpha = 0 it is -0 below 0, the limit.",
        work="long",
        onnx="Celu",
        onnx_attributes={"alpha": "alpha"},
    ),
    _activation(
        *("HARD_SIGMOID", 37, "max(0, min(alpha * x + beta, 1))"),
        Number("alpha", "The slope.", "0.2"),
        Number("beta", "The value at 0.", "0.5"),
        results=(0.1, 0.45, 0.7, 1.0),
        error=(0.5, 2.0),
        promise=ONE,
        onnx="HardSigmoid",
        onnx_attributes={"alpha": "alpha", "beta": "beta"},
    ),
    _activation(
        *("IDENTITY", 38, "x"),
        results=(-2.0, -0.25, 1.0, 3.0),
        promise=EXACT,
    ),
    _activation(
        *("LEAKY_RELU", 39, "x if x >= 0 else alpha * x"),
        Number("alpha", "The slope below 0.", "0.01"),
        results=(-0.02, -0.0025, 1.0, 3.0),
        promise=EXACT,
        onnx="LeakyRelu",
        onnx_attributes={"alpha": "alpha"},
    ),
    _activation(
        *("LINEAR", 40, "alpha * x + beta"),
        Number("alpha", "The slope.", "1.0"),
        Number("beta", "The value at 0.", "0.0"),
        results=(-2.0, -0.25, 1.0, 3.0),
        promise=ONE,
    ),
    _activation(
        *("PARAMETRIC_SOFTPLUS", 43, "alpha * ln(1 + exp(beta * x))"),
        Number("alpha", "The factor of the result.", "1.0"),
        Number("beta", "The factor of ``x``.", "1.0"),
        results=(0.1269, 0.5759, 1.3133, 3.0486),
        error=(1.181, 0.493501753),
        work="long",
    ),
    _activation(
        *("RELU", 44, "max(0, x)"),
        supports=(*SINCE_1_0, Support("5_1", 1, 8, SIGNED32)),
        results=(0.0, 0.0, 1.0, 3.0),
        promise=EXACT,
        onnx="Relu",
    ),
    _activation(
        *("SCALED_ELU", 45, "gamma * x if x > 0 else gamma * (alpha * exp(x) - alpha)"),
        Number(
            "alpha",
            "The limit for very negative ``x``, before `gamma`.",
            _SELU_ALPHA,
        ),
        Number("gamma", "The factor of the result.", _SELU_GAMMA),
        results=(-1.5202, -0.3889, 1.0507, 3.1521),
        error=(1.392, -0.0354952514),
        work="long",
        onnx="Selu",
        onnx_attributes={"alpha": "alpha", "gamma": "gamma"},
    ),
    _activation(
        *("SCALED_TANH", 46, "alpha * tanh(beta * x)"),
        Number("alpha", "The factor of the result.", "1.0"),
        Number("beta", "The factor of ``x``.", "0.5"),
        results=(-0.7616, -0.1244, 0.4621, 0.9051),
        error=(1.431, 1.31147277),
        work="long",
    ),
    _activation(
        *("SIGMOID", 47, "1 / (1 + exp(-x))"),
        results=(0.1192, 0.4378, 0.7311, 0.9526),
        error=(1.646, -1.09932613),
        work="long",
        onnx="Sigmoid",
    ),
    _activation(
        *("SOFTPLUS", 49, "ln(1 + exp(steepness * x)) / steepness"),
        Number(
            "steepness",
            "The factor of ``x``, at least 1 below feature level 6.4.",
            "1.0",
            function_text="The factor of ``x``.",
        ),
        results=(0.1269, 0.5759, 1.3133, 3.0486),
        error=(1.181, 0.493501753),
        work="long",
        onnx="Softplus",
    ),
    _activation(
        *("SOFTSIGN", 50, "x / (1 + abs(x))"),
        results=(-0.6667, -0.2, 0.5, 0.75),
        error=(1.499, 2047.37488),
        onnx="Softsign",
    ),
    _activation(
        *("TANH", 51, "tanh(x)"),
        results=(-0.964, -0.2449, 0.7616, 0.9951),
        error=(0.503, 0.0224130899),
        work="long",
        onnx="Tanh",
    ),
    _activation(
        *("THRESHOLDED_RELU", 52, "x if x > alpha else 0"),
        Number("alpha", "The threshold.", "1.0"),
        results=(0.0, 0.0, 0.0, 3.0),
        promise=EXACT,
        onnx="ThresholdedRelu",
        onnx_attributes={"alpha": "alpha"},
    ),
    _activation(
        *("SHRINK", 90, "x - bias if x > threshold else x + bias if x < -threshold else 0"),
        Number("bias", "The amount by which larger magnitudes are moved toward 0.", "0.0"),
        Number("threshold", "Values from ``-threshold`` to ``threshold`` become 0.", "0.5"),
        supports=(Support("2_0", 4, 5), Support("3_0", 1, 8), Support("5_1", 1, 8, NUMBERS32)),
        results=(-2.0, 0.0, 1.0, 3.0),
        promise=EXACT,
        remark="Integers are computed in float64, truncated toward zero and saturated.",
        onnx="Shrink",
        onnx_attributes={"bias": "bias", "threshold": "lambd"},
    ),
    _activation(
        *("GELU", 157, "0.5 * x * (1 + erf(x / sqrt(2)))"),
        supports=(Support("5_1", 1, 8),),
        results=(-0.0455, -0.1003, 0.8413, 2.996),
        error=(1.917, -2.2012229),
        work="long",
    ),
    _activation(
        *("HARD_SWISH", 168, "x * max(0, min(alpha * x + beta, 1))"),
        Number("alpha", "The slope of the factor.", "0.16666667163372039794921875"),
        Number("beta", "The factor at 0.", "0.5"),
        supports=(Support("6_2", 1, 8),),
        fusable=False,
        results=(-0.3333, -0.1146, 0.6667, 3.0),
        error=(1.492, 0.00194531679),
        promise=1.5,
        onnx="HardSwish",
    ),
    _activation(
        *("SWISH", 167, "x / (1 + exp(-sigmoid_input_scale * x))"),
        Number("sigmoid_input_scale", "The factor of ``x`` in the sigmoid.", "1.0"),
        supports=(Support("6_2", 1, 8),),
        fusable=False,
        results=(-0.2384, -0.1095, 0.7311, 2.8577),
        error=(1.854, -5.93846893),
        remark="With the scale 1 it is SiLU.",
        work="long",
        onnx="Swish",
        onnx_attributes={"sigmoid_input_scale": "alpha"},
    ),
)
