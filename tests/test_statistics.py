"""Mean-variance normalization, and batch normalization's training pass and gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from reference import FLOATS, as_tuple, assert_same_bits, assert_within, ulp
from variants import small_shards

import dmlops
from dmlops import BufferTensorDesc, Device

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
# Of x = 1, 2, 3, 6 with scale 2, bias 1 and epsilon 0.5: exact in binary.
X = [1, 2, 3, 6]
UNUSED: tuple[dict[str, Any], ...] = ({}, {"use_mean": False}, {"use_variance": False})


def column(values: Any, dtype: str) -> Array:
    return np.array(values, dtype).reshape(-1, 1)


def normalized(
    x: Array, axes: Any, scale: Any = 1, bias: Any = 0, *, epsilon: float = 1e-5, **use: bool
) -> tuple[Float64, Float64]:
    """Return the normalization in float64, and the allowed error: 2 ulp of the largest number.

    In float16, it is 0.02 ulp beyond the rounding, since sums of a block are in float32.
    """
    wide, scale, bias = (np.asarray(a, np.float64) for a in (x, scale, bias))
    mean = wide.mean(axes, keepdims=True) if use.get("use_mean", True) and axes != () else 0
    mean = wide if axes == () and use.get("use_mean", True) else mean
    variance = np.square(wide - mean)
    variance = variance if axes == () else variance.mean(axes, keepdims=True)
    root = np.sqrt(variance + np.float64(np.float32(epsilon)))
    product = scale * (wide - mean) / (root if use.get("use_variance", True) else 1)
    result = product + bias
    largest = np.maximum(np.abs(product), np.maximum(np.abs(bias), np.abs(result)))
    if "use_variance" in use:
        largest = np.maximum(largest, np.abs(scale * mean))
    return result, (2 if x.dtype == np.float32 else 0.02) * ulp(largest, x.dtype)


def test_overflow_keeps_the_sign() -> None:
    """With scales of their own, the elements' results are sums of two terms."""
    x = np.tile(np.array([1e20, 2e20, 4.1e20], np.float32), 40)
    scale = np.linspace(1e32, 1.1e32, x.size, dtype=np.float32)
    y = dmlops.mean_variance_normalization(x, scale, 0 * scale, use_variance=False)
    np.testing.assert_array_equal(y, np.tile([-np.inf, -np.inf, np.inf], 40))


