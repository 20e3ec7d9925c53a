"""The operators other than activations, which are built-in functions, and their docstrings."""

from dmlops import _core
from dmlops._docstrings import document
from dmlops._table import OPERATORS
from dmlops._table.schema import NUMBERS64

__all__ = sorted({row.function for row in OPERATORS if row.family != "activation"})  # noqa: PLE0605
globals().update({name: getattr(_core, name) for name in __all__})

document(
    _core.clip,
    "clip(input, min=None, max=None, *, scale_bias=None, out=None)",
    """\
Limit each element to the range from `min` to `max`.

Computes ``max(min, minimum(g(x), max))`` with ``g(x) = x * scale + bias`` if
`scale_bias` is given, and ``g(x) = x`` otherwise. If `min` is greater than `max`,
every result is `min`.

Parameters
----------
{input}
min, max : float or int, optional
    The bounds, rounded to the dtype; None or NaN is no bound. Bounds for integers
    must be whole numbers; those beyond the dtype's range are saturated.
scale_bias : ScaleBias, optional
    Applied first, with a single rounding. Integers are computed in float64,
    truncated toward zero and saturated.
{out}

{returns}

{raises}

Notes
-----
DirectML's DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC. A NaN element stays NaN.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> dmlops.clip(np.array([-3, 0.5, 9], np.float32), 0, 6)
array([0. , 0.5, 6. ], dtype=float32)
>>> contrast = dmlops.ScaleBias(scale=2.0, bias=-100.0)
>>> dmlops.clip(np.array([10, 100, 200], np.uint8), scale_bias=contrast)
array([  0, 100, 255], dtype=uint8)
""",
    dtypes=NUMBERS64.given,
)

document(
    _core.batch_normalization,
    "batch_normalization(input, mean, variance, scale, bias, epsilon=1e-05, *, "
    "fused_activation=None, out=None)",
    """\
Normalize each element with a mean and a variance, then scale and shift it.

Computes ``scale * (x - mean) / sqrt(variance + epsilon) + bias``.

Parameters
----------
{input}
mean, variance, scale, bias : numpy.ndarray
    The parameters, of the dtype and the number of dimensions of `input`; each size
    is 1 or that of `input`.
epsilon : float, default 1e-5
    Added to the variance, as float32.
fused_activation : descriptor or name of an activation, optional
    Applied in the same pass: a descriptor without tensors, such as
    ``ActivationLeakyReluOperatorDesc(alpha=0.1)``, or a name, such as ``"relu"``,
    for the default parameters.
{out}

{returns}

{raises}

Notes
-----
DirectML's DML_BATCH_NORMALIZATION_OPERATOR_DESC. The mean is subtracted first;
float16 is computed in float32 and rounded once.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> x = np.array([[[1, 3], [5, 9]]], np.float32)  # 1 image, 2 channels, 2 pixels
>>> def channels(*values):
...     return np.array(values, np.float32).reshape(1, 2, 1)
>>> dmlops.batch_normalization(
...     x, channels(2, 7), channels(1, 4), channels(1, 1), channels(0, 10), epsilon=0
... )
array([[[-1.,  1.],
        [ 9., 11.]]], dtype=float32)
""",
)

document(
    _core.log_softmax,
    "log_softmax(input, axes=-1, *, out=None)",
    """\
Compute the logarithm of the softmax over one or several axes.

Computes ``(x - max) - ln(sum(exp(x - max)))``; maximum and sum go over all listed
axes together.

Parameters
----------
{input}
axes : int or sequence of int, default -1
    The axes that make up a group; a negative one counts from the end.
{out}

{returns}

{raises}

Notes
-----
DirectML's DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC. A group with a NaN or a
positive infinity, or of negative infinities only, is NaN throughout.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> dmlops.log_softmax(np.array([[1, 1], [0, 0]], np.float32))
array([[-0.6931472, -0.6931472],
       [-0.6931472, -0.6931472]], dtype=float32)
>>> y = dmlops.log_softmax(np.array([[2, 0], [1, 1]], np.float32), axes=(0, 1))
>>> y.round(3).tolist() == np.array([[-0.627, -2.627], [-1.627, -1.627]], np.float32).tolist()
True
""",
)

document(
    _core.softmax,
    "softmax(input, axes=-1, *, out=None)",
    """\
Normalize exponentials so that they sum to 1 over the given axes.

Computes ``exp(x - max) / sum(exp(x - max))``, with the maximum and the sum over all
of `axes` together.

Parameters
----------
{input}
axes : int or sequence of int, default -1
    The axes; a negative one counts from the end. An array without dimensions has
    axis 0, as in NumPy's reductions.
{out}

{returns}

{raises}

Notes
-----
DirectML's DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC. A group that holds a NaN or
``+inf``, or only ``-inf``, is NaN throughout; in other groups, ``-inf`` gives 0.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> dmlops.softmax(np.array([[1, 1], [0, 0]], np.float32))
array([[0.5, 0.5],
       [0.5, 0.5]], dtype=float32)
>>> float(dmlops.softmax(np.array([[2, 0], [1, 1]], np.float32), axes=(0, 1)).sum())
1.0
""",
)

document(
    _core.hardmax,
    "hardmax(input, axes=-1, *, out=None)",
    """\
Set the first maximum over the given axes to 1, and all other elements to 0.

Parameters
----------
{input}
axes : int or sequence of int, default -1
    The axes, whose elements are compared together, in row-major order; a negative
    one counts from the end. An array without dimensions has axis 0, as in NumPy's
    reductions.
{out}

{returns}

{raises}

Notes
-----
DirectML's DML_ACTIVATION_HARDMAX1_OPERATOR_DESC. The first NaN counts as the
maximum, as in ``numpy.argmax``.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> dmlops.hardmax(np.array([[1, 3, 3], [0, -1, 0]], np.float32))
array([[0., 1., 0.],
       [1., 0., 0.]], dtype=float32)
""",
)
