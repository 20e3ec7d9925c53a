"""dmlops.onnx: declared shapes that are stale or unknown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import samples
from onnx_models import parsed
from reference import assert_same_bits

import dmlops

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")

X = samples.uniform((8, 3), np.float32)


def set_size(value: Any, size: int) -> None:
    value.type.tensor_type.shape.dim[0].dim_value = size


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[8, 3] x) => (float[1, 3] y) { y = Relu (x) }",
        "g (float[N, 3] x) => (float[1, 3] y) <float[1, 3] h> { h = Relu (x)  y = Relu (h) }",
        "g (float[8, 3] x) => (float[24] y) { y = Relu (x) }",
    ],
)
def test_stale_shapes_of_results(graph: str) -> None:
    """onnx.checker and ONNX Runtime accept these, too."""
    assert_same_bits(backend.prepare(parsed(graph)).run([X]).y, dmlops.relu(X))


INFERRED = {
    "nodes": "a = Relu (x)  b = Neg (a)  c = Tanh (b)  y = Exp (c)",
    "inner graphs": """
        a = Relu (x)
        b = If (condition) <
            then_branch = t () => (float[1, 3] t) { t = Neg (a) },
            else_branch = e () => (float[1, 3] e) { e = Exp (a) }
        >
        c = Tanh (b)
        y = Exp (c)
    """,
    "sequences": """
        a = Relu (x)
        s = SequenceConstruct (a, a)
        b = SequenceAt (s, index)
        c = Tanh (b)
        y = Exp (c)
    """,
}


@pytest.mark.parametrize("case", INFERRED)
def test_stale_shapes_of_results_with_a_fallback(case: str) -> None:
    """The batch size of the input was changed after shapes had been inferred."""
    pytest.importorskip("onnxruntime")
    model = onnx.shape_inference.infer_shapes(
        parsed(
            "g (float[1, 3] x) => (float[1, 3] y) <bool condition = {1}, int64 index = {0}> "
            f"{{ {INFERRED[case]} }}"
        )
    )
    set_size(model.graph.input[0], 8)
    prepared = backend.prepare(model, fallback="onnxruntime")
    b = dmlops.relu(X) * (1 if case == "sequences" else -1)
    np.testing.assert_allclose(prepared.run([X]).y, np.exp(np.tanh(b)), rtol=1e-5)


@pytest.mark.parametrize("graph", ["y = Relu (x)", "a = Neg (x)  b = Neg (a)  y = Relu (b)"])
def test_negative_sizes_are_unknown(graph: str) -> None:
    """Older exporters wrote -1 for a size that the model does not fix."""
    fallback = "onnxruntime" if "Neg" in graph else None
    if fallback:
        pytest.importorskip(fallback)
    model = parsed(f"g (float[8, 3] x) => (float[8, 3] y) {{ {graph} }}")
    for value in (model.graph.input[0], model.graph.output[0]):
        set_size(value, -1)
    prepared = backend.prepare(model, fallback=fallback)
    assert prepared.inputs[0].shape == prepared.outputs[0].shape == (None, 3)
    for x in (X, X[:2]):
        assert_same_bits(prepared.run([x]).y, dmlops.relu(x))
    with pytest.raises(ValueError, match=r"has shape \(8, 2\), but the model declares \(\?, 3\)"):
        prepared.run([X[:, :2]])
