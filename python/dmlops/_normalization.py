"""The docstrings of normalization and its gradients."""

from dmlops import _core
from dmlops._docstrings import document

document(
    _core.batch_normalization,
    """\
Normalize each element with a mean and a variance, then scale and shift it.

Computes ``{formula}``.

{sections}

Notes
-----
Implements {struct}. The mean is
subtracted first; float16 is computed in float32 and rounded once.

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
    _core.mean_variance_normalization,
    """\
Normalize each element with the mean and the variance of its group.

Computes ``{formula}``, with the
mean and the population variance over all listed axes together. This is layer
normalization over the last axes, instance normalization over the axes of a channel, group
normalization of a reshaped input, and RMS normalization without the mean.

{sections}

Notes
-----
Implements {struct}. Sums are accumulated in float64,
for float16 in float32 within short blocks, in the same order for every memory layout,
thread count and processor.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> x = np.array([[1, 2, 3, 6]], np.float32)
>>> dmlops.mean_variance_normalization(x, epsilon=0.5)
array([[-1. , -0.5,  0. ,  1.5]], dtype=float32)
>>> dmlops.mean_variance_normalization(x, use_mean=False, epsilon=3.5)  # RMS
array([[0.25, 0.5 , 0.75, 1.5 ]], dtype=float32)
""",
)

document(
    _core.batch_normalization_training,
    """\
Normalize with the mean and the variance of the input, and return both.

Computes ``{formula}``, with the
mean and the population variance over the axes along which `scale` has size 1.

{sections}

Notes
-----
Implements {struct}.

In float16, a variance above 65504 is returned as infinity, with which the gradients of the
input and the scale are 0. The output is not affected.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> x = np.array([[1], [2], [3], [6]], np.float32)
>>> scale, bias = np.array([[2]], np.float32), np.array([[1]], np.float32)
>>> y, mean, variance = dmlops.batch_normalization_training(x, scale, bias, epsilon=0.5)
>>> y.ravel(), float(mean[0, 0]), float(variance[0, 0])
(array([-1.,  0.,  1.,  4.], dtype=float32), 3.0, 3.5)
""",
)


def _document_gradients(name: str, statistics: str, result: str) -> None:
    document(
        getattr(_core, name),
        f"""\
Return the gradients of batch normalization with {statistics}.

The gradient of the input is
``{{formula}}``,
the gradient of the bias is ``sum(dy)``, and the gradient of the scale is
``sum(dy * (x - mean) / sqrt(variance + epsilon))``, with ``dy`` for `input_gradient` and
sums over the axes along which `mean` has size 1.

{{sections}}

Notes
-----
Implements {{struct}}.

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> x, dy = np.array([[[1], [2], [3], [6]], [[1], [0], [0], [-1]]], np.float32)
>>> mean, variance, scale = np.array([3, 3.5, 2], np.float32).reshape(3, 1, 1)
>>> dx, dscale, dbias = dmlops.{name}(
...     x, dy, mean, variance, scale, epsilon=0.5
... )
>>> dx.ravel(), float(dscale[0, 0]), float(dbias[0, 0])
(array({result}, dtype=float32), -2.5, 0.0)
""",
    )


_document_gradients(
    "batch_normalization_grad",
    "constant mean and variance",
    "[ 1.,  0.,  0., -1.]",
)
_document_gradients(
    "batch_normalization_training_grad",
    "the mean and the variance of the input",
    "[ 0.375 , -0.3125,  0.    , -0.0625]",
)
