"""The activations, with their documentation: one row each."""

from dmlops import _core
from dmlops._core import (
    celu,
    elu,
    gelu,
    hard_sigmoid,
    identity,
    leaky_relu,
    linear,
    parametric_softplus,
    relu,
    scaled_elu,
    scaled_tanh,
    shrink,
    sigmoid,
    softplus,
    softsign,
    tanh,
    thresholded_relu,
)
from dmlops._operators import FLOATS, document

__all__ = [
    "celu",
    "elu",
    "gelu",
    "hard_sigmoid",
    "identity",
    "leaky_relu",
    "linear",
    "parametric_softplus",
    "relu",
    "scaled_elu",
    "scaled_tanh",
    "shrink",
    "sigmoid",
    "softplus",
    "softsign",
    "tanh",
    "thresholded_relu",
]

_TEXT = """\
Compute ``{formula}`` for each element.

Parameters
----------
{{input}}
{parameters}{{out}}

{{returns}}

{{raises}}

Notes
-----
DirectML's DML_ACTIVATION_{upper}_OPERATOR_DESC. float16 is computed in float32 and
rounded once. A NaN stays NaN.{notes}

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> y = dmlops.{name}(np.array([-2, -0.25, 1, 3], np.float32))
>>> [round(float(value), 4) for value in y]
{example}
"""


def _document(
    name: str,
    formula: str,
    example: list[float],
    *,
    dtypes: str = FLOATS,
    error: tuple[float, float] | None = None,
    singular: str = "",
    **parameters: float,
) -> None:
    notes = ""
    if error is not None:
        ulp, x = error
        notes += (
            f"\n\nThe largest error of all float32 inputs, with the default parameters, is {ulp}"
            f"\nunits in the last place, at x = {x!r}."
        )
    if parameters:
        notes += (
            "\n\nA parameter may be zero, infinite or NaN: the result is the formula's in IEEE"
            "\narithmetic; with an infinite parameter inside of exp or tanh it may be NaN."
        )
    if singular:
        notes += f"\n{singular}"
    defaults = "".join(f"{parameter}={value}, " for parameter, value in parameters.items())
    text = _TEXT.format(
        formula=formula,
        parameters="".join(
            f"{parameter} : float, default {value}\n    A parameter of the formula, as float32.\n"
            for parameter, value in parameters.items()
        ),
        upper=name.upper(),
        notes=notes,
        name=name,
        example=example,
    )
    document(getattr(_core, name), f"{name}(input, {defaults}*, out=None)", text, dtypes=dtypes)


_document(
    "elu",
    "x if x >= 0 else alpha * (exp(x) - 1)",
    [-0.8647, -0.2212, 1.0, 3.0],
    alpha=1.0,
    error=(0.518, -0.0456761308),
)
_document(
    "celu",
    "max(0, x) + minimum(0, alpha * (exp(x / alpha) - 1))",
    [-0.8647, -0.2212, 1.0, 3.0],
    alpha=1.0,
    error=(0.518, -0.0456761308),
    singular="With alpha = 0 it is -0 below 0, the limit.",
)
_document(
    "hard_sigmoid",
    "max(0, minimum(alpha * x + beta, 1))",
    [0.1, 0.45, 0.7, 1.0],
    alpha=0.2,
    beta=0.5,
    error=(0.5, 2.0),
)
_document("identity", "x", [-2.0, -0.25, 1.0, 3.0])
_document("leaky_relu", "x if x >= 0 else alpha * x", [-0.02, -0.0025, 1.0, 3.0], alpha=0.01)
_document("linear", "alpha * x + beta", [-2.0, -0.25, 1.0, 3.0], alpha=1.0, beta=0.0)
_document(
    "parametric_softplus",
    "alpha * ln(1 + exp(beta * x))",
    [0.1269, 0.5759, 1.3133, 3.0486],
    alpha=1.0,
    beta=1.0,
    error=(1.181, 0.493501753),
)
_document(
    "relu",
    "max(0, x)",
    [0.0, 0.0, 1.0, 3.0],
    dtypes="float32, float16, or a signed integer of 8 to 32 bits",
)
_document(
    "scaled_elu",
    "gamma * x if x > 0 else gamma * (alpha * exp(x) - alpha)",
    [-1.5202, -0.3889, 1.0507, 3.1521],
    alpha=1.6732632,
    gamma=1.050701,
    error=(1.392, -0.0354952514),
)
_document(
    "scaled_tanh",
    "alpha * tanh(beta * x)",
    [-0.7616, -0.1244, 0.4621, 0.9051],
    alpha=1.0,
    beta=0.5,
    error=(1.431, 1.31147277),
)
_document(
    "sigmoid", "1 / (1 + exp(-x))", [0.1192, 0.4378, 0.7311, 0.9526], error=(1.647, -1.09932613)
)
_document(
    "softplus",
    "ln(1 + exp(steepness * x)) / steepness",
    [0.1269, 0.5759, 1.3133, 3.0486],
    steepness=1.0,
    error=(1.181, 0.493501753),
    singular="DirectML takes a steepness below 1 from feature level 6.4 on.",
)
_document("softsign", "x / (1 + abs(x))", [-0.6667, -0.2, 0.5, 0.75], error=(1.5, 2047.37488))
_document("tanh", "tanh(x)", [-0.964, -0.2449, 0.7616, 0.9951], error=(0.503, 0.0224130899))
_document("thresholded_relu", "x if x > alpha else 0", [0.0, 0.0, 0.0, 3.0], alpha=1.0)
_document(
    "shrink",
    "x - bias if x > threshold else x + bias if x < -threshold else 0",
    [-2.0, 0.0, 1.0, 3.0],
    dtypes="float32, float16, or an integer of 8 to 32 bits",
    bias=0.0,
    threshold=0.5,
)
_document(
    "gelu",
    "0.5 * x * (1 + erf(x / sqrt(2)))",
    [-0.0455, -0.1003, 0.8413, 2.996],
    error=(1.918, -2.2012229),
)
