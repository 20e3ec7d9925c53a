"""dmlops.onnx.prepare(model, fallback="onnxruntime"): models with operators that dmlops lacks."""

from __future__ import annotations

import io
import random
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from onnx_models import X, assert_agrees, of_nodes, parsed
from onnx_models import prepare_with_fallback as prepare
from reference import assert_same_bits

import dmlops

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")
pytest.importorskip("onnxruntime")

Array = npt.NDArray[Any]


def places(prepared: Any) -> list[str]:
    """Return for each node "-" (dmlops) or the number of the subgraph."""
    return ["-" if p.subgraph is None else str(p.subgraph) for p in prepared.placement()]


# Normalizations


def test_normalizations_between_nodes_of_onnx_runtime() -> None:
    """ONNX infers no type for GroupNormalization, but ONNX Runtime needs that of its inputs."""
    graph = """
        g (float[N, 4, 3] x) => (float[N, 4, 3] y, float[N, 4, 1] means)
        <float[4] scale = {1, 2, 3, 4}, float[4] bias = {0, 1, 0, 1},
         float[4, 1] slope = {1, 0, 2, 3}>
        {
            a = Neg (x)
            b = GroupNormalization <num_groups = 2> (a, scale, bias)
            c = PRelu (b, slope)
            d = GroupNormalization <num_groups = 4> (c, scale, bias)
            e = Abs (d)
            one = Constant <value_float = 1.0> ()
            f, mean, inverse = LayerNormalization (e, one)
            means = Neg (mean)
            y = Sub (f, inverse)
        }
    """
    model = parsed(graph, opset=21)
    prepared = prepare(model)
    assert places(prepared) == ["0", "-", "-", "-", "1", "-", "-", "2", "2"]
    assert_agrees(model, prepared, samples.uniform((2, 4, 3), np.float32))


# A network from PyTorch


@pytest.fixture(scope="module")
def network() -> Any:
    """Return a small convolutional network, exported by PyTorch, that also outputs inner values."""
    torch = pytest.importorskip("torch")
    nn = torch.nn
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.LeakyReLU(0.1), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16), nn.Hardsigmoid(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(16, 10), nn.LogSoftmax(1),
    )  # fmt: skip
    for part in module:
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.uniform_(-1, 1)
            part.running_var.uniform_(0.5, 2)
    file = io.BytesIO()
    with warnings.catch_warnings():  # the other exporter needs one more package
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), (torch.zeros(2, 3, 16, 16),), file, dynamo=False,
            do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE,
        )  # fmt: skip
    return onnx.load_model_from_string(file.getvalue())


IMAGES = samples.uniform((2, 3, 16, 16), np.float32)
OURS = {"BatchNormalization", "LeakyRelu", "HardSigmoid", "LogSoftmax"}


def test_network_agrees_with_onnx_runtime_alone(network: Any) -> None:
    prepared = prepare(network)
    assert_agrees(network, prepared, IMAGES)
    assert {p.operator for p in prepared.placement() if p.runs_on == "dmlops"} - {
        "Identity"
    } == OURS
    rest = [(p.operator, p.subgraph) for p in prepared.placement() if p.runs_on == "onnxruntime"]
    assert rest == [
        ("Conv", 0), ("MaxPool", 1), ("Conv", 1),
        ("GlobalAveragePool", 2), ("Flatten", 2), ("Gemm", 2),
    ]  # fmt: skip
    (conv, *_) = (p for p in prepared.placement() if p.runs_on == "onnxruntime")
    assert (conv.node, conv.reason) == ("/0/Conv", "dmlops has no such operator")
    with pytest.raises(backend.UnsupportedError, match="cannot run 6 of") as refusal:
        backend.prepare(network)
    for name in ("'/0/Conv'", "'/3/MaxPool'", "'/4/Conv'", "GlobalAve", "Flatten", "Gemm"):
        assert name in str(refusal.value)


def test_our_nodes_have_the_bits_of_the_functions(network: Any) -> None:
    shown = onnx.ModelProto()
    shown.CopyFrom(network)
    shown.graph.output.extend(onnx.shape_inference.infer_shapes(network).graph.value_info)
    prepared = prepare(shown)
    values: Any = {prepared.inputs[0].name: IMAGES}
    names = [value.name for value in prepared.outputs]
    values |= dict(zip(names, prepared.run([IMAGES]), strict=True))
    values |= {t.name: onnx.numpy_helper.to_array(t) for t in network.graph.initializer}
    checked = set()
    for node in network.graph.node:
        x, y = values[node.input[0]], values[node.output[0]]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        match node.op_type:
            case "BatchNormalization":
                scale, bias, mean, variance = (
                    values[name].reshape(1, -1, 1, 1) for name in node.input[1:]
                )
                epsilon = attributes["epsilon"]
                expected = dmlops.batch_normalization(x, mean, variance, scale, bias, epsilon)
            case "LeakyRelu":
                expected = dmlops.leaky_relu(x, attributes["alpha"])
            case "HardSigmoid":
                expected = dmlops.hard_sigmoid(x, attributes["alpha"])
            case "LogSoftmax":
                expected = dmlops.log_softmax(x, 1)
            case _:
                continue
        checked.add(node.op_type)
        assert_same_bits(y, expected, node.name)
    assert checked == OURS