@pytest.mark.parametrize("dtype", FLOATS)
def test_worked_examples(dtype: str) -> None:
    x, two, one = column(X, dtype), column(2, dtype), column(1, dtype)
    mvn = dmlops.mean_variance_normalization
    assert mvn(x, axes=0, epsilon=0.5).ravel().tolist() == [-1, -0.5, 0, 1.5]
    assert mvn(x, axes=0, use_mean=False, epsilon=3.5).ravel().tolist() == [0.25, 0.5, 0.75, 1.5]
    assert mvn(x, axes=0, use_variance=False).ravel().tolist() == [-2, -1, 0, 3]
    assert mvn(x, two, one, axes=0, use_variance=False).ravel().tolist() == [-3, -1, 1, 7]
    outputs = dmlops.batch_normalization_training(x, two, one, epsilon=0.5)
    assert [output.ravel().tolist() for output in outputs] == [[-1, 0, 1, 4], [3], [3.5]]
    add = column([0, 0, -2, 0], dtype)
    fused = dmlops.batch_normalization_training(x, two, one, add, 0.5, fused_activation="relu")
    assert fused[0].ravel().tolist() == [0, 0, 0, 4]
    dy, mean, variance = column([1, 0, 0, -1], dtype), column(3, dtype), column(3.5, dtype)
    given = (x, dy, mean, variance, two, 0.5)
    for function, dx in (
        (dmlops.batch_normalization_grad, [1, 0, 0, -1]),
        (dmlops.batch_normalization_training_grad, [0.375, -0.3125, 0, -0.0625]),
    ):
        outputs = function(*given)
        assert [output.ravel().tolist() for output in outputs] == [dx, [-2.5], [0]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_set_of_axes(dtype: str) -> None:
    x = samples.uniform((3, 4, 5, 35), dtype, -8, 8)
    for view in (x, x.transpose(2, 0, 3, 1), x[::-1, ::2]):
        shape = view.shape
        for count in range(5):
            for axes in itertools.combinations(range(4), count):
                own = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
                scale, bias = (samples.uniform(own, dtype, 0.5, 2, seed=i) for i in (1, 2))
                result = dmlops.mean_variance_normalization(view, scale, bias, axes)
                assert_within(result, *normalized(view, axes, scale, bias), f"axes {axes}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [1, 2, 3, 16, 65, 768, 1025, 4099])
def test_groups_of_every_kind_of_length(dtype: str, length: int) -> None:
    rows = samples.uniform((7, length), dtype, -3, 5, seed=length)
    for x, axis in ((rows, 1), (rows.T, 0)):
        for use in UNUSED:
            result = dmlops.mean_variance_normalization(x, axes=axis, **use)
            assert_within(result, *normalized(x, axis, **use), f"{axis} {use}")


def test_float16_elements_at_the_mean_give_0() -> None:
    """Deviations lose no digits, though the coefficients of results are rounded to float32."""
    x, scale, zero = (column(values, "float16") for values in ([1000, 3000, 5000], 1000, 0))
    assert dmlops.mean_variance_normalization(x, scale, zero, axes=0)[1] == 0
    assert dmlops.batch_normalization_training(x, scale, zero)[0][1] == 0
    given = (x, np.full_like(x, 3), scale, scale, scale)
    assert not dmlops.batch_normalization_training_grad(*given)[0].any()


def test_large_means_and_variances() -> None:
    x = (1e6 + samples.uniform((4, 999), "float32", -1, 1)).astype(np.float32)
    assert_within(dmlops.mean_variance_normalization(x), *normalized(x, 1))
    half = samples.uniform((4, 999), "float16", -60000, 60000)  # the variance exceeds float16
    assert_within(dmlops.mean_variance_normalization(half), *normalized(half, 1))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("deviations", [0, 1, 3.9, 4.1, 30, 500])
def test_means_of_many_deviations(dtype: str, deviations: float) -> None:
    noise = samples.uniform((6, 1500), dtype, -1, 1).astype(np.float64)
    x = (noise + deviations * noise.std()).astype(dtype)
    for use in UNUSED[:2]:
        result = dmlops.mean_variance_normalization(x, **use)
        assert_within(result, *normalized(x, 1, **use), f"{use}")
    row = x.reshape(-1, 1)
    one = np.ones((1, 1), dtype)
    for actual, exact in zip(
        dmlops.batch_normalization_training(row, one, one)[1:],
        (row.mean(dtype=np.float64), row.var(dtype=np.float64)),
        strict=True,
    ):
        allowed = (1 if dtype == "float32" else 0.02) * ulp(exact, dtype)
        assert_within(actual.ravel(), np.reshape(exact, 1), allowed)


def canceling(shape: tuple[int, int, int], dtype: str, seed: int) -> Array:
    """Return groups along axes 0 and 2 whose exact sums are 0; rounding depends on the order."""
    random = np.random.default_rng(seed)
    half = shape[0] * shape[2] // 2
    exponents = random.integers(-12, 13, (shape[1], half))
    values = np.ldexp(random.uniform(1, 2, (shape[1], half)), exponents).astype(dtype)
    padding = np.zeros((shape[1], shape[0] * shape[2] - 2 * half), dtype)
    groups = random.permuted(np.concatenate([values, -values, padding], 1), axis=1)
    return np.ascontiguousarray(groups.reshape(shape[1], shape[0], shape[2]).transpose(1, 0, 2))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("run", [7, 64, 80, 112, 784, 1040, 1027, 4105, 400_000])
def test_groups_in_runs_have_the_bits_of_contiguous_ones(dtype: str, run: int) -> None:
    x, dy = (canceling((5, 3, run), dtype, seed) for seed in (1, 2))
    mean, variance, scale = (samples.uniform((1, 3, 1), dtype, 0.5, 2, seed=i) for i in (3, 4, 5))
    rows, gradients = (np.ascontiguousarray(a.transpose(1, 0, 2).reshape(3, -1)) for a in (x, dy))
    parameters = [a.reshape(3, 1) for a in (mean, variance, scale)]
    for function, operands, of_rows in (
        (dmlops.batch_normalization_training, (x, mean, scale), (rows, *parameters[::2])),
        (
            dmlops.batch_normalization_training_grad,
            (x, dy, mean, variance, scale),
            (rows, gradients, *parameters),
        ),
    ):
        results: Any = function(*operands)
        expected: Any = function(*of_rows)
        assert_same_bits(results[0].transpose(1, 0, 2).reshape(3, -1), expected[0])
        for result, group in zip(results[1:], expected[1:], strict=True):
            assert_same_bits(result.reshape(3, 1), group)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows", [1, 2, 31, 64, 257, 1025, 2100])
@pytest.mark.parametrize("columns", [15, 17, 64, 100, 530])
def test_groups_down_columns_have_the_bits_of_rows(dtype: str, rows: int, columns: int) -> None:
    x, dy, add = (canceling((1, columns, rows), dtype, seed)[0] for seed in (1, 2, 3))
    x[::3] += np.array(40, dtype)  # the mean is far from 0
    a, b, c = (samples.uniform((columns, 1), dtype, 0.5, 2, seed=i) for i in range(3))
    one = np.ones((1, 1), dtype)
    for name, operands, options in (
        ("mean_variance_normalization", (x,), {"axes": (1,)}),
        ("mean_variance_normalization", (x, dy, one), {"axes": (1,), "use_mean": False}),
        ("batch_normalization_training", (x, a, b), {}),
        ("batch_normalization_training", (x, a, b, add), {"fused_activation": "relu"}),
        ("batch_normalization_training_grad", (x, dy, a, b, c), {}),
        ("batch_normalization_grad", (x, dy, a, b, c), {}),
    ):
        function: Any = getattr(dmlops, name)
        results = function(*(np.asfortranarray(o) for o in operands), **options)
        # More groups than these would go down columns, too.
        count = columns if rows >= 64 else 3
        for first in range(0, columns, count):
            part = slice(first, first + count)
            of_rows = function(*(o if len(o) == 1 else o[part] for o in operands), **options)
            for result, expected in zip(as_tuple(results), as_tuple(of_rows), strict=True):
                assert_same_bits(result[part], expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("threads", [2, 5, 40])
@pytest.mark.parametrize("shape", [(9, 8209), (20, 1031), (32, 4093), (64, 2100), (70, 2100)])
def test_parts_of_groups_have_the_bits_of_one_thread(
    dtype: str, threads: int, shape: tuple[int, int]
) -> None:
    x, dy, add = (canceling((1, *shape), dtype, seed)[0] for seed in (1, 2, 3))
    x[::3] += np.array(40, dtype)  # the mean is far from 0
    a, b, c = (samples.uniform((shape[0], 1), dtype, 0.5, 2, seed=i) for i in range(3))
    x, dy, add, a, b, c = map(np.asfortranarray, (x, dy, add, a, b, c))
    for name, operands, options in (
        ("mean_variance_normalization", (x, a, b), {"axes": (1,)}),
        ("batch_normalization_training", (x, a, b, add), {"fused_activation": "relu"}),
        ("batch_normalization_training_grad", (x, dy, a, b, c), {}),
        ("batch_normalization_grad", (x[:, ::2], dy[:, ::2], a, b, c), {}),
    ):
        function: Any = getattr(dmlops, name)
        with dmlops.num_threads(1):
            expected = function(*operands, **options)
        with small_shards(threads):
            results = function(*operands, **options)
        for result, of_one_thread in zip(as_tuple(results), as_tuple(expected), strict=True):
            assert_same_bits(result, of_one_thread)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axes", [(0, 1), 1, ()])
def test_parameters_of_stride_0_have_the_bits_of_dense_ones(dtype: str, axes: Any) -> None:
    x = samples.uniform((17, 40), dtype, -3, 3)
    scale, bias = (np.broadcast_to(np.array(v, dtype), (1, 40)) for v in (1.3, 0.3))
    for first, second in ((scale, bias), (scale, None), (None, bias), (scale, bias.copy())):
        dense_first, dense_second = (None if p is None else p.copy() for p in (first, second))
        assert_same_bits(
            dmlops.mean_variance_normalization(x, first, second, axes=axes),
            dmlops.mean_variance_normalization(x, dense_first, dense_second, axes=axes),
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_training_is_normalization_with_its_statistics(dtype: str) -> None:
    x = samples.uniform((5, 4, 6, 7), dtype, -3, 5)
    scale, bias = (samples.uniform((1, 4, 1, 1), dtype, 0.5, 2, seed=i) for i in (1, 2))
    add = samples.uniform(x.shape, dtype, -1, 1, seed=3)
    y, mean, variance = dmlops.batch_normalization_training(x, scale, bias)
    wide, units = x.astype(np.float64), 1 if dtype == "float32" else 0.02
    expected = wide.mean((0, 2, 3), keepdims=True), wide.var((0, 2, 3), keepdims=True)
    for actual, exact in zip((mean, variance), expected, strict=True):
        assert_within(actual, exact, units * ulp(exact, x.dtype))
    same = dmlops.mean_variance_normalization(x, scale, bias, (0, 2, 3))
    assert_same_bits(y, same)
    added, *_ = dmlops.batch_normalization_training(x, scale, bias, add, fused_activation="relu")
    exact, allowed = normalized(x, (0, 2, 3), scale, bias)
    allowed = np.maximum(allowed, units * 2 * ulp(np.abs(exact) + np.abs(add), x.dtype))
    assert_within(added, np.maximum(exact + add.astype(np.float64), 0), allowed)


def test_outputs_and_their_errors() -> None:
    x, one = samples.uniform((6, 5), "float32"), np.ones((1, 5), np.float32)
    expected = dmlops.batch_normalization_training(x, one, one)
    out: Any = tuple(np.empty_like(array) for array in expected)
    results = dmlops.batch_normalization_training(x, one, one, out=out)
    assert all(result is array for result, array in zip(results, out, strict=True))
    for result, array in zip(results, expected, strict=True):
        assert_same_bits(result, array)
    some = dmlops.batch_normalization_training(x, one, one, out=(None, out[1], None))
    assert some[1] is out[1]
    assert_same_bits(some[0], expected[0])
    untyped: Any = dmlops.batch_normalization_training
    for given, words in ((x, "ndarray"), ((x, one), "a tuple of 2")):
        with pytest.raises(TypeError, match=f"out must be a tuple of 3 arrays.*{words}"):
            untyped(x, one, one, out=given)
    with pytest.raises(ValueError, match=r"out\[1\] \(mean\) has shape"):
        untyped(x, one, one, out=(None, x, None))
    with pytest.raises(ValueError, match=r"batch_normalization_training: .*overlap"):
        untyped(x, one, one, out=(None, out[1], out[1]))
    with pytest.raises(TypeError, match="use_mean must be a bool, not str"):
        dmlops.mean_variance_normalization(x, use_mean="no")  # type: ignore[call-overload]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("channels", [1, 5, 70])
def test_outputs_that_interleave(channels: int, dtype: str) -> None:
    """Columns of a table, whose elements do not overlap."""
    x, one = samples.uniform((40, channels), dtype, -3, 5), np.ones((1, channels), dtype)
    expected = dmlops.batch_normalization_training(x, one, one)
    table = np.zeros((40, channels, 3), dtype)
    y, mean, variance = table[..., 0], table[:1, :, 1], table[:1, :, 2]
    dmlops.batch_normalization_training(x, one, one, out=(y, mean, variance))
    for actual, exact in zip((y, mean, variance), expected, strict=True):
        assert_same_bits(actual, exact)
    assert not table[1:, :, 1:].any()
    for third in (mean, y[-1:], table[:1, ::-1, 1]):
        with pytest.raises(ValueError, match=r"and out\[2\] \(variance\) overlap"):
            dmlops.batch_normalization_training(x, one, one, out=(y, mean, third))


@pytest.mark.parametrize("dtype", FLOATS)
def test_descriptors_give_the_bits_of_the_functions(dtype: str) -> None:
    x = samples.uniform((3, 4, 6, 7), dtype, -3, 5)
    scale, bias = (samples.uniform((1, 4, 1, 1), dtype, 0.5, 2, seed=i) for i in (1, 2))
    whole, group = BufferTensorDesc.from_array(x), BufferTensorDesc.from_array(scale)
    result = np.empty_like(x)
    tensors: Any = {"input_tensor": whole, "output_tensor": whole}
    both: Any = {"scale_tensor": group, "bias_tensor": group}
    old = dmlops.MeanVarianceNormalizationOperatorDesc
    second = dmlops.MeanVarianceNormalization1OperatorDesc
    third = dmlops.MeanVarianceNormalization2OperatorDesc
    normalize: Any = dmlops.mean_variance_normalization
    cases: list[tuple[Any, tuple[int, ...], dict[str, Any]]] = [
        (old(**tensors, **both), (2, 3), {}),
        (old(**tensors, **both, cross_channel=True), (1, 2, 3), {}),
        (old(**tensors, normalize_variance=False), (2, 3), {"use_variance": False}),
        (second(**tensors, **both, axes=(3, 0)), (0, 3), {}),
        (second(**tensors, axes=()), (), {}),
        (second(**tensors, axes=(1,), normalize_variance=False), (1,), {"use_variance": False}),
        (third(**tensors, bias_tensor=group, axes=(1,), use_mean=False), (1,), {"use_mean": False}),
        (third(**tensors, axes=(3,), fused_activation="relu"), (3,), {"fused_activation": "relu"}),
    ]
    for desc, axes, use in cases:
        given: Any = [
            array if getattr(desc, f"{name}_tensor") is not None else None
            for name, array in (("scale", scale), ("bias", bias))
        ]
        Device().compile(desc).dispatch([x, *given], [result])
        expected = normalize(x, *given, axes, **use)
        assert_same_bits(result, expected, f"{desc}")


def test_bindings_of_several_outputs() -> None:
    x, one = samples.uniform((6, 5), "float32"), np.ones((1, 5), np.float32)
    whole, group = BufferTensorDesc.from_array(x), BufferTensorDesc.from_array(one)
    desc = dmlops.BatchNormalizationTrainingOperatorDesc(
        input_tensor=whole,
        scale_tensor=group,
        bias_tensor=group,
        output_tensor=whole,
        output_mean_tensor=group,
        output_variance_tensor=group,
    )
    compiled = Device().compile(desc)
    y, mean, variance = np.empty_like(x), np.empty_like(one), np.empty_like(one)
    compiled.dispatch([x, one, one, None], [y, mean, variance])
    for result, expected in zip(
        (y, mean, variance), dmlops.batch_normalization_training(x, one, one), strict=True
    ):
        assert_same_bits(result, expected)
    for inputs, outputs, words in (
        ([x, one, one], [y, mean, variance], "3 inputs are bound, but the operator has 4"),
        ([x, one, one, None], [y, mean], "2 outputs are bound, but the operator has 3"),
        ([x, one, one, y], [y, mean, variance], "fused_add_tensor is bound, but the descriptor"),
        ([x, one, one, None], [y, mean, mean], "output_mean_tensor and output_variance_tensor"),
        ([x, one, one, None], [y, one, variance], "scale_tensor and output_mean_tensor are bound"),
        ([x, one, one, None], [y, mean, None], "output_variance_tensor is not bound"),
    ):
        with pytest.raises(dmlops.BindingError, match=words):
            compiled.dispatch(inputs, outputs)


def test_rules_of_scale_and_bias() -> None:
    x, channel = (
        BufferTensorDesc("float32", (2, 3, 4, 5)),
        BufferTensorDesc("float32", (1, 3, 1, 1)),
    )
    one = BufferTensorDesc("float32", (1, 1, 1, 1))
    tensors: Any = {"input_tensor": x, "output_tensor": x}
    old = dmlops.MeanVarianceNormalizationOperatorDesc
    second = dmlops.MeanVarianceNormalization1OperatorDesc
    level = dmlops.required_feature_level
    assert level(old(**tensors)).name == "LEVEL_1_0"
    assert level(old(**tensors, scale_tensor=one)).name == "LEVEL_5_2"
    both: Any = {"scale_tensor": channel, "bias_tensor": channel}
    assert level(second(**tensors, axes=(2,), **both)).name == "LEVEL_2_1"
    assert level(second(**tensors, axes=(2,), **both | {"bias_tensor": one})).name == "LEVEL_4_0"
    with pytest.raises(dmlops.ValidationError, match=r"bias_tensor is missing.*5_2 accepts it"):
        Device("5_1").compile(second(**tensors, axes=(2,), scale_tensor=channel))


@pytest.mark.parametrize("dtype", FLOATS)
def test_statistics_of_no_elements(dtype: str) -> None:
    """Mean and variance are NaN, gradients 0, for any layout of these outputs."""
    x, scale = np.empty((0, 3, 2), dtype), np.ones((1, 3, 2), dtype)

    def outputs() -> tuple[Array, Array, Array, Array]:
        memory = np.full((2, 6, 5), 7, dtype)
        first, second = memory[:1, ::-2, 1:3], memory[1:, 3:0:-1, 4:2:-1]
        return memory, np.empty_like(x), first, second

    def check(memory: Array, given: list[Array], expected: float) -> None:
        for output in given:
            assert np.array_equal(output, np.full(output.shape, expected), equal_nan=True)
            output[...] = 7
        assert (memory == 7).all()

    memory, y, first, second = outputs()
    dmlops.batch_normalization_training(x, scale, scale, out=(y, first, second))
    check(memory, [first, second], np.nan)
    for function in (dmlops.batch_normalization_grad, dmlops.batch_normalization_training_grad):
        memory, y, first, second = outputs()
        function(x, x, scale, scale, scale, out=(y, first, second))
        check(memory, [first, second], 0)
