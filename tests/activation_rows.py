"""The activations: the facts of DirectML's documents, the allowed error, and values to test with.

Copied from the documents by hand, independently of the package's table. The reference is the
formula of the same name in `dmlops/_accuracy/exact.py`. `tools/generate.py` writes both in C++ for
the tests in `cpp/`, with Microsoft's declarations of the structs. Imports nothing that is compiled.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

# In ulp of float32. Linear formulas are rounded once, and so are those in extended precision, whose
# own error is added; a product with their result is rounded again, and can double their error.
LINEAR, CURVED = 0.5, 2.0
BEYOND_FLOAT32 = 0.52
PRODUCT = 2 * BEYOND_FLOAT32 + 0.5
PRODUCT_OF_LINES = 1.5  # a factor rounded once, which counts up to twice, and the product


@dataclass(frozen=True)
class Row:
    """An activation.

    Parameters
    ----------
    name, value, since : str, int, str
        The function, DirectML's number of the operator, and the feature level that adds it.
    ulps : float
        The error that is allowed.
    limits : tuple of float
        The results at -infinity and infinity with the default parameters.
    fields : tuple of str
        The FLOAT fields of the struct, after the two tensors.
    parameters : tuple of tuple of float
        Values of these fields, the defaults first.
    default_ulps : float, optional
        The error that is allowed with the default parameters, if it is smaller.
    fusable : bool
        True if a normalization can fuse the activation.
    """

    name: str
    value: int
    since: str
    ulps: float
    limits: tuple[float, float]
    fields: tuple[str, ...] = ()
    parameters: tuple[tuple[float, ...], ...] = ((),)
    default_ulps: float | None = None
    fusable: bool = True


_UP, _ALL, _UNIT, _ODD = (0, math.inf), (-math.inf, math.inf), (0, 1), (-1, 1)
_SELU_LIMIT = struct.unpack("f", struct.pack("f", -1.7580993))[0]
_INF, _NAN = math.inf, math.nan
_ONE = ((1.0,), (0.5,), (-2.0,), (0.0,), (1e30,), (1e-40,))

# In the order of the table.
ROWS = (
    Row("elu", 35, "1_0", PRODUCT, (-1, _INF), ("alpha",), (*_ONE, (_NAN,)), BEYOND_FLOAT32),
    Row(
        *("celu", 128, "3_0", CURVED, (-1, _INF), ("alpha",)),
        (*_ONE, (3.0,), (0.001,), (-0.001,), (-1e-37,), (-1e10,)),
        BEYOND_FLOAT32,
    ),
    Row(
        *("hard_sigmoid", 37, "1_0", LINEAR, _UNIT, ("alpha", "beta")),
        ((0.2, 0.5), (1 / 6, 0.5), (-0.2, 0.5), (0.0, 0.25), (_INF, 0.0), (0.2, _NAN)),
    ),
    Row("identity", 38, "1_0", LINEAR, _ALL),
    Row(
        *("leaky_relu", 39, "1_0", LINEAR, _ALL, ("alpha",)),
        ((0.01,), (0.3,), (-1.5,), (0.0,), (1e-40,), (3e38,), (_INF,), (_NAN,)),
    ),
    Row(
        *("linear", 40, "1_0", LINEAR, _ALL, ("alpha", "beta")),
        (
            *((1.0, 0.0), (2.0, -1.0), (1 / 3, 2 / 3), (-0.7, 1e-6), (0.0, 3.0), (1e38, -1e38)),
            *((1e-40, 1e-41), (_INF, 1.0), (1.0, -_INF), (_NAN, 0.0)),
        ),
    ),
    Row(
        *("parametric_softplus", 43, "1_0", CURVED, _UP, ("alpha", "beta")),
        (
            *((1.0, 1.0), (0.5, 2.0), (-1.5, 0.7), (2.0, -3.0), (0.0, 1.0), (1.0, 0.0)),
            *((1e30, 1e-3), (1e-40, 1.0), (1e-30, 1e30), (3.0, 1e-40), (_NAN, 1.0), (1.0, _NAN)),
            *((1e-40, 1e-38), (1e-45, -1e-45), (1.8588975e37, 3.091656e-19)),
        ),
    ),
    Row("relu", 44, "1_0", LINEAR, _UP),
    Row(
        *("scaled_elu", 45, "1_0", PRODUCT, (_SELU_LIMIT, _INF), ("alpha", "gamma")),
        (
            *((1.67326319217681884765625, 1.05070102214813232421875), (1.6732, 1.0507)),
            *((0.5, -2.0), (-1.0, 3.0), (0.0, 1.0), (1.0, 0.0)),
            *((1e30, 1e-30), (1e-20, 1e-20), (3e38, 3e38), (-21.396524, -4.0936763e-39)),
            *((1e-45, 1e-45), (_NAN, 1.0)),
        ),
    ),
    Row(
        *("scaled_tanh", 46, "1_0", CURVED, _ODD, ("alpha", "beta")),
        (
            *((1.0, 0.5), (1.0, 1.0), (1.7159, 2 / 3), (-2.0, 0.3), (0.4, -5.0), (0.0, 1.0)),
            *((1.0, 0.0), (1e-40, 1.0), (1e30, 1e-30), (1e-30, 1e30), (_NAN, 1.0), (1.0, _NAN)),
        ),
    ),
    Row("sigmoid", 47, "1_0", CURVED, _UNIT),
    Row(
        *("softplus", 49, "1_0", CURVED, _UP, ("steepness",)),
        (
            *((1.0,), (2.0,), (50.0,), (0.1,), (1e-3,), (-1.0,), (1e30,), (1e-40,), (2.14e-35,)),
            *((0.0,), (_NAN,)),
        ),
    ),
    Row("softsign", 50, "1_0", CURVED, _ODD),
    Row("tanh", 51, "1_0", BEYOND_FLOAT32, _ODD),
    Row(
        *("thresholded_relu", 52, "1_0", LINEAR, _UP, ("alpha",)),
        ((1.0,), (0.3,), (0.0,), (-1.5,), (1e-40,), (_INF,), (-_INF,), (_NAN,)),
    ),
    Row(
        *("shrink", 90, "2_0", LINEAR, _ALL, ("bias", "threshold")),
        (
            *((0.0, 0.5), (0.5, 0.5), (0.1, 1.0), (-0.7, 2.0), (3.0, 0.0), (0.25, -1.0)),
            *((1e30, 1.0), (0.5, _INF), (_INF, 1.0), (0.5, _NAN), (_NAN, 0.5)),
        ),
    ),
    Row("gelu", 157, "5_1", CURVED, _UP),
    # The formula multiplies -infinity by 0.
    Row(
        *("hard_swish", 168, "6_2", PRODUCT_OF_LINES, (_NAN, _INF), ("alpha", "beta")),
        (
            *((1 / 6, 0.5), (0.2, 0.5), (-0.25, 1.5), (0.0, 0.25), (1.0, 0.0)),
            *((1e-44, 0.0), (-1e-40, 1e-42), (1e30, -1e30), (_INF, 0.0), (_NAN, 0.5), (0.2, _NAN)),
        ),
        fusable=False,
    ),
    # The formula divides -infinity by infinity.
    Row(
        *("swish", 167, "6_2", CURVED, (_NAN, _INF), ("sigmoid_input_scale",)),
        (
            *((1.0,), (1.702,), (-0.75,), (0.0,), (1e-3,), (1e30,), (-1e-38,), (1e-40,), (3e38,)),
            *((0.0078125,), (_NAN,)),
        ),
        fusable=False,
    ),
)
FUSABLE = tuple(row for row in ROWS if row.fusable)
