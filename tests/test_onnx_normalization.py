"""dmlops.onnx: normalizations against ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from onnx_models import NEWEST, versions
from reference import assert_same_bits

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator

Array = npt.NDArray[Any]
helper = onnx.helper
FLOATS = [np.float32, np.float16]


def random(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    return samples.uniform(shape, np.float32, -2, 3, seed=seed).astype(dtype)


def node_of(operator: str, inputs: int, outputs: list[str] | None = None, **more: Any) -> Any:
    names = [f"input{i}" for i in range(inputs)]
    return helper.make_node(operator, names, outputs or ["y"], name="it", **more)


def reference(node: Any, inputs: list[Array], opset: int, dtype: type = np.float64) -> list[Array]:
    """Return the outputs of ONNX's reference, which computes in the type of the inputs."""

    def values(names: list[str], shapes: list[Any]) -> list[Any]:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return [
            helper.make_tensor_value_info(n, kind, s) for n, s in zip(names, shapes, strict=True)
        ]

    graph = helper.make_graph(
        [node],
        "reference",
        values(list(node.input), [array.shape for array in inputs]),
        values([name for name in node.output if name], [None for name in node.output if name]),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    feeds: dict[str, Array] = {
        name: a.astype(dtype) for name, a in zip(node.input, inputs, strict=True)
    }
    results: list[Array] = ReferenceEvaluator(model).run(None, feeds)
    return results


def assert_close(result: Array, expected: Array, inputs: list[Array], factor: float = 2) -> None:
    """Compare with 2 ulp of the largest intermediate (docs/accuracy.md).

    That is at most the largest of the inputs and of the result, twice for scale * normalized.
    """
    assert result.shape == expected.shape
    largest = max(float(np.abs(array).max()) for array in (*inputs, expected))
    tolerance = factor * float(np.finfo(result.dtype).eps) * 2 * largest
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=0, atol=tolerance)


def check(node: Any, inputs: list[Array], opset: int, factor: float = 2) -> Any:
    """Run a node, compare all outputs with the reference, and return them."""
    results = backend.run_node(node, inputs, opset_version=opset)
    for result, expected in zip(results, reference(node, inputs, opset), strict=True):
        assert_close(result, expected, inputs, factor)
    assert results[0].dtype == inputs[-1].dtype
    return results


# Layer normalization and RMS normalization


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opset", versions("LayerNormalization"))
@pytest.mark.parametrize(
    "case",  # the shape, the axis, the parameters' shape
    [
        ((4, 768), -1, (768,)),
        ((4, 5), 0, (4, 5)),
        ((2, 3, 4), -2, (3, 4)),
        ((2, 3, 4), 1, (1,)),
        ((2, 3, 4), 2, (2, 1, 4)),
        ((2, 3, 4), None, ()),
        ((7,), 0, (7,)),
        ((1, 2, 1, 3, 2, 1, 2, 2), 5, (1, 2, 2)),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_layer_normalization(dtype: Any, opset: int, case: Any, bias: bool) -> None:
    shape, axis, parameters = case
    more: dict[str, Any] = {} if axis is None else {"axis": axis, "epsilon": 0.01}
    inputs = [random(shape, dtype), *(random(parameters, dtype, seed) for seed in (1, 2))]
    inputs = inputs[: 3 if bias else 2]
    y = check(node_of("LayerNormalization", len(inputs), **more), inputs, opset).y
    for names in (["y", "mean", "inverse"], ["y", "mean"], ["y", "", "inverse"]):
        node = node_of("LayerNormalization", len(inputs), names, **more)
        results = backend.run_node(node, inputs, opset_version=opset)
        assert results._fields == tuple(filter(None, names))
        assert_same_bits(results.y, y, "the other outputs do not change the first one")
        full = node_of("LayerNormalization", len(inputs), ["y", "mean", "inverse"], **more)
        expected = dict(zip(full.output, reference(full, inputs, opset), strict=True))
        for name in results._fields[1:]:
            statistic = getattr(results, name)
            assert statistic.dtype == np.float32  # for float16 too
            # Two roundings to float32 and a root, which halves the error of the variance.
            np.testing.assert_allclose(statistic, expected[name], rtol=2**-22, atol=2**-22)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "axis", "parameters"),
    [((4, 768), -1, (768,)), ((2, 3, 4), 1, (3, 4)), ((2, 3, 4), 0, (4,)), ((2, 3), None, ())],
)
def test_rms_normalization(
    dtype: Any, shape: tuple[int, ...], axis: int | None, parameters: tuple[int, ...]
) -> None:
    more: dict[str, Any] = {} if axis is None else {"axis": axis, "epsilon": 0.01}
    inputs = [random(shape, dtype), random(parameters, dtype, 1)]
    node = node_of("RMSNormalization", 2, **more)
    for opset in versions("RMSNormalization"):
        y = check(node, inputs, opset).y
    # The type of the scale is that of the result.
    other = np.dtype(np.float32 if dtype == np.float16 else np.float16)
    mixed = check(node, [inputs[0], inputs[1].astype(other)], NEWEST).y
    np.testing.assert_allclose(mixed, y, rtol=0, atol=float(np.abs(y).max()) * 2**-9)


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_results(dtype: Any) -> None:
    x = np.array([[1, 2, 3, 6]], dtype)
    scale, bias = np.array([2, 2, 2, 4], dtype), np.array([0, 0, 0, 1], dtype)
    layer = node_of("LayerNormalization", 3, ["y", "mean", "inverse"], epsilon=0.5)
    y, mean, inverse = backend.run_node(layer, [x, scale, bias])
    assert (y.tolist(), mean.tolist(), inverse.tolist()) == ([[-2, -1, 0, 7]], [[3]], [[0.5]])
    (y,) = backend.run_node(node_of("RMSNormalization", 2, epsilon=3.5), [x, scale])
    assert y.tolist() == [[0.5, 1, 1.5, 6]]