# Placement of nodes


def test_as_few_subgraphs_as_possible() -> None:
    prepared = prepare(
        of_nodes("a = Neg (x)  b = Relu (x)  c = Exp (a)  d = Add (b, c)  y = Tanh (d)")
    )
    assert places(prepared) == ["0", "-", "0", "0", "-"]
    # Neg and Sqrt share a subgraph, although Sqrt depends on Relu and is listed after Relu.
    model = of_nodes("a = Neg (x)  b = Relu (x)  c = Sqrt (b)  y = Mul (a, c)")
    assert places(prepare(model)) == ["0", "-", "0", "0"]
    assert_agrees(model, prepare(model))


def test_identity_runs_where_its_neighbors_do() -> None:
    model = of_nodes("a = Neg (x)  b = Identity (a)  c = Exp (b)  d = Relu (c)  y = Identity (d)")
    assert places(prepare(model)) == ["0", "0", "0", "-", "-"]
    assert_agrees(model, prepare(model))


def drawn(seed: int) -> Any:
    """Return a model of random nodes that read random earlier values."""
    choose = random.Random(seed)
    values, lines = ["x"], []
    for number in range(choose.randint(3, 14)):
        kind = choose.choice(("Tanh", "Sigmoid", "Neg", "Sin", "Add", "Identity"))
        sources = [choose.choice(values[-4:]) for _ in range(2 if kind == "Add" else 1)]
        lines.append(f"v{number} = {kind} ({', '.join(sources)})")
        values.append(f"v{number}")
    shown = {values[-1], choose.choice(values[1:])}
    return of_nodes("  ".join(lines), ", ".join(f"float[N, 3, 4] {name}" for name in sorted(shown)))


def fewest(model: Any) -> int:
    """Return the minimum number of subgraphs: places alternate, and dmlops comes first."""
    turn = {"x": 0}
    most = 0
    for node in model.graph.node:
        earliest = max(turn[name] for name in node.input)
        if node.op_type in ("Tanh", "Sigmoid"):
            earliest += earliest % 2
        elif node.op_type != "Identity":
            earliest += 1 - earliest % 2
            most = max(most, (earliest + 1) // 2)
        turn[node.output[0]] = earliest
    return most


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    model = drawn(seed)
    prepared = prepare(model)
    subgraphs = {p.subgraph for p in prepared.placement()} - {None}
    assert len(subgraphs) == fewest(model)
    for p in prepared.placement():
        assert (p.runs_on == "dmlops") == (p.subgraph is None)
        if p.operator != "Identity":
            assert (p.runs_on == "dmlops") == (p.operator in ("Tanh", "Sigmoid")), p
    assert_agrees(model, prepared)


def test_modes_that_dmlops_lacks_run_on_the_fallback() -> None:
    graph = """
        g (float[N] x) => (float[N] y) { h = Gelu (x)  y = Gelu <approximate = "tanh"> (h) }
    """
    model = parsed(graph, opset=20)
    prepared = prepare(model)
    assert places(prepared) == ["-", "0"]
    assert prepared.placement()[1].reason.startswith("approximate='tanh'; dmlops has 'none'")
    assert_agrees(model, prepared, X.ravel())


def test_shrink_of_a_negative_lambd_runs_on_the_fallback() -> None:
    """Both conditions may hold, of which DirectML tests the other one first."""
    model = of_nodes("y = Shrink <lambd = -2.0, bias = 1.0> (x)")
    with pytest.raises(backend.UnsupportedError, match=r"Shrink: lambd=-2.0; dmlops supports 0"):
        backend.prepare(model)
    x = np.array([0, 1, -1, 3, -3, 2], np.float32).reshape(1, 3, 2)
    x = np.concatenate([x, x], 2)
    prepared = prepare(model)
    assert places(prepared) == ["0"]
    assert prepared.run([x]).y[0, :, :2].ravel().tolist() == [1, 2, 0, 2, -2, 1]


def test_more_dimensions_than_dmlops_has_run_on_the_fallback() -> None:
    sizes = ", ".join(["N", *"11111111"])
    model = parsed(f"""
        g (float[{sizes}] x) => (float[{sizes}] y) {{ h = Identity (x)  y = Relu (h) }}
    """)
    words = "Relu: 9 dimensions; dmlops supports at most 8"
    with pytest.raises(backend.UnsupportedError, match=words):
        backend.prepare(model)
    assert not backend.is_compatible(model)
    assert places(prepare(model)) == ["-", "0"]
    assert_agrees(model, prepare(model), X.reshape(-1, *[1] * 8))


# Inputs of subgraphs


def test_weights_and_constants_are_part_of_the_subgraphs() -> None:
    model = of_nodes(
        "two = Constant <value_float = 2.0> ()  same = Identity (w)  a = Mul (x, same)"
        "  b = Relu (a)  y = Mul (b, two)  z = Clip (b, two)",
        outputs="float[N, 3, 4] y, float[N, 3, 4] z, float two",
        initializers="float[4] w = {1, 2, 3, 4}",
    )
    prepared = prepare(model)
    assert places(prepared) == ["-", "-", "0", "-", "1", "-"]
    assert_agrees(model, prepared)
    # Weights that no run can replace are initializers in ONNX Runtime.
    assert [step.sources for step in prepared._steps if not step.one_target] == [["x"], ["b"]]


def test_an_initializer_may_be_given() -> None:
    model = of_nodes("a = Mul (x, w)  y = Relu (a)", initializers="float[4] w = {1, 2, 3, 4}")
    weights = onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, (4,))
    model.graph.input.append(weights)
    prepared = prepare(model)
    w = np.array([1, 2, 3, 4], np.float32)
    assert_same_bits(prepared.run([X]).y, dmlops.relu(X * w))
    assert_same_bits(prepared.run({"x": X, "w": -w}).y, dmlops.relu(X * -w))


