"""ONNX for tests: models from text, runs with ONNX Runtime, the opsets that define an operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")

Array = npt.NDArray[Any]
NEWEST: int = onnx.defs.onnx_opset_version()
X = samples.uniform((2, 3, 4), np.float32)


def parsed(graph: str, opset: int = 17) -> Any:
    """Return the model of a graph in ONNX's textual syntax."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {graph}')


def of_nodes(nodes: str, outputs: str = "float[N, 3, 4] y", initializers: str = "") -> Any:
    """Return a model of these nodes, which takes X as `x`."""
    return parsed(f"g (float[N, 3, 4] x) => ({outputs}) <{initializers}> {{ {nodes} }}")


def relu_model(opset: int = 17) -> Any:
    """Return a model whose only node is Relu, which takes X."""
    return parsed("g (float[N, 3, 4] x) => (float[N, 3, 4] y) { y = Relu (x) }", opset)


def prepare_with_fallback(model: Any) -> Any:
    """Prepare a model, of which ONNX Runtime runs the nodes that dmlops lacks."""
    return backend.prepare(model, fallback="onnxruntime")


def assert_agrees(model: Any, prepared: Any, x: Array = X) -> None:
    """Fail unless the results are close to those of ONNX Runtime alone."""
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (name,) = (each.name for each in session.get_inputs())
    for got, expected in zip(prepared.run([x]), session.run(None, {name: x}), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def versions(operator: str) -> list[int]:
    """Return the opsets that redefine the operator, and the newest."""
    schemas = onnx.defs.get_all_schemas_with_history()
    valid = (s for s in schemas if s.name == operator and not s.domain and not s.deprecated)
    return sorted({s.since_version for s in valid} | {NEWEST})
