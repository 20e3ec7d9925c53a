"""dmlops.onnx: every opset's operators, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from onnx_models import NEWEST, X, parsed, versions
from reference import assert_same_bits

import dmlops
from dmlops._table import ACTIVATIONS

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")

Array = npt.NDArray[Any]
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator
TensorProto, helper = onnx.TensorProto, onnx.helper


def model_of(*nodes: Any, opset: int = NEWEST, **shapes: Any) -> Any:
    """Return a model of the nodes, from x to y; `shapes`: more inputs, float32."""
    inputs = {"x": X.shape, **shapes}
    graph = helper.make_graph(
        nodes,
        "test",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in inputs.items()
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, X.shape)],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3 if opset < 7 else 8
    )


def run(operator: str, *more: Array, opset: int = NEWEST, **attributes: Any) -> Array:
    """Run one operator on X and more inputs, as a model of that opset."""
    names = [f"input{i}" for i in range(len(more))]
    node = helper.make_node(operator, ["x", *names], ["y"], **attributes)
    shapes = {name: value.shape for name, value in zip(names, more, strict=True)}
    (result,) = backend.run_model(model_of(node, opset=opset, **shapes), [X, *more])
    return np.asarray(result)


EXPECTED: dict[str, tuple[dict[str, Any], Callable[[], Array]]] = {
    "Celu": ({"alpha": 2.0}, lambda: dmlops.celu(X, 2)),
    "Elu": ({"alpha": 0.5}, lambda: dmlops.elu(X, 0.5)),
    "HardSigmoid": ({"alpha": 0.3, "beta": 0.6}, lambda: dmlops.hard_sigmoid(X, 0.3, 0.6)),
    "Identity": ({}, lambda: X),
    "LeakyRelu": ({"alpha": 0.3}, lambda: dmlops.leaky_relu(X, 0.3)),
    "LogSoftmax": ({"axis": 2}, lambda: dmlops.log_softmax(X, 2)),
    "Softmax": ({"axis": 2}, lambda: dmlops.softmax(X, 2)),
    "Hardmax": ({"axis": 2}, lambda: dmlops.hardmax(X, 2)),
    "Relu": ({}, lambda: dmlops.relu(X)),
    "Selu": ({"alpha": 1.5, "gamma": 1.2}, lambda: dmlops.scaled_elu(X, 1.5, 1.2)),
    "Shrink": ({"bias": 0.5, "lambd": 1.5}, lambda: dmlops.shrink(X, 0.5, 1.5)),
    "Sigmoid": ({}, lambda: dmlops.sigmoid(X)),
    "Softplus": ({}, lambda: dmlops.softplus(X)),
    "Softsign": ({}, lambda: dmlops.softsign(X)),
    "Tanh": ({}, lambda: dmlops.tanh(X)),
    "ThresholdedRelu": ({"alpha": 0.5}, lambda: dmlops.thresholded_relu(X, 0.5)),
    "Gelu": ({"approximate": "none"}, lambda: dmlops.gelu(X)),
}
NORMALIZATIONS = [name for name in backend.OPERATORS if name.endswith("Normalization")]
# The operators whose parameters have defaults.
EXPECTED |= {
    row.onnx: ({}, partial(getattr(dmlops, row.function), X))
    for row in ACTIVATIONS
    if row.onnx and row.onnx not in EXPECTED
}


def every_version() -> list[tuple[str, int]]:
    return [(name, opset) for name in EXPECTED for opset in versions(name)]


@pytest.mark.parametrize(("name", "opset"), every_version())
def test_every_opset(name: str, opset: int) -> None:
    attributes, expected = EXPECTED[name]
    assert_same_bits(run(name, opset=opset, **attributes), expected(), f"{name} of opset {opset}")


def test_every_operator_is_tested() -> None:
    elsewhere = {"Clip", "Constant", "PRelu", *NORMALIZATIONS}
    assert set(EXPECTED) | elsewhere == set(backend.OPERATORS)


def test_defaults_are_those_of_the_opset() -> None:
    assert_same_bits(run("Selu", opset=1), dmlops.scaled_elu(X, 1.6732, 1.0507))
    assert_same_bits(run("Selu"), dmlops.scaled_elu(X))
    assert_same_bits(run("HardSigmoid"), dmlops.hard_sigmoid(X))
    assert_same_bits(run("LeakyRelu"), dmlops.leaky_relu(X, 0.01))
    assert_same_bits(run("LogSoftmax", opset=11), dmlops.log_softmax(X, (1, 2)))
    assert_same_bits(run("LogSoftmax", opset=13), dmlops.log_softmax(X, 2))


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2, None])
def test_softmax_family(name: str, axis: int | None) -> None:
    """Up to opset 12 the group is all axes from `axis` on, from opset 13 on one axis."""
    attributes = {} if axis is None else {"axis": axis}
    first = 1 if axis is None else axis
    columns = X.reshape(-1, int(np.prod(X.shape[first:])))
    node = helper.make_node(name, ["x"], ["y"], axis=-1)
    matrix, single = (
        ReferenceEvaluator(node).run(None, {"x": np.moveaxis(x, moved, -1).astype(np.float64)})[0]
        for x, moved in ((columns, -1), (X, -1 if axis is None else axis))
    )
    single = np.moveaxis(single, -1, -1 if axis is None else axis)
    # Twice the errors that docs/accuracy.md states, relative to the largest intermediate: below 16.
    tolerance: dict[str, Any] = {"rtol": 2**-22, "atol": 16 * 2.0**-22}
    if name != "LogSoftmax":
        tolerance["atol"] = 0
    for opset in (1, 11, 12) if first >= 0 else (11, 12):
        result = run(name, opset=opset, **attributes)
        np.testing.assert_allclose(result, matrix.reshape(X.shape), **tolerance)
    for opset in (13, NEWEST):
        np.testing.assert_allclose(run(name, opset=opset, **attributes), single, **tolerance)


def test_softmax_without_dimensions() -> None:
    for opset, axis in ((11, 0), (11, -1), (13, 0), (13, -1)):
        node = helper.make_node("Softmax", ["x"], ["y"], axis=axis)
        (y,) = backend.run_node(node, [np.array(3, np.float32)], opset_version=opset)
        assert_same_bits(y, np.array(1, np.float32))


def test_swish() -> None:
    assert_same_bits(run("Swish", alpha=1.702), dmlops.swish(X, 1.702))


# PRelu


PRELU = [
    (opset, dtype, shape)
    for opset in versions("PRelu")
    for dtype in (np.float32, np.float16, np.int32)[: 2 if opset < 9 else 3]
    for shape in (
        ((), (1,), (3,))
        if opset < 7
        else ((), (1,), (4,), (3, 1), (3, 4), (2, 3, 4), (1, 1, 1), (2, 1, 1))
    )
]


@pytest.mark.parametrize(("opset", "dtype", "shape"), PRELU)
def test_prelu(opset: int, dtype: type, shape: tuple[int, ...]) -> None:
    """To opset 6 a slope per channel or for all, then one that broadcasts as in NumPy."""
    x: Array = np.round(16 * X).astype(dtype)
    slope: Array = np.round(8 * samples.uniform(shape, np.float32)).astype(dtype)
    attributes = {"consumed_inputs": [0, 0]} if opset < 6 else {}
    node = helper.make_node("PRelu", ["x", "slope"], ["y"], **attributes)
    (y,) = backend.run_node(node, [x, slope], opset_version=opset)
    given = slope.reshape(3, 1) if shape == (3,) else slope
    evaluator = ReferenceEvaluator(helper.make_node("PRelu", ["x", "slope"], ["y"]))
    (expected,) = evaluator.run(None, {"x": x, "slope": given})  # small integers: exact
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, expected)


def test_prelu_refusals() -> None:
    for opset, shape, words in (
        (6, (4,), r"slope has shape \(4,\), but X has shape \(2, 3, 4\), .* must be \(3,\)"),
        (7, (3,), r"slope has shape \(3,\), which does not broadcast to that of X, \(2, 3, 4\)"),
        (16, (1, 2, 3, 4), r"slope has shape \(1, 2, 3, 4\), which does not broadcast"),
    ):
        with pytest.raises(backend.ModelError, match=rf"PRelu: {words}"):
            run("PRelu", np.ones(shape, np.float32), opset=opset)
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    with pytest.raises(backend.UnsupportedError, match=r"PRelu: data type int64; dmlops supports"):
        backend.run_node(node, [np.ones(1, np.int64), np.ones(1, np.int64)])


# Clip


def test_clip() -> None:
    for opset in (1, 6):
        result = run("Clip", opset=opset, min=-1.0, max=2.0)
        assert_same_bits(result, dmlops.clip(X, -1, 2))
    low, high = np.array(-1, np.float32), np.array(2, np.float32)
    for opset in (11, 12, 13):
        assert_same_bits(run("Clip", low, high, opset=opset), dmlops.clip(X, -1, 2))
        assert_same_bits(run("Clip", low, opset=opset), dmlops.clip(X, -1))
        assert_same_bits(run("Clip", high, low, opset=opset), np.full_like(X, -1), "min above max")


def test_clip_bounds_default_to_the_limits_of_the_type() -> None:
    node = helper.make_node("Clip", ["x"], ["y"])
    x = np.array([np.inf, -np.inf, np.nan, 1], np.float32)
    limit = np.finfo(np.float32).max
    for opset in (6, 13):
        (y,) = backend.run_node(node, [x], opset_version=opset)
        np.testing.assert_array_equal(y, np.array([limit, -limit, np.nan, 1], np.float32))
    for opset, largest in ((6, np.inf), (10, np.inf), (11, 65504), (13, 65504)):
        (y,) = backend.run_node(node, [x.astype(np.float16)], opset_version=opset)
        np.testing.assert_array_equal(y, np.array([largest, -largest, np.nan, 1], np.float16))


def test_clip_of_integers_and_omitted_inputs() -> None:
    node = helper.make_node("Clip", ["x", "", "max"], ["y"])
    x = np.array([-(2**62) - 1, 0, 2**62 + 1])
    (y,) = backend.run_node(node, [x, np.array(2**62)])
    assert y.tolist() == [-(2**62) - 1, 0, 2**62]
    with pytest.raises(ValueError, match=r"Clip: max has shape \(2,\)"):
        backend.run_node(node, [x, np.array([1, 2])])


# Batch normalization

CHANNELS = [samples.uniform((3,), np.float32, 0.5, 2, seed=i) for i in range(4)]
SCALE, BIAS, MEAN, VARIANCE = CHANNELS


def normalized(epsilon: float, *parameters: Array) -> Array:
    scale, bias, mean, variance = parameters
    return dmlops.batch_normalization(X, mean, variance, scale, bias, epsilon)


@pytest.mark.parametrize("opset", versions("BatchNormalization"))
def test_batch_normalization(opset: int) -> None:
    attributes: dict[str, Any] = {"epsilon": 1e-3, "momentum": 0.5}
    attributes |= {"is_test": 1} if opset < 7 else {}
    attributes |= {"consumed_inputs": [0, 0, 0, 1, 1]} if opset < 6 else {}
    expected = normalized(1e-3, *(array.reshape(1, 3, 1) for array in CHANNELS))
    result = run("BatchNormalization", *CHANNELS, opset=opset, **attributes)
    assert_same_bits(result, expected)
    if opset < 9:
        places = [samples.uniform((3, 4), np.float32, 0.5, 2, seed=i) for i in range(4)]
        result = run("BatchNormalization", *places, opset=opset, spatial=0, **attributes)
        assert_same_bits(result, normalized(1e-3, *(array[None] for array in places)))


def test_batch_normalization_of_mixed_types_and_of_rank_1_and_2() -> None:
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])
    x = X.astype(np.float16)
    (y,) = backend.run_node(node, [x, *CHANNELS])
    wide = dmlops.batch_normalization(
        x.astype(np.float32),
        *(array.reshape(1, 3, 1) for array in (MEAN, VARIANCE, SCALE, BIAS)),
    )
    assert_same_bits(y, wide.astype(np.float16))
    (matrix,) = backend.run_node(node, [X[:, :, 0], *CHANNELS])
    assert_same_bits(
        matrix,
        dmlops.batch_normalization(
            X[:, :, 0], *(array[None] for array in (MEAN, VARIANCE, SCALE, BIAS))
        ),
    )
    (vector,) = backend.run_node(node, [X[:, 0, 0], *(array[:1] for array in CHANNELS)])
    assert_same_bits(vector, matrix[:, 0])


# Models


def test_a_model_of_several_nodes() -> None:
    """Constants, initializers, values used twice, an output that is also an intermediate."""
    model = parsed("""
        several (float[N, 3, 4] x) => (float[N, 3, 4] y, float[N, 3, 4] unused, float[N, 3, 4] h)
        <float[3] scale = {1, 2, 3}, float[3] zero = {0, 0, 0}, float[3] one = {1, 1, 1}>
        {
            n = BatchNormalization <epsilon = 0.5> (x, scale, zero, zero, one)
            h = LeakyRelu <alpha = 0.1> (n)
            low = Constant <value_float = -0.5> ()
            c = Clip (h, low)
            y = LogSoftmax (c)
            unused = Identity (x)
        }
    """)
    prepared = backend.prepare(model)
    for _ in range(2):
        outputs = prepared.run({"x": X})
        scale = np.array([1, 2, 3], np.float32).reshape(1, 3, 1)
        zero, one = np.zeros_like(scale), np.ones_like(scale)
        h = dmlops.leaky_relu(dmlops.batch_normalization(X, zero, one, scale, zero, 0.5), 0.1)
        assert_same_bits(outputs.h, h)
        assert_same_bits(outputs[0], dmlops.log_softmax(dmlops.clip(h, -0.5)))
        assert_same_bits(outputs.unused, X)
        assert not np.shares_memory(outputs.unused, X)
    assert backend.is_compatible(model)


def test_a_file(tmp_path: Path) -> None:
    onnx.save(model_of(helper.make_node("Relu", ["x"], ["y"])), tmp_path / "relu.onnx")
    prepared = backend.prepare(tmp_path / "relu.onnx")
    assert_same_bits(prepared.run([X]).y, dmlops.relu(X))


def test_an_initializer_may_be_given() -> None:
    model = model_of(helper.make_node("Clip", ["x", "low"], ["y"]), low=())
    model.graph.initializer.append(helper.make_tensor("low", TensorProto.FLOAT, (), [0.5]))
    prepared = backend.prepare(model)
    assert_same_bits(prepared.run([X]).y, dmlops.clip(X, 0.5))
    assert_same_bits(prepared.run({"x": X, "low": np.array(1, np.float32)}).y, dmlops.clip(X, 1))
    assert_same_bits(prepared.run([X]).y, dmlops.clip(X, 0.5))


@pytest.mark.parametrize(
    ("error", "words", "inputs"),
    [
        (
            TypeError,
            "input 'x' has dtype float64, but the model declares float32",
            [X.astype("f8")],
        ),
        (
            TypeError,
            r"has dtype >f4, but the model declares float32; convert it with astype\('float32'\)",
            [X.astype(">f4")],
        ),
        (ValueError, r"input 'x' has shape \(2, 3\), but .* \(2, 3, 4\)", [X[..., 0]]),
        (ValueError, r"input 'x' has shape \(1, 3, 4\), but", [X[:1]]),
        (ValueError, "2 inputs for a model that has 1: x", [X, X]),
        (ValueError, r"has inputs \['x'\]; unknown: \['z'\], missing: \['x'\]", {"z": X}),
        (TypeError, "must be a sequence of arrays, or a mapping", X),
        (TypeError, "input 'x' must be a numpy.ndarray, not list", [X.tolist()]),
        (TypeError, "input 'x' is a masked array", [np.ma.masked_less(X, 0)]),
    ],
)
def test_wrong_inputs(error: type[Exception], words: str, inputs: Any) -> None:
    prepared = backend.prepare(model_of(helper.make_node("Relu", ["x"], ["y"])))
    with pytest.raises(error, match=words):
        prepared.run(inputs)


def test_strings() -> None:
    prepared = backend.prepare(parsed("g (string[N] x) => (string[N] y) { y = Identity (x) }"))
    x = np.array(["a"])
    words = r"has dtype <U1, but the model declares object; convert it with astype\('object'\)"
    with pytest.raises(TypeError, match=words):
        prepared.run([x])
    assert prepared.run([x.astype("object")]).y.tolist() == ["a"]


def test_refusals_name_the_node() -> None:
    cases = {
        "Sin": helper.make_node("Sin", ["x"], ["y"], name="head"),
        "com.example.Relu": helper.make_node("Relu", ["x"], ["y"], domain="com.example"),
        "Mish": helper.make_node("Mish", ["x"], ["y"]),
    }
    for name, node in cases.items():
        model = model_of(node)
        model.opset_import.append(helper.make_opsetid("com.example", 1))
        with pytest.raises(backend.UnsupportedError, match=rf"{name}.*dmlops has no such operator"):
            backend.prepare(model)
    double = model_of(helper.make_node("Relu", ["x"], ["y"]))
    for value in (*double.graph.input, *double.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    (relu,) = model_of(helper.make_node("Relu", ["x"], ["y"])).graph.node
    with pytest.raises(backend.UnsupportedError, match="Relu: data type >f4; dmlops supports"):
        backend.run_node(relu, [X.astype(">f4")])
    words = "Relu: data type float64; dmlops supports float16, float32, int16, int32, int8"
    with pytest.raises(backend.UnsupportedError, match=words):
        backend.prepare(double)
    with pytest.raises(onnx.checker.ValidationError):
        backend.prepare(model_of(helper.make_node("Relu", ["nothing"], ["y"])))
