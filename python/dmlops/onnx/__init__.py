"""ONNX models on dmlops: a backend as `onnx.backend` defines it. An extra: ``dmlops[onnx]``.

``prepare`` compiles a model. It refuses operators that dmlops lacks, or leaves them to ONNX Runtime
(``fallback="onnxruntime"``). ``run_model`` and ``run_node`` prepare and run in one call.
"""

from collections.abc import Callable
from typing import Any

try:
    import onnx as _onnx  # noqa: F401 - before the modules that need onnx
except ModuleNotFoundError as _error:
    if _error.name != "onnx":
        raise
    raise ModuleNotFoundError(
        "dmlops.onnx needs the package onnx; install with: pip install 'dmlops[onnx]'", name="onnx"
    ) from None

from dmlops.onnx._backend import DmlopsBackend, PreparedModel
from dmlops.onnx._node import UnsupportedError
from dmlops.onnx._operators import OPERATORS
from dmlops.onnx._plan import Placement
from dmlops.onnx._values import ModelError, Value

__all__ = [
    "OPERATORS",
    "DmlopsBackend",
    "ModelError",
    "Placement",
    "PreparedModel",
    "UnsupportedError",
    "Value",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]

# Tracebacks of errors and pickles of values name the public module.
for _class in (ModelError, Placement, UnsupportedError, Value):
    _class.__module__ = __name__

# The functions that `onnx.backend` expects of a backend's module.
is_compatible: Callable[..., bool] = DmlopsBackend.is_compatible
prepare: Callable[..., PreparedModel] = DmlopsBackend.prepare
run_model: Callable[..., tuple[Any, ...]] = DmlopsBackend.run_model
run_node: Callable[..., tuple[Any, ...]] = DmlopsBackend.run_node
supports_device: Callable[[str], bool] = DmlopsBackend.supports_device
