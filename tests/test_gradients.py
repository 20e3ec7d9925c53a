"""Gradients: central differences of float64 formulas, and PyTorch's automatic differentiation.

The loss is the sum of the outputs, weighted by the gradient that the operator takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from descriptors import NORMALIZATION_GRADIENTS
from reference import FLOATS, ulp

import dmlops as _dmlops

dmlops: Any = _dmlops
Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
STEP = 2.0**-16  # rounding errors of 2^-53 / STEP, truncation errors of STEP^2
EPSILON = 0.1
SHAPES = [  # of the input, and of the statistics
    ((6, 3, 4), (1, 3, 1)),
    ((5, 4), (1, 4)),
    ((9,), (1,)),
    ((2, 3, 2, 3), (2, 1, 1, 3)),
]
each_shape = pytest.mark.parametrize(("shape", "of_groups"), SHAPES, ids=str)
each_dtype = pytest.mark.parametrize("dtype", FLOATS)
each_mode = pytest.mark.parametrize("training", [False, True])


def differences(loss: Callable[[Float64], float], x: Float64) -> Float64:
    """Return the derivative of the loss by each element."""
    result = np.empty_like(x)
    for index in np.ndindex(x.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = x.copy()
            moved[index] += step
            ends.append(loss(moved))
        result[index] = (ends[0] - ends[1]) / (2 * STEP)
    return result


def normalized(x: Float64, mean: Any, variance: Any, scale: Any, bias: Any) -> Float64:
    epsilon = np.float64(np.float32(EPSILON))
    return np.asarray(scale * (x - mean) / np.sqrt(variance + epsilon) + bias)


def inputs_of(shape: Any, of_groups: Any, dtype: str) -> tuple[Array, Array, Array, Array]:
    """Return the input, the gradient of the output, scale and bias."""
    x, dy = (samples.uniform(shape, dtype, -2, 3, seed=i) for i in (0, 1))
    scale, bias = (samples.uniform(of_groups, dtype, 0.5, 2, seed=i) for i in (2, 3))
    return x, dy, scale, bias


def gradients(x: Array, dy: Array, scale: Array, bias: Array, training: bool) -> Any:
    """Return the results of dmlops, and the statistics that it was given."""
    _, mean, variance = dmlops.batch_normalization_training(x, scale, bias, epsilon=EPSILON)
    function = getattr(dmlops, NORMALIZATION_GRADIENTS[training])
    return function(x, dy, mean, variance, scale, EPSILON), (mean, variance)


def assert_near(actual: Array, exact: Float64) -> None:
    """Compare within 2 ulp of the largest number: the rounding of the result and of the statistics.

    The mean and the variance are rounded to half an ulp each; a power of the variance of -1/2 or
    -3/2 multiplies its error by at most 3/2, and the result is rounded to half an ulp.
    """
    assert actual.shape == exact.shape
    tolerance = 2 * float(np.finfo(actual.dtype).eps) * max(1, float(np.abs(exact).max()))
    np.testing.assert_allclose(actual.astype(np.float64), exact, rtol=0, atol=tolerance)


@each_shape
@each_dtype
@each_mode
def test_batch_normalization(shape: Any, of_groups: Any, dtype: str, training: bool) -> None:
    x, dy, scale, bias = inputs_of(shape, of_groups, dtype)
    results, statistics = gradients(x, dy, scale, bias, training)
    wide, dy, scale, bias = (each.astype(np.float64) for each in (x, dy, scale, bias))
    mean, variance = (each.astype(np.float64) for each in statistics)
    axes = tuple(axis for axis, size in enumerate(of_groups) if size == 1)

    def output(x: Float64, scale: Any, bias: Any) -> Float64:
        if not training:
            return normalized(x, mean, variance, scale, bias)
        return normalized(x, x.mean(axes, keepdims=True), x.var(axes, keepdims=True), scale, bias)

    assert_near(results[0], differences(lambda v: float((dy * output(v, scale, bias)).sum()), wide))
    assert_near(results[1], differences(lambda v: float((dy * output(wide, v, bias)).sum()), scale))
    assert_near(results[2], differences(lambda v: float((dy * output(wide, scale, v)).sum()), bias))


@each_dtype
def test_piecewise_linear_operators(dtype: str) -> None:
    x, dy = (samples.uniform((40,), dtype, -2, 3, seed=i) for i in (0, 1))
    edges = np.abs(np.subtract.outer(x.astype(np.float64), [-1, 0, 2])).min(axis=1)
    assert edges.min() > 2 * STEP  # no derivative exists there
    weights, wide = dy.astype(np.float64), x.astype(np.float64)
    exact = differences(lambda v: float((weights * np.maximum(v, 0)).sum()), wide)
    assert_near(dmlops.relu_grad(x, dy), exact)
    exact = differences(lambda v: float((weights * np.clip(v, -1, 2)).sum()), wide)
    assert_near(dmlops.clip_grad(x, dy, -1, 2), exact)


@pytest.mark.parametrize("name", ["relu_grad", *NORMALIZATION_GRADIENTS])
@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 1), 2), ((1, 3, 4), 0), ((2, 4, 4), 1)])
def test_the_gradient_must_have_the_shape_of_the_input(name: str, shape: Any, axis: int) -> None:
    x, dy = np.zeros((2, 3, 4), np.float32), np.zeros(shape, np.float32)
    others = [np.ones((1, 3, 1), np.float32)] * (3 if name in NORMALIZATION_GRADIENTS else 0)
    text = f"input_gradient has shape {shape}, but input has shape {x.shape}; they differ on axis"
    with pytest.raises(ValueError, match=re.escape(f"{text} {axis}")):
        getattr(dmlops, name)(x, dy, *others)


# Against PyTorch in float64


@each_dtype
@each_mode
def test_batch_normalization_is_that_of_pytorch(dtype: str, training: bool) -> None:
    torch = pytest.importorskip("torch")
    x, dy, scale, bias = inputs_of((5, 4, 6, 7), (1, 4, 1, 1), dtype)
    results, statistics = gradients(x, dy, scale, bias, training)
    tensors = [torch.from_numpy(a.astype(np.float64)) for a in (x, scale.ravel(), bias.ravel())]
    for tensor in tensors:
        tensor.requires_grad_()
    constants = [torch.from_numpy(a.astype(np.float64).ravel()) for a in statistics]
    y = torch.nn.functional.batch_norm(
        tensors[0],
        *constants,
        *tensors[1:],
        training=training,
        momentum=0.0,
        eps=float(np.float32(EPSILON)),
    )
    y.backward(torch.from_numpy(dy.astype(np.float64)))
    for actual, tensor in zip(results, tensors, strict=True):
        assert_near(actual, tensor.grad.numpy().reshape(actual.shape))


@each_dtype
def test_piecewise_linear_operators_are_those_of_pytorch(dtype: str) -> None:
    """At the edges too: PyTorch's hardtanh and relu have the gradient 0 there."""
    torch = pytest.importorskip("torch")
    x = np.concatenate([samples.uniform((99,), dtype, -2, 3), np.array([-1, -0.0, 0, 2], dtype)])
    dy = samples.uniform(x.shape, dtype, -2, 3, seed=1)
    for result, function in (
        (dmlops.relu_grad(x, dy), torch.relu),
        (dmlops.clip_grad(x, dy, -1, 2), lambda v: torch.nn.functional.hardtanh(v, -1, 2)),
    ):
        tensor = torch.from_numpy(x.astype(np.float64)).requires_grad_()
        function(tensor).backward(torch.from_numpy(dy.astype(np.float64)))
        np.testing.assert_array_equal(result, tensor.grad.numpy())


