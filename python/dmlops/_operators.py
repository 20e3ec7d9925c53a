"""The operators, which are functions of the extension module, and their docstrings."""

from dmlops._core import add_docstring, batch_normalization, clip, log_softmax

__all__ = ["batch_normalization", "clip", "log_softmax"]

# Sections that the docstrings of all operators share.
_INPUT = """\
input : numpy.ndarray
    Any strides, 0 to 8 dimensions, {dtypes}. Objects that offer DLPack on the CPU,
    such as PyTorch's tensors, or the buffer protocol work, too. Nothing is copied
    or cast."""
_OUT = """\
out : numpy.ndarray, optional
    Array for the result: dtype and shape of `input`, any strides without
    overlapping elements. `out` may be `input` itself, and may overlap it."""
_RETURNS = """\
Returns
-------
numpy.ndarray
    `out`, or a new array in the memory order of `input`: a NumPy scalar for a
    NumPy scalar, and an array of the same library for another library's array."""
_RAISES = """\
Raises
------
TypeError
    If an argument has a type or dtype that the operator does not support.
ValueError
    If a shape, a value or `out` is invalid."""
FLOATS = "float32 or float16"


def document(function: object, signature: str, text: str, *, dtypes: str = FLOATS) -> None:
    """Attach a docstring to a built-in function; `text` has fields for the shared sections."""
    shared = {
        "input": _INPUT.format(dtypes=dtypes),
        "out": _OUT,
        "returns": _RETURNS,
        "raises": _RAISES,
    }
    add_docstring(function, f"{signature}\n--\n\n{text.format(**shared)}")


document(
    clip,
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
    dtypes="float32, float16, or an integer dtype",
)

document(
    batch_normalization,
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
    log_softmax,
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
