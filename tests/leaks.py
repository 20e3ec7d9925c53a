"""Calls, uses of compiled operators and errors, 100,000 of each: less than a byte per call remains.

A program for test_resources.py, since other tests would change the memory of the process. Needs
Linux's /proc.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dmlops as _dmlops

dmlops: Any = _dmlops  # hides wrong calls from type checkers
FIRST = 2000  # calls that fill caches
REPEATS = 100_000

x, out = np.ones((2, 3), np.float32), np.empty((2, 3), np.float32)
one = [np.ones((1, 3), np.float32)] * 4
view = memoryview(x.data)
tensor = dmlops.BufferTensorDesc.from_array(x)
fields = {"input_tensor": tensor, "output_tensor": tensor, "min": 0.0, "max": 1.0}
desc = dmlops.ElementWiseClipOperatorDesc(**fields)
owned = dmlops.BufferTensorDesc.from_array(x, flags=dmlops.TensorFlags.OWNED_BY_DML)
owner = dmlops.ElementWiseClipOperatorDesc(**fields | {"input_tensor": owned})
other = dmlops.BufferTensorDesc(tensor.data_type, (2, 4))
wrong = dmlops.ElementWiseClipOperatorDesc(**fields | {"output_tensor": other})
device = dmlops.Device()
compiled = device.compile(desc)


def refused(call: Callable[[], object]) -> None:
    """Expect an error."""
    try:
        call()
    except (dmlops.ValidationError, ValueError, TypeError):
        return
    raise SystemExit("not refused")


def private_bytes() -> int:
    """Return the number of bytes that this process alone has written."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_D"))


GROUPS: tuple[tuple[Callable[[], object], ...], ...] = (
    (
        lambda: dmlops.clip(x, 0, 1, out=out),
        lambda: dmlops.log_softmax(x, axes=[0, 1]),
        lambda: dmlops.batch_normalization(x, *one, out=out),
        lambda: dmlops.clip(view, 0, 1),
    ),
    (
        lambda: device.compile(desc),
        lambda: device.compile(owner, initial=[x]).dispatch([None], [out]),
        lambda: compiled.dispatch(inputs=[x], outputs=[out]),
        lambda: compiled.dispatch(inputs={"input_tensor": x}, outputs=(out,)),
    ),
    (
        lambda: refused(lambda: device.compile(wrong)),
        lambda: refused(lambda: dmlops.clip("text")),
        lambda: refused(lambda: dmlops.log_softmax(x, axes=["a"])),
        lambda: refused(lambda: compiled.dispatch([x, x], [out])),
        lambda: refused(lambda: compiled.dispatch({"no_tensor": x}, [out])),
    ),
)
for group in GROUPS:
    for call in group:
        for _ in range(FIRST):
            call()
    before = private_bytes()
    for call in group:
        for _ in range(REPEATS // len(group)):
            call()
    grown = private_bytes() - before
    assert grown < REPEATS, f"{grown} bytes"
