"""Calls in which every allocation fails once: MemoryError, or the call's own error.

A program for test_resources.py, since it replaces the allocators of the interpreter.
"""

from __future__ import annotations

import _testcapi  # type: ignore[import-not-found]
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import dmlops as _dmlops

dmlops: Any = _dmlops  # hides wrong calls from type checkers
ALLOCATIONS = 150  # more than any of the calls needs
LEVEL = dmlops.FeatureLevel.LEVEL_6_4

x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
out = np.empty((2, 3), np.float32)
tensor = dmlops.BufferTensorDesc.from_array(x)
fields = {"input_tensor": tensor, "output_tensor": tensor, "min": 0.0, "max": 1.0}
desc = dmlops.ElementWiseClipOperatorDesc(**fields)
other = dmlops.BufferTensorDesc(tensor.data_type, (2, 4))
wrong = dmlops.ElementWiseClipOperatorDesc(**fields | {"output_tensor": other})
owned = dmlops.BufferTensorDesc.from_array(x, flags=dmlops.TensorFlags.OWNED_BY_DML)
owning = dmlops.ElementWiseClipOperatorDesc(**fields | {"input_tensor": owned})
relu = dmlops.ActivationReluOperatorDesc()
device = dmlops.Device()
compiled = device.compile(desc)


class Lazy:
    """Stands for a dask array."""


def call_lazily(_name: str, given: Any, named: Any) -> Any:
    """Return the arguments in place of a result, or NotImplemented."""
    return NotImplemented if named == {"max": 1} else given


lazy, transposed = Lazy(), x.T
fakes: dict[str, Any] = {
    "dask.array": types.SimpleNamespace(Array=Lazy),
    "dmlops._dask": types.SimpleNamespace(call=call_lazily),
}
sys.modules.update(fakes)
assert dmlops.clip(lazy, 0) == (lazy, 0)

# Each call with the name of its own error.
CALLS: list[tuple[Callable[[], object], str | None]] = [
    (lambda: dmlops.clip(input=x, min=0, max=1), None),
    (lambda: dmlops.clip(x, 0, 1, scale_bias=dmlops.ScaleBias(1, 0)), None),
    (lambda: dmlops.clip(x[:, :-1], 0, 1, out=x[:, 1:]), None),
    (lambda: dmlops.log_softmax(x, [0, 1]), None),
    (lambda: dmlops.batch_normalization(x, x, x, x, x, fused_activation=relu), None),
    (lambda: device.compile(desc), None),
    (lambda: compiled.dispatch([x], [out]), None),
    (lambda: compiled.dispatch({"input_tensor": x}, [dmlops.BufferBinding(out)]), None),
    (lambda: dmlops._core.validate(wrong, LEVEL), "ValidationError"),
    (lambda: dmlops.clip("text"), "TypeError"),
    (lambda: dmlops.clip(lazy, 0, max=2), None),
    (lambda: dmlops.clip(lazy, max=1), "TypeError"),
    (lambda: dmlops._core.compile(owning, LEVEL, ["text"]), "TypeError"),
    (lambda: dmlops._core.compile(owning, LEVEL, [transposed]), "BindingError"),
    (lambda: dmlops.log_softmax(x, 2), "ValueError"),
    (lambda: compiled.dispatch([], [out]), "BindingError"),
]
if sys.version_info[:2] != (3, 12):  # which crashes in any f-string, NumPy's too
    CALLS.append((lambda: repr(compiled), None))


failures = 0
for k, (call, refusal) in enumerate(CALLS):
    for n in range(1, ALLOCATIONS):
        raised = None
        # At the top level: in a function, CPython 3.11 itself raises a SystemError for some n.
        try:
            try:
                _testcapi.set_nomemory(n, n + 1)
                call()
            finally:
                _testcapi.remove_mem_hooks()
        except Exception as error:
            raised = type(error).__name__
        assert raised in (refusal, "MemoryError"), (k, n, raised)
        failures += raised == "MemoryError"
assert failures > 50, failures
assert (dmlops.clip(x, 0, 1) == x.clip(0, 1)).all()
