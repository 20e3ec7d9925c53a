"""dmlops.onnx.prepare: accepted models, refusals before a run, and messages."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import X, parsed, relu_model
from reference import assert_same_bits
from subprocesses import python

import dmlops

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")


def model_of(
    body: str, initializers: str = "", opset: int = 17, x: str = "float[2, 3, 4] x"
) -> Any:
    """Return a model whose only node is called `it`."""
    model = parsed(f"g ({x}) => (float[2, 3, 4] y) <{initializers}> {{ {body} }}", opset)
    model.graph.node[-1].name = "it"
    return model


FOUR = ", ".join(f"float[4] {name} = {{1, 1, 1, 1}}" for name in "sbmv")
THREE = ", ".join(f"float[3] {name} = {{1, 1, 1}}" for name in "sbm")
WRONG = {
    "bound of another type": (
        model_of("y = Clip (x, low)", "double low = {0}"),
        "Clip (node 'it'): min has data type float64, but input has float32; convert min",
    ),
    "bounds of another type each": (
        model_of("y = Clip (x, , high)", "int64 high = {0}"),
        "Clip (node 'it'): max has data type int64, but input has float32; convert max",
    ),
    "bound with elements": (
        model_of("y = Clip (x, low)", "float[2] low = {0, 1}"),
        "Clip (node 'it'): min has shape (2,), but a bound must be a scalar, of shape ()",
    ),
    "axis": (
        model_of("y = LogSoftmax <axis = 3> (x)"),
        "LogSoftmax (node 'it'): axis 3 is out of range for an input of 3 dimensions, -3 to 2",
    ),
    "negative axis of a matrix": (
        model_of("y = LogSoftmax <axis = -4> (x)", opset=11),
        "LogSoftmax (node 'it'): axis -4 is out of range for an input of 3 dimensions, -3 to 2",
    ),
    "axes of one number": (
        model_of("y = MeanVarianceNormalization <axes = [1, 1]> (x)"),
        "MeanVarianceNormalization (node 'it'): axes [1, 1] name axis 1 twice",
    ),
    "axes of one dimension": (
        model_of("y = MeanVarianceNormalization <axes = [0, 1, -3]> (x)"),
        "MeanVarianceNormalization (node 'it'): axes [0, 1, -3] name axis 0 twice",
    ),
    "too many parameters": (
        model_of("y = BatchNormalization (x, s, b, m, v)", FOUR),
        "BatchNormalization (node 'it'): scale has shape (4,), but X has shape (2, 3, 4), "
        "for which it must be (3,)",
    ),
    "one parameter too short": (
        model_of(
            "y = BatchNormalization (x, s, b, m, v)", THREE + ", float[2] v = {1, 1}", opset=9
        ),
        "BatchNormalization (node 'it'): var has shape (2,), but X has shape (2, 3, 4), for which "
        "it must be (3,)",
    ),
    "parameters of places": (
        model_of("y = BatchNormalization <spatial = 0> (x, s, b, m, v)", FOUR, opset=7),
        "BatchNormalization (node 'it'): scale has shape (4,), but X has shape (2, 3, 4), "
        "for which it must be (3, 4)",
    ),
    "parameter of another type": (
        model_of("y = BatchNormalization (x, s, b, m, v)", THREE + ", double[3] v = {1, 1, 1}", 9),
        "BatchNormalization (node 'it'): var has data type float64, but X has float32",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_nodes_are_refused_by_name(case: str) -> None:
    model, message = WRONG[case]
    for error in (onnx.checker.ValidationError, ValueError):
        with pytest.raises(error) as raised:
            backend.prepare(model)
        assert message in str(raised.value)


def test_sizes_that_are_not_known_are_checked_in_the_run() -> None:
    parameters = ", ".join(f"float[C] {name}" for name in "sbmv")
    model = model_of("y = BatchNormalization (x, s, b, m, v)", x=f"float[N, C, ?] x, {parameters}")
    prepared = backend.prepare(model)
    three, four = np.ones(3, np.float32), np.ones(4, np.float32)
    assert prepared.run([X, three, three, three, three]).y.shape == X.shape
    with pytest.raises(
        ValueError, match=r"^BatchNormalization \(node 'it'\): scale has shape \(4,\), but X has "
    ):
        prepared.run([X, four, four, four, four])


def test_an_opset_that_onnx_does_not_know() -> None:
    newest = onnx.defs.onnx_opset_version()
    model = relu_model(opset=999)
    words = f"the model has opset 999, but onnx .* to opset {newest}; install a newer onnx"
    with pytest.raises(backend.UnsupportedError, match=words):
        backend.prepare(model)
    assert not backend.is_compatible(model)
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    with pytest.raises(backend.UnsupportedError, match="opset 999"):
        backend.run_node(node, [X], opset_version=999)


def test_a_path_bytes_or_a_model(tmp_path: Path) -> None:
    model = relu_model()
    path = tmp_path / "relu.onnx"
    onnx.save(model, path)
    content = path.read_bytes()
    sources = (model, path, str(path), content, bytearray(content), memoryview(content))
    for source in sources:
        assert_same_bits(backend.prepare(source).run([X]).y, dmlops.relu(X))


def test_what_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_bytes(b"\xff\xff")
    with pytest.raises(backend.ModelError, match=r"prepare: '.*text\.onnx' is not an ONNX model"):
        backend.prepare(tmp_path / "text.onnx")
    with pytest.raises(backend.ModelError, match="prepare: the argument is not an ONNX model"):
        backend.prepare(b"\xff\xff")
    with pytest.raises(FileNotFoundError):
        backend.prepare(tmp_path / "nothing.onnx")
    with pytest.raises(
        TypeError, match=r"prepare: model must be an onnx.ModelProto, a path, .*list"
    ):
        backend.prepare([])


def test_inputs_and_outputs() -> None:
    prepared = backend.prepare(
        parsed("""
            g (float[N, 3] x, float16[?] z, float[2] w) => (float[N, 3] y, float16[5] h, float[2] c)
            <float[2] w = {1, 2}>
            { y = Relu (x)  h = Tanh (z)  c = Identity (w) }
        """)
    )
    float16, float32 = np.dtype(np.float16), np.dtype(np.float32)
    assert prepared.inputs == (("x", float32, ("N", 3)), ("z", float16, (None,)))
    assert [value.name for value in prepared.outputs] == ["y", "h", "c"]
    assert prepared.outputs[1] == backend.Value("h", float16, (5,))
    assert repr(prepared) == (
        "<PreparedModel (x: float32 (?, 3), z: float16 (?,)) => "
        "(y: float32 (?, 3), h: float16 (5,), c: float32 (2,)); nodes: 3 on dmlops>"
    )


def test_constants_are_not_given_away() -> None:
    model = parsed("""
        g () => (float[2] y, float w, float[2] z) <float[2] y = {1, 2}>
        { w = Constant <value_float = 3.0> ()  z = Identity (y) }
    """)
    prepared = backend.prepare(model)
    for _ in range(2):
        outputs = prepared.run([])
        assert [np.ravel(output).tolist() for output in outputs] == [[1, 2], [3], [1, 2]]
        for output in outputs:
            output[...] = 9


@pytest.mark.parametrize("fallback", [None, "onnxruntime"])
def test_results_share_no_memory(fallback: str | None) -> None:
    """Neither with inputs, given initializers and constants nor with each other."""
    if fallback:
        pytest.importorskip("onnxruntime")
    views = (
        "v = Reshape (x, s)  u = Transpose (v)" if fallback else "v = Identity (x)  u = Relu (v)"
    )
    model = parsed(f"""
        g (float[1, 2] x, float[1, 2] w)
        => (float[1, 2] x, float[1, 2] w, float[1, 2] c, float[1, 2] y, float[1, 2] y,
            float[N, M] z, float[N, M] v, float[1, 2] u)
        <float[1, 2] w = {{1, 2}}, float[1, 2] c = {{3, 4}}, int64[2] s = {{2, 1}}>
        {{ y = Relu (x)  z = Identity (y)  {views} }}
    """)
    x, w = np.ones((1, 2), np.float32), np.ones((1, 2), np.float32)
    for given in ({"x": x}, {"x": x, "w": w}):
        results = [*backend.prepare(model, fallback=fallback).run(given)]
        arrays = [*given.values(), *results]
        pairs = itertools.combinations(range(len(arrays)), 2)
        assert not [pair for pair in pairs if np.shares_memory(*(arrays[i] for i in pair))]
        assert all(result.flags.writeable for result in results)


def test_sequences_are_copied() -> None:
    sequence = onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(1, [2]))
    x, y = (onnx.helper.make_value_info(name, sequence) for name in "xy")
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [x, y]))
    given = [np.ones(2, np.float32)]
    for result in backend.prepare(model).run([given]):
        assert result is not given
        assert not np.shares_memory(result[0], given[0])


def test_the_import_error_names_the_extra() -> None:
    code = "import sys; sys.modules['onnx'] = None; import dmlops.onnx"
    finished = python("-c", code)
    assert "ModuleNotFoundError: dmlops.onnx needs the package onnx" in finished.stderr
    assert "pip install 'dmlops[onnx]'" in finished.stderr


def with_element_type(graph: str) -> Any:
    model = relu_model()
    getattr(model.graph, graph)[0].type.tensor_type.elem_type = 99
    return model


def named(graph: str) -> Any:
    model = parsed(graph)
    model.graph.node[-1].name = "it"
    return model


def with_surplus_data(model: Any) -> Any:
    model.graph.initializer[0].dims[0] = 2
    return model


def with_reference(model: Any) -> Any:
    attribute = model.graph.node[0].attribute[0]
    attribute.ClearField("f")
    attribute.ref_attr_name = "other"  # of a function, which has attributes of its own
    return model


def with_wrong_text(model: Any) -> bytes:
    return bytes(model.SerializeToString().replace(b"TEXT", b"\xff\xfe\xff\xfe"))


INVALID = {
    "shape of an initializer": (
        model_of("y = Relu (x)", "float[3] w = {1, 2, 3}", x="float[2, 3, 4] x, float[2] w"),
        r"^the initializer 'w' is float32 \(3,\), but the graph declares float32 \(2,\)$",
    ),
    "type of an initializer": (
        model_of("y = Relu (x)", "float[3] w = {1, 2, 3}", x="float[2, 3, 4] x, float16[3] w"),
        "^the initializer 'w' is float32, but the graph declares float16$",
    ),
    "element type of an input": (
        with_element_type("input"),
        "^value 'x' has element type 99, which ONNX does not define$",
    ),
    "element type of an output": (
        with_element_type("output"),
        "^value 'y' has element type 99, which ONNX does not define$",
    ),
    "constant without a value": (
        model_of("y = Constant ()"),
        r"^Constant \(node 'it'\): no value; a constant must have exactly one$",
    ),
    "constant with two values": (
        model_of("y = Constant <value_float = 1.0, value_int = 1> ()"),
        r"^Constant \(node 'it'\): the values value_float, value_int; a constant must have exactly",
    ),
    "type of an output": (
        named("g (float[N] x) => (float16[N] y) { y = Identity (x) }"),
        r"^Identity \(node 'it'\): the result 'y' is float32, but the graph declares float16$",
    ),
    "type of an inner value": (
        named("g (float[3] x) => (float[3] y) <float16[3] h> { h = Relu (x)  y = Tanh (h) }"),
        r"^Relu: the result 'h' is float32, but the graph declares float16$",
    ),
    "type of a constant": (
        named("g () => (float16 y) { y = Constant <value_float = 1.0> () }"),
        r"^Constant \(node 'it'\): the value 'y' is float32, but the graph declares float16$",
    ),
    "type of a statistic": (
        named(
            "g (float16[3] x, float16[3] s) => (float16[3] y, float16[1] m) "
            "{ y, m = LayerNormalization (x, s) }"
        ),
        r"^LayerNormalization \(node 'it'\): the statistic 'm' is float32, but the graph declares "
        "float16$",
    ),
    "type of a running mean": (
        named(
            "g (float16[N, 3] x, float16[3] s, float[3] m) => (float16[N, 3] y, float16[3] a, "
            "float[3] b) { y, a, b = BatchNormalization <training_mode = 1> (x, s, s, m, m) }"
        ),
        r"^BatchNormalization \(node 'it'\): the result 'a' is float32, but the graph declares "
        "float16$",
    ),
    "data of an initializer": (
        with_surplus_data(model_of("y = Relu (x)", "float[4] w = {1, 2, 3, 4}")),
        r"^the initializer 'w' has invalid data: cannot reshape array of size 4 into shape \(2,\)$",
    ),
    "strings of an initializer": (
        with_wrong_text(model_of("y = Relu (x)", 'string[1] w = {"TEXT"}')),
        "^the initializer 'w' has invalid data: 'utf-8' codec can't decode",
    ),
    "reference in an attribute": (
        with_reference(model_of("y = LeakyRelu <alpha = 0.5> (x)")),
        r"^LeakyRelu \(node 'it'\): attribute 'alpha' is invalid: Cannot get value of ref",
    ),
    "text of an attribute": (
        with_wrong_text(model_of('y = Gelu <approximate = "TEXT"> (x)', opset=20)),
        r"^Gelu \(node 'it'\): attribute 'approximate' is invalid: 'utf-8' codec can't decode",
    ),
    "operator's name": (
        with_wrong_text(
            onnx.helper.make_model(
                onnx.helper.make_graph([onnx.helper.make_node("TEXT", [], ["y"])], "g", [], []),
                opset_imports=[onnx.helper.make_opsetid("", 17)],
                ir_version=8,
            )
        ),
        "UTF-8",
    ),
    "input that no node makes": (model_of("y = Relu (z)"), "input 'z' of node:"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_models(case: str) -> None:
    model, words = INVALID[case]
    with pytest.raises(backend.ModelError, match=words):
        backend.prepare(model)
    assert not backend.is_compatible(model)


def test_other_errors_do_not_blame_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> None:
        raise ValueError("an error of dmlops")

    relu = dataclasses.replace(backend.OPERATORS["Relu"], prepare=broken)
    monkeypatch.setitem(backend.OPERATORS, "Relu", relu)
    with pytest.raises(ValueError, match="an error of dmlops") as raised:
        backend.prepare(relu_model())
    assert not isinstance(raised.value, backend.ModelError)