def test_no_epsilon() -> None:
    """The inverse deviation of equal elements is infinite, without a warning."""
    node = node_of("LayerNormalization", 2, ["y", "mean", "inverse"], epsilon=0.0)
    x, scale = np.full((2, 4), 3, np.float32), np.ones(4, np.float32)
    y, mean, inverse = backend.run_node(node, [x, scale])
    assert np.isnan(y).all()
    assert (mean.tolist(), inverse.tolist()) == ([[3], [3]], [[np.inf], [np.inf]])


# Instance, group and mean-variance normalization


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opset", versions("InstanceNormalization"))
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (1, 1, 2, 3, 2), (2, 3, 1, 1)])
def test_instance_normalization(dtype: Any, opset: int, shape: tuple[int, ...]) -> None:
    inputs = [random(shape, dtype), *(random(shape[1:2], dtype, seed) for seed in (1, 2))]
    node = node_of("InstanceNormalization", 3, epsilon=0.01)
    y = check(node, inputs, max(opset, 6)).y
    if opset < 6:  # an attribute that the reference does not know
        node.attribute.append(helper.make_attribute("consumed_inputs", [0, 0, 0]))
        assert_same_bits(backend.run_node(node, inputs, opset_version=opset).y, y)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opset", versions("GroupNormalization"))
@pytest.mark.parametrize(
    ("shape", "groups"),
    [
        ((2, 4, 3), 1),
        ((2, 4, 3), 2),
        ((2, 4, 3), 4),
        ((2, 6, 3, 2), 3),
        ((3, 4), 2),
        ((2, 4, 1, 2, 1, 2, 1, 3), 2),
    ],
)
def test_group_normalization(dtype: Any, opset: int, shape: tuple[int, ...], groups: int) -> None:
    inputs = [random(shape, dtype), *(random(shape[1:2], dtype, seed) for seed in (1, 2))]
    node = node_of("GroupNormalization", 3, num_groups=groups, epsilon=0.01)
    # The reference is ONNX's function, which rounds to float32, and takes the difference of the
    # mean square and the square of the mean.
    y = check(node, inputs, opset, factor=16 if dtype == np.float32 else 2).y
    for order in ("F", "A"):
        x = np.asarray(inputs[0], order=order)
        assert_same_bits(backend.run_node(node, [x, *inputs[1:]]).y, y, "any layout")


def test_group_normalization_of_opset_18_is_not_valid() -> None:
    inputs = [np.ones((2, 4, 3), np.float32), *[np.ones(2, np.float32)] * 2]
    node = node_of("GroupNormalization", 3, num_groups=2)
    with pytest.raises(onnx.checker.ValidationError, match="GroupNormalization is deprecated"):
        backend.run_node(node, inputs, opset_version=18)