def test_inner_graphs_read_values_from_outside() -> None:
    model = of_nodes("""
        a = Tanh (x)
        some = ReduceMax <keepdims = 0> (a)
        zero = Constant <value_float = 0.0> ()
        large = Greater (some, zero)
        b = If (large) <
            then_branch = then_graph () => (float[N, 3, 4] t) { t = Add (a, w) },
            else_branch = else_graph () => (float[N, 3, 4] e) { e = Identity (zero) }
        >
        y = Relu (b)
    """, initializers="float[4] w = {1, 2, 3, 4}")  # fmt: skip
    prepared = prepare(model)
    assert places(prepared) == ["-", "0", "-", "0", "0", "-"]
    assert_agrees(model, prepared)


def test_sequences_stay_in_onnx_runtime() -> None:
    model = of_nodes("s = SequenceConstruct (x, x)  t = Identity (s)  y = SequenceAt (t, i)",
                   initializers="int64 i = {1}")  # fmt: skip
    prepared = prepare(model)
    assert set(places(prepared)) == {"0"}
    assert_agrees(model, prepared)


def test_parameters_are_checked_where_the_rank_is_not_known_before_the_run() -> None:
    model = parsed("""
        g (float[A] v, int64[R] sizes, float[K] s) => (float[N] y)
        { x = Reshape (v, sizes)  y = BatchNormalization (x, s, s, s, s) }
    """)
    prepared = prepare(model)
    three, one = np.ones(3, np.float32), np.ones(1, np.float32)
    words = (
        r"BatchNormalization: scale has shape \(3,\), but X has shape \(3,\), for which .* \(1,\)"
    )
    with pytest.raises(ValueError, match=words):
        prepared.run([three, np.array([3]), three])
    assert prepared.run([three, np.array([3]), one]).y.shape == (3,)


def test_unused_results() -> None:
    model = of_nodes("y = Relu (x)  unused = Neg (y)")
    assert_same_bits(prepare(model).run([X]).y, dmlops.relu(X))


def test_from_several_threads() -> None:
    prepared = prepare(of_nodes("a = Tanh (x)  b = Exp (a)  y = LogSoftmax (b)"))
    expected = prepared.run([X]).y
    with ThreadPoolExecutor(8) as pool:
        for outputs in pool.map(lambda _: prepared.run([X]), range(50)):
            assert_same_bits(outputs.y, expected)


# Refusals


def test_all_unsupported_nodes_are_listed_at_once() -> None:
    model = of_nodes("a = Neg (x)  b = Relu (a)  y = Exp (b)")
    model.graph.node[2].name = "last"
    with pytest.raises(backend.UnsupportedError) as refusal:
        backend.prepare(model)
    text = str(refusal.value)
    assert text.startswith("prepare: dmlops cannot run 2 of 3 nodes:\n  Neg: dmlops has no such")
    assert "\n  Exp (node 'last'): dmlops has no such operator\ndmlops has BatchNormal" in text
    assert "prepare(model, fallback='onnxruntime') runs the other nodes with ONNX Runtime" in text
    assert not backend.is_compatible(model)
    assert backend.is_compatible(model, fallback="onnxruntime")


def test_what_neither_has_is_refused() -> None:
    node = onnx.helper.make_node("Whirl", ["x"], ["y"], domain="com.example")
    model = of_nodes("y = Neg (x)")
    model.graph.node[0].CopyFrom(node)
    model.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    with pytest.raises(
        backend.UnsupportedError, match=r"ONNX Runtime refuses Whirl: .*com\.example"
    ):
        prepare(model)


def test_wrong_nodes_are_refused_with_a_fallback_too() -> None:
    with pytest.raises(backend.ModelError, match="LogSoftmax: axis 7 is out of range"):
        prepare(of_nodes("a = Neg (x)  y = LogSoftmax <axis = 7> (a)"))


def test_wrong_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    model = of_nodes("y = Neg (x)")
    words = r"prepare: fallback must be None or 'onnxruntime', not 'torch'"
    with pytest.raises(ValueError, match=words):
        backend.prepare(model, fallback="torch")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModuleNotFoundError, match=r"onnxruntime; .* pip install 'dmlops\[onnx\]'"):
        prepare(model)