@each_dtype
def test_normalizations_are_those_of_pytorch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    nn, mvn = torch.nn.functional, dmlops.mean_variance_normalization
    x = samples.uniform((3, 6, 5, 7), dtype, -3, 5)
    scale, bias = (samples.uniform((1, 6, 5, 7), dtype, 0.5, 2, seed=i) for i in (1, 2))
    wide, weight, shift = (torch.from_numpy(a.astype(np.float64)) for a in (x, scale, bias))
    epsilon = float(np.float32(1e-5))
    layer = nn.layer_norm(wide, (6, 5, 7), weight[0], shift[0], epsilon)
    assert_near(mvn(x, scale, bias, axes=(1, 2, 3)), layer.numpy())
    assert_near(mvn(x, axes=(2, 3)), nn.layer_norm(wide, (5, 7), eps=epsilon).numpy())
    rms = nn.rms_norm(wide, (6, 5, 7), weight[0], eps=epsilon)
    assert_near(mvn(x, scale, axes=(1, 2, 3), use_mean=False), rms.numpy())
    groups = mvn(x.reshape(3, 2, 3, 5, 7), axes=(2, 3, 4)).reshape(x.shape)
    assert_near(groups, nn.group_norm(wide, 2, eps=epsilon).numpy())
    assert_near(mvn(x, axes=(2, 3)), nn.instance_norm(wide, eps=epsilon).numpy())


@each_mode
def test_sums_of_float16_are_within_their_bounds(training: bool) -> None:
    """Elements of very different magnitudes, also with statistics of other elements."""
    random = np.random.default_rng(7)
    largest = 0.0
    for trial in range(600):
        size = int(random.choice([2, 5, 17, 100, 1500]))
        spread, offset = random.choice([0, 4, 10]), random.choice([0, 0.5, 3, 30, 1000])
        x, dy = (
            random.normal(size=size) * 2 ** random.uniform(-spread, spread, size) for _ in "xy"
        )
        x, dy = (x + offset).astype(np.float16), dy.astype(np.float16)
        if trial % 4 == 0:
            x[:], dy[:] = x[0], dy[0]
        mean, scale = x.mean(dtype=np.float64), random.uniform(0.5, 2)
        variance = max(x.var(dtype=np.float64), 1e-3) * random.choice([1, 4, 0.5, 100])
        given = [np.array([min(value, 6e4)], np.float16) for value in (mean, variance, scale)]
        with np.errstate(all="ignore"):
            results = getattr(dmlops, NORMALIZATION_GRADIENTS[training])(x, dy, *given, EPSILON)
        for actual, exact, sums in zip(results, *bounded(x, dy, given, training), strict=True):
            finite = np.isfinite(actual)
            error = np.abs(actual.astype(np.float64) - exact) - ulp(exact, np.float16) * 0.501
            largest = max(largest, float((error / sums)[finite].max(initial=0)))
    assert largest <= 1
    if training:
        assert largest >= 2**-9  # random rounding errors cancel: 0.0026 of the worst case