@pytest.mark.parametrize("opset", versions("MeanVarianceNormalization"))
@pytest.mark.parametrize("axes", [None, [2, 3], [0], [1, -1], [0, 1, 2, 3]])
def test_mean_variance_normalization(opset: int, axes: list[int] | None) -> None:
    more: dict[str, Any] = {} if axes is None else {"axes": axes}
    node = node_of("MeanVarianceNormalization", 1, **more)
    over = (0, 2, 3) if axes is None else tuple(axes)
    x = random((3, 2, 4, 3), np.float32)
    # The smaller the numbers, the more ONNX's 1e-9 counts.
    for small in (x, (x * 2**-12).astype(np.float16), x * np.float32(2e-9)):
        (y,) = backend.run_node(node, [small], opset_version=opset)
        assert y.dtype == small.dtype
        wide = small.astype(np.float64)
        deviation = wide.std(over, keepdims=True)
        expected = (wide - wide.mean(over, keepdims=True)) / (deviation + 1e-9)
        assert_close(y, expected, [small])
        if small.dtype == np.float32:  # the only type of ONNX's function, which rounds to it
            (function,) = reference(node, [small], opset, np.float32)
            assert_close(y, function, [small], factor=16)
    equal = np.broadcast_to(x[:1, :1, :1, :1], x.shape)
    assert not backend.run_node(node, [equal], opset_version=opset).y.any()


def test_mean_variance_normalization_of_large_numbers_and_of_all_axes() -> None:
    node = node_of("MeanVarianceNormalization", 1, axes=[0])
    (y,) = backend.run_node(node, [np.array([-1e30, 1e30], np.float32)])
    assert y.tolist() == [-1, 1]  # though the variance exceeds float32
    (y,) = backend.run_node(node, [np.array([np.nan, 1], np.float32)])
    assert np.isnan(y).all()
    empty = node_of("MeanVarianceNormalization", 1)
    empty.attribute.append(
        onnx.AttributeProto(name="axes", type=onnx.AttributeProto.INTS)
    )  # as in ReduceMean: all
    (y,) = backend.run_node(empty, [np.array([[-2, 2], [2, -2]], np.float32)])
    assert y.tolist() == [[-1, 1], [1, -1]]


# Batch normalization: training


@pytest.mark.parametrize("opset", [v for v in versions("BatchNormalization") if v >= 14])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("statistics", FLOATS)
@pytest.mark.parametrize("momentum", [None, 0.0, 0.25])
def test_training(
    opset: int, shape: tuple[int, ...], dtype: Any, statistics: Any, momentum: float | None
) -> None:
    more: dict[str, Any] = {} if momentum is None else {"momentum": momentum}
    x, scale, bias = (random(s, dtype, i) for i, s in enumerate((shape, (3,), (3,))))
    mean, variance = (random((3,), statistics, seed) for seed in (3, 4))
    inputs = [x, scale, bias, mean, np.abs(variance)]
    names = ["y", "mean", "variance"]
    node = node_of("BatchNormalization", 5, names, training_mode=1, epsilon=0.01, **more)
    results = backend.run_node(node, inputs, opset_version=opset)
    for result, expected in zip(results, reference(node, inputs, opset), strict=True):
        assert_close(result, expected, inputs)
    assert [value.dtype for value in results] == [dtype, statistics, statistics]
    for fewer in (["y"], ["y", "mean", ""], ["y", "", "variance"]):
        node = node_of("BatchNormalization", 5, fewer, training_mode=1, epsilon=0.01, **more)
        again = backend.run_node(node, inputs, opset_version=opset)
        assert again._fields == tuple(filter(None, fewer))
        for name in again._fields:
            assert_same_bits(getattr(again, name), getattr(results, name))


def test_training_keeps_variances_that_exceed_float16() -> None:
    names = ["y", "mean", "variance"]
    node = node_of("BatchNormalization", 5, names, training_mode=1, momentum=0.5)
    x = np.array([[-1024], [1024]], np.float16)
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    y, mean, variance = backend.run_node(node, [x, *[one.astype("f2")] * 2, zero, zero])
    assert (y.tolist(), mean.tolist(), variance.tolist()) == ([[0], [2]], [0], [2**19])
    half = [array.astype(np.float16) for array in (one, zero, zero, zero)]
    assert np.isinf(backend.run_node(node, [x, *half]).variance).all()


@pytest.mark.parametrize(("opset", "outputs"), [(1, 1), (6, 1), (7, 5), (9, 5)])
def test_training_of_old_opsets_is_refused(opset: int, outputs: int) -> None:
    names = ["y", *"1234"][:outputs]
    more = {"consumed_inputs": [0, 0, 0, 1, 1]} if opset < 6 else {}
    node = node_of("BatchNormalization", 5, names, **more)
    words = rf"^BatchNormalization \(node 'it'\): training in opset {opset}, .* convert .* opset 14"
    with pytest.raises(backend.UnsupportedError, match=words):
        backend.run_node(
            node, [np.ones((2, 3), np.float32), *[np.ones(3, np.float32)] * 4], opset_version=opset
        )
