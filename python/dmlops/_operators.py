"""The operators other than activations, which are built-in functions, and their docstrings."""

from dmlops import _core, _normalization  # noqa: F401 attaches docstrings
from dmlops._docstrings import document
from dmlops._table import OPERATORS

__all__ = sorted({row.function for row in OPERATORS if row.family != "activation"})  # noqa: PLE0605
globals().update({name: getattr(_core, name) for name in __all__})

document(
    _core.clip,
    "clip(input, min=None, max=None, *, scale_bias=None, out=None)",
    """\
Limit each element to the range from `min` to `max`.

Computes ``{formula}`` with ``g(x) = x * scale + bias`` if
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
Implements {struct}. A NaN element stays NaN.

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
)

document(
    _core.clip_grad,
    "clip_grad(input, input_gradient, min=None, max=None, *, out=None)",
    """\
Compute the gradient of clip: `input_gradient` within the bounds, and 0 elsewhere.

Computes ``{formula}``. At both bounds,
the result is 0.

Parameters
----------
{input}
input_gradient : numpy.ndarray
    The gradient of clip's result: dtype and shape of `input`, any strides.
min, max : float or int, optional
    The bounds of clip, rounded to the dtype; None or NaN is no bound. Bounds for
    integers must be whole numbers; those beyond the dtype's range are never reached.
{out}

{returns}

{raises}

Notes
-----
Implements {struct}. A NaN element gives NaN, so
that it is not lost. PyTorch's gradient of hardtanh is 0 at the bounds too, but passes the
gradient of a NaN; ONNX has no such operator.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> x, gradient = np.array([-3, 0, 2, 6], np.float32), np.array([1, 2, 3, 4], np.float32)
>>> dmlops.clip_grad(x, gradient, 0, 6)
array([0., 0., 3., 0.], dtype=float32)
""",
)

document(
    _core.relu_grad,
    "relu_grad(input, input_gradient, *, out=None)",
    """\
Compute the gradient of relu: `input_gradient` at positive elements, and 0 elsewhere.

Computes ``{formula}``.

Parameters
----------
{input}
input_gradient : numpy.ndarray
    The gradient of relu's result: dtype and shape of `input`, any strides.
{out}

{returns}

{raises}

Notes
-----
Implements {struct}. A NaN element gives NaN, so that
it is not lost. PyTorch passes the gradient there; ONNX has no such operator.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> x, gradient = np.array([-3, 0, 2], np.float32), np.array([1, 2, 3], np.float32)
>>> dmlops.relu_grad(x, gradient)
array([0., 0., 3.], dtype=float32)
""",
)

document(
    _core.parameterized_relu,
    "parameterized_relu(input, slope, *, out=None)",
    """\
Multiply negative elements by a slope, which may differ for each element.

Computes ``{formula}``. Products of integers are saturated.

Parameters
----------
{input}
slope : numpy.ndarray
    Same dtype and number of dimensions as `input`; each size is 1 or that of `input`.
{out}

{returns}

{raises}

Notes
-----
Implements {struct}, where the slope
must have the input's sizes. A NaN element stays NaN.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> x = np.array([[-2, 4], [-8, 1]], np.float32)
>>> dmlops.parameterized_relu(x, np.array([[0.5], [0.25]], np.float32))
array([[-1.,  4.],
       [-2.,  1.]], dtype=float32)
""",
)

document(
    _core.log_softmax,
    "log_softmax(input, axes=-1, *, out=None)",
    """\
Compute the logarithm of the softmax over one or several axes.

Computes ``{formula}``, with the maximum and the sum
over all of `axes` together.

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
Implements {struct}. A group that holds a NaN
or ``+inf``, or only ``-inf``, is NaN throughout.

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

Computes ``{formula}``, with the maximum and the sum over all
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
Implements {struct}. A group that holds a NaN or
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

Computes ``{formula}`` for the element ``i`` of a group.

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
Implements {struct}. The first NaN counts as the
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
