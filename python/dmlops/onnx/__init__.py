"""ONNX models on dmlops: a backend as `onnx.backend` defines it. An extra: ``dmlops[onnx]``.

``prepare`` takes a model once and refuses, by name, what dmlops does not have; what it returns runs
it. ``run_model`` and ``run_node`` do both at once.
"""

from dmlops.onnx._backend import DmlopsBackend, PreparedModel
from dmlops.onnx._operators import OPERATORS, UnsupportedError

__all__ = [
    "OPERATORS",
    "DmlopsBackend",
    "PreparedModel",
    "UnsupportedError",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]

is_compatible = DmlopsBackend.is_compatible
prepare = DmlopsBackend.prepare
run_model = DmlopsBackend.run_model
run_node = DmlopsBackend.run_node
supports_device = DmlopsBackend.supports_device
