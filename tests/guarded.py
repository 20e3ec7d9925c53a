"""Arrays that end or begin at an inaccessible page, so that an access beyond them is fatal."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

PAGE = mmap.PAGESIZE
_NO_ACCESS = 0  # PROT_NONE


class GuardedMemory:
    """Readable and writable pages between two inaccessible ones."""

    def __init__(self, capacity: int) -> None:
        pages = -(-capacity // PAGE)
        self._mapping = mmap.mmap(-1, (pages + 2) * PAGE, flags=mmap.MAP_PRIVATE)
        whole = np.frombuffer(self._mapping, np.uint8)
        self.bytes: npt.NDArray[np.uint8] = whole[PAGE : (pages + 1) * PAGE]
        self.words = self.bytes.view(np.uint64)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for begin in (whole.ctypes.data, whole.ctypes.data + (pages + 1) * PAGE):
            if protect(begin, PAGE, _NO_ACCESS) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")

    def place(
        self, shape: Sequence[int], dtype: npt.DTypeLike, strides: Sequence[int], at_end: bool
    ) -> Array:
        """Return a view whose last byte is the last before the guard, or whose first is the first.

        Its bytes are those of the last view, or 0.
        """
        dtype = np.dtype(dtype)
        before = extent = 0
        if 0 not in shape:
            steps = [(size - 1) * step for size, step in zip(shape, strides, strict=True)]
            before = -sum(step for step in steps if step < 0)
            extent = before + sum(step for step in steps if step > 0) + dtype.itemsize
        start = (self.bytes.size - extent if at_end else 0) + before
        return np.ndarray(tuple(shape), dtype, self._mapping, PAGE + start, tuple(strides))
