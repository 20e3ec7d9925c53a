"""ONNX models on dmlops: a backend as `onnx.backend` defines it. An extra: ``dmlops[onnx]``.

``prepare`` takes a model once and refuses, by name, what dmlops does not have; what it returns runs
it. ``run_model`` and ``run_node`` do both at once.
"""

from collections.abc import Callable
from typing import Any

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

# What `onnx.backend` looks for in a module.
is_compatible: Callable[..., bool] = DmlopsBackend.is_compatible
prepare: Callable[..., PreparedModel] = DmlopsBackend.prepare
run_model: Callable[..., tuple[Any, ...]] = DmlopsBackend.run_model
run_node: Callable[..., tuple[Any, ...]] = DmlopsBackend.run_node
supports_device: Callable[[str], bool] = DmlopsBackend.supports_device
