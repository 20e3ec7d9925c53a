"""dmlops.onnx: large initializers, of which protobuf serializes at most 2 GiB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import samples
from onnx_models import assert_agrees, of_nodes, parsed, prepare_with_fallback
from reference import assert_same_bits

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def test_large_weights_are_not_serialized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """protobuf serializes at most 2 GiB."""
    sizes: list[int] = []

    def recorded(function: Any) -> Any:
        def call(model: Any, *more: Any, **named: Any) -> Any:
            sizes.append(len(model if isinstance(model, bytes) else model.SerializeToString()))
            return function(model, *more, **named)

        return call

    model = of_nodes("a = MatMul (x, w)  b = MatMul (a, h)  y = Relu (b)")
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
    prepared = prepare_with_fallback(path)
    assert len(sizes) == 3
    assert max(sizes) < 2048
    assert [value.name for value in prepared.inputs] == ["x"]
    monkeypatch.undo()
    assert_agrees(onnx.load(path), prepared)  # saving removed the weights from `model`


def with_weights(size: int, data_type: int, node: str, inputs: str = "") -> Any:
    """Return a model with an initializer `w` of zeros."""
    model = parsed(f"g (float[N] x{inputs}) => (float[N] y) {{ {node} }}", opset=21)
    width = 2 if data_type == onnx.TensorProto.BFLOAT16 else 4
    model.graph.initializer.append(
        onnx.TensorProto(name="w", data_type=data_type, dims=[size], raw_data=bytes(width * size))
    )
    return model


@pytest.mark.parametrize(
    "entry", [("location", "missing"), ("location", "../w"), ("offset", "x"), ("length", "1" * 30)]
)
def test_external_data_that_cannot_be_read(tmp_path: Path, entry: tuple[str, str]) -> None:
    model = with_weights(3, onnx.TensorProto.FLOAT, "y = Add (x, w)")
    weights = model.graph.initializer[0]
    (tmp_path / "weights").write_bytes(weights.raw_data)
    weights.data_location = onnx.TensorProto.EXTERNAL
    for key, value in ({"location": "weights"} | dict([entry])).items():
        weights.external_data.add(key=key, value=value)
    weights.ClearField("raw_data")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(backend.ModelError, match=r"prepare: .*model\.onnx': "):
        backend.prepare(path)
    assert not backend.is_compatible(path)


@pytest.mark.parametrize("size", [3, 2000])
def test_invalid_initializers(size: int) -> None:
    def assert_refused(words: str) -> None:
        with pytest.raises(backend.ModelError, match=words):
            backend.prepare(model)

    model = with_weights(size, onnx.TensorProto.FLOAT, "y = Relu (x)")
    backend.prepare(model)
    model.graph.initializer.append(model.graph.initializer[0])
    assert_refused("w initializer name is not unique")
    model = with_weights(size, onnx.TensorProto.FLOAT, "y = Relu (x)")
    model.ir_version = 3
    assert_refused("w in initializer but not in graph input")
    model = with_weights(size, onnx.TensorProto.FLOAT, "y = Relu (x)", f", float[{size}] w")
    model.ir_version = 3
    backend.prepare(model)
    model = with_weights(size, 99, "y = Relu (x)")
    assert_refused("^the initializer 'w' has element type 99, which ONNX does not define$")


def test_bfloat16_is_part_of_the_subgraph() -> None:
    """NumPy lacks the type, which older releases of onnx convert to float32."""
    cast = f"c = Cast <to = {onnx.TensorProto.FLOAT}> (w)  s = Sub (x, c)  y = Relu (s)"
    model = with_weights(2000, onnx.TensorProto.BFLOAT16, cast)
    x = np.ones(2000, np.float32)
    assert_same_bits(prepare_with_fallback(model).run([x]).y, x)


def test_weights_are_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    to_array = onnx.numpy_helper.to_array

    def recorded(tensor: Any, *more: Any) -> Any:
        names.append(tensor.name)
        return to_array(tensor, *more)

    monkeypatch.setattr(onnx.numpy_helper, "to_array", recorded)
    prepared = prepare_with_fallback(with_weights(2000, onnx.TensorProto.FLOAT, "y = Sub (x, w)"))
    assert names == ["w"]
    x = np.ones(2000, np.float32)
    assert_same_bits(prepared.run([x]).y, x)