@each_mode
@pytest.mark.parametrize(("dy", "exact"), [([1e12, 0, 1e-3], 2e-3), ([8e30, 0, 2e4], 4e4)])
def test_large_gradients_without_deviation(dy: Any, exact: float, training: bool) -> None:
    x, mean, variance, scale = (np.array(v, np.float32) for v in ([-1, -3, 1], [-1], [1], [1]))
    function = getattr(dmlops, NORMALIZATION_GRADIENTS[training])
    actual = function(x, np.array(dy, np.float32), mean, variance, scale, 0.0)[1]
    np.testing.assert_allclose(actual, exact, rtol=2**-23)


@each_mode
def test_small_deviations_of_a_small_variance(training: bool) -> None:
    """The mean is far from 0 for the given variance, but not for variance + epsilon."""
    mean = np.float16(1.69)
    step = np.spacing(mean)
    x = mean + np.where(np.arange(4096) % 2, step, -step).astype(np.float16)
    given = [np.array([value], np.float16) for value in (mean, step * step, 1)]
    function = getattr(dmlops, NORMALIZATION_GRADIENTS[training])
    assert function(x, np.full_like(x, 1.788), *given, 0.19)[1] == 0


def bounded(x: Any, dy: Any, given: Any, training: bool) -> tuple[list[Any], list[Any]]:
    """Return the gradients, and how far the documented errors of the sums move them."""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    mean, variance, scale = (value.astype(np.float64) for value in given)
    center = x.mean() if training else mean
    near_zero = center**2 <= 16 * variance
    variance = variance + np.float64(np.float32(EPSILON))
    inverse, d = 1 / np.sqrt(variance), x - center
    of_x, of_dy = 2**-19 * np.abs(x).mean(), 2**-19 * np.abs(dy).mean()
    rms = np.sqrt(np.mean(dy**2)) * np.sqrt(np.mean(np.where(near_zero, x, d) ** 2))
    product, slope = 2**-17 * rms, (dy * d).mean() * inverse**2
    shift = of_dy + np.abs(d) * inverse**2 * product + np.abs(slope) * of_x
    gradient = scale * inverse * (dy - (dy.mean() + d * slope if training else 0))
    of_scale = ((dy * d).sum() + (center - mean) * dy.sum()) * inverse
    of_mean = np.abs(center - mean) * of_dy + np.abs(dy.mean()) * of_x
    intermediate = np.maximum(np.abs(dy), np.maximum(np.abs(dy.mean()), np.abs(d * slope)))
    sums = scale * inverse * shift + 0.001 * ulp(scale * inverse * intermediate, np.float16)
    if not training:
        sums = 0.001 * ulp(gradient, np.float16)
    return [gradient, of_scale, dy.sum()], [
        sums,
        len(x) * (product + of_mean) * inverse,
        len(x) * of_dy,
    ]


@each_dtype
def test_an_element_at_both_means_has_no_gradient_beside_infinite_ones(dtype: str) -> None:
    """The factors exceed float32, though mean(dy (x - mean)) / (variance + epsilon) does not."""
    x, zero, one = (np.array(values, dtype).reshape(-1, 1) for values in ([1, 2, 3], 0, 1))
    dx = dmlops.batch_normalization_training_grad(x, x, zero, zero, one, epsilon=1e-36)[0]
    assert dx.ravel().tolist() == [np.inf, 0, -np.inf]


@each_dtype
def test_groups_of_one_element_have_no_input_gradient(dtype: str) -> None:
    x, dy = (samples.uniform((1, 3000), dtype, -3, 3, seed=i) for i in (1, 2))
    one = np.ones((1, 3000), dtype)
    _, mean, variance = dmlops.batch_normalization_training(x, one, one)
    gradient, *_ = dmlops.batch_normalization_training_grad(x, dy, mean, variance, one)
    assert not gradient.any()


def test_a_variance_beyond_float16() -> None:
    """The variance is returned as infinity, the output is exact, and the gradient by x is 0."""
    x, one = np.array([[-60000], [60000]], np.float16), np.ones((1, 1), np.float16)
    y, mean, variance = dmlops.batch_normalization_training(x, one, 0 * one)
    assert (y.tolist(), mean, variance) == ([[-1], [1]], 0, np.inf)
    for name in NORMALIZATION_GRADIENTS:
        results = getattr(dmlops, name)(x, np.ones_like(x), mean, variance, one)
        assert [result.ravel().tolist() for result in results] == [[0, 0], [0], [2]]
