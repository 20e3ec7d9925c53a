"""The operators other than activations, which are built-in functions, and their docstrings."""

from dmlops import _core, _normalization  # noqa: F401 attaches docstrings
from dmlops._docstrings import document
from dmlops._table import OPERATORS

__all__ = sorted({row.function for row in OPERATORS if not row.activation})  # noqa: PLE0605
globals().update({name: getattr(_core, name) for name in __all__})

document(
    _core.clip,
    """\
Limit each element to the range from `min` to `max`.

Computes ``{formula}`` with ``g(x) = x * scale + bias`` if
`scale_bias` is given, and ``g(x) = x`` otherwise. If `min` is greater than `max`,
every result is `min`.

{sections}

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
    """\
Compute the gradient of clip: `input_gradient` within the bounds, and 0 elsewhere.

Computes ``{formula}``. At both bounds,
the result is 0.

{sections}

Notes
-----
Implements {struct}. A NaN element gives NaN, so
that it is not lost. In PyTorch, the gradient of hardtanh is 0 at the bounds, too, and at a
NaN 0 or `input_gradient`, depending on the position of the element; that of clamp is
`input_gradient` at the bounds, and 0 at a NaN. ONNX has no such operator.

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
    """\
Compute the gradient of relu: `input_gradient` at positive elements, and 0 elsewhere.

Computes ``{formula}``.

{sections}

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
    """\
Multiply negative elements by a slope, which may differ for each element.

Computes ``{formula}``. Products of integers are saturated.

{sections}

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
    """\
Compute the logarithm of the softmax over one or several axes.

Computes ``{formula}``, with the maximum and the sum
over all of `axes` together.

{sections}

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
    """\
Normalize exponentials so that they sum to 1 over the given axes.

Computes ``{formula}``, with the maximum and the sum over all
of `axes` together.

{sections}

Notes
-----
Implements {struct}. A group that holds a NaN or
``+inf``, or only ``-inf``, is NaN throughout; in other groups, ``-inf`` gives 0.
Results are within 2 ulp of the exact result rounded to its type. None exceeds 1, and the
maximum's is 1 if the sum excluding the maximum vanishes in float32.

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
    """\
Set the first maximum over the given axes to 1, and all other elements to 0.

Computes ``{formula}`` for the element ``i`` of a group, whose
elements are compared together, in row-major order.

{sections}

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
