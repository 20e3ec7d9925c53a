"""The interface of dmlops.onnx as a backend of ONNX."""

from __future__ import annotations

import doctest
import pickle
import sys

import numpy as np
import pytest
from onnx_models import X, relu_model
from reference import assert_same_bits
from subprocesses import python

import dmlops

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")
helper = onnx.helper


def test_devices() -> None:
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    assert not backend.supports_device("toaster")
    with pytest.raises(backend.UnsupportedError, match="'CUDA:0'; dmlops runs on the CPU"):
        backend.prepare(relu_model(), "CUDA:0")
    with pytest.raises(TypeError, match="run: unknown options device"):
        backend.prepare(relu_model()).run([X], device="CPU")


def test_inputs_of_a_subclass() -> None:
    class Subclass(np.ndarray):
        pass

    y = backend.prepare(relu_model()).run([X.view(Subclass)]).y
    assert type(y) is np.ndarray


def test_public_classes_name_the_public_module() -> None:
    for kind in (backend.ModelError, backend.Placement, backend.UnsupportedError, backend.Value):
        assert kind.__module__ == "dmlops.onnx"
    value = backend.prepare(relu_model()).inputs[0]
    assert pickle.loads(pickle.dumps(value)) == value


def test_run_node() -> None:
    node = helper.make_node("LogSoftmax", ["x"], ["y"])
    assert_same_bits(backend.run_node(node, [X]).y, dmlops.log_softmax(X))
    (old,) = backend.run_node(node, [X], opset_version=11)
    assert_same_bits(old, dmlops.log_softmax(X, (1, 2)))
    prelu = helper.make_node("PRelu", ["x", "slope"], ["y"], name="it")
    for inputs in ([X], [X, X, X]):
        words = rf"PRelu \(node 'it'\): inputs must have length 2, for x, slope, not {len(inputs)}"
        with pytest.raises(ValueError, match=words):
            backend.run_node(prelu, inputs)


def test_examples_of_docstrings() -> None:
    result = doctest.testmod(sys.modules["dmlops.onnx._backend"])
    assert result.attempted
    assert not result.failed


def test_onnx_is_imported_by_its_users_only() -> None:
    code = "import sys, dmlops; sys.exit('onnx' in sys.modules)"
    assert python("-c", code).returncode == 0
