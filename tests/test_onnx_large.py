"""dmlops.onnx: models of more bytes than protobuf serializes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import samples

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
fallback = pytest.importorskip("test_onnx_fallback")


def test_large_weights_are_not_serialized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """protobuf serializes at most 2 GiB."""
    sizes: list[int] = []

    def recorded(function: Any) -> Any:
        def call(model: Any, *more: Any, **named: Any) -> Any:
            sizes.append(len(model if isinstance(model, bytes) else model.SerializeToString()))
            return function(model, *more, **named)

        return call

    model = fallback.parsed("a = MatMul (x, w)  b = MatMul (a, h)  y = Relu (b)")
    w = samples.uniform((4, 1024), np.float32)
    h = samples.uniform((1024, 4), np.float32)
    for name, array in (("w", w), ("h", h)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    path = tmp_path / "large.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=1024)
    for module, name in (
        (onnx.checker, "check_model"),
        (onnx.shape_inference, "infer_shapes"),
        (onnxruntime, "InferenceSession"),
    ):
        monkeypatch.setattr(module, name, recorded(getattr(module, name)))
    prepared = fallback.prepare(path)
    assert len(sizes) == 3
    assert max(sizes) < 2048
    assert [value.name for value in prepared.inputs] == ["x"]
    monkeypatch.undo()
    fallback.assert_agrees(onnx.load(path), prepared)  # saving removed the weights from `model`
