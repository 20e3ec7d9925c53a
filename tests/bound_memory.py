"""Memory for compiled operators: a clip with its bindings, and heaps of known bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from descriptors import clip, tensor
from hypothesis import strategies as st
from layouts import CANARY
from samples import uniform

import dmlops
from dmlops import BindingError, BufferBinding, BufferTensorDesc, Device

Array = npt.NDArray[Any]

# clip to [0, 6], an input and its result.
CLIP = Device().compile(clip(tensor((6,))))
X = np.array([-1, 2, 7, 3.5, 100, -0.5], np.float32)
CLIPPED = np.array([0, 2, 6, 3.5, 6, 0], np.float32)


class DLPack:
    """Offers an array through DLPack alone."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def refused(match: str, inputs: Any, outputs: Any, compiled: Any = CLIP) -> None:
    """Fail unless the operator refuses the bindings with the message."""
    with pytest.raises(BindingError, match=match):
        compiled.dispatch(inputs, outputs)


@st.composite
def layouts(draw: st.DrawFn, sizes: tuple[int, ...], output: bool) -> tuple[int, ...] | None:
    """Draw strides, in elements: packed, permuted with gaps and pitches, for inputs broadcast."""
    if draw(st.booleans()):
        return None
    strides = [0] * len(sizes)
    run_length = 1
    for axis in draw(st.permutations(range(len(sizes)))):
        run_length = draw(st.sampled_from((1, 1, 1, 2, 4))) * run_length + draw(st.integers(0, 2))
        broadcast = not output and draw(st.integers(0, 5)) == 0
        strides[axis] = 0 if broadcast else run_length
        run_length *= 1 if broadcast else sizes[axis]
    return tuple(strides)


class Memory:
    """A tensor in a heap of canary bytes."""

    def __init__(self, x: BufferTensorDesc, offset: int, seed: int) -> None:
        self.size = dmlops.calc_buffer_tensor_size(x.data_type, x.sizes, x.strides)
        self.offset = offset
        self.bound = max(self.size, x.total_tensor_size_in_bytes or 0)
        self.heap = np.full(offset + self.bound + 64, CANARY, np.uint8)
        dtype = np.dtype(x.data_type.name.lower())
        first = self.heap[offset : offset + self.size // dtype.itemsize * dtype.itemsize]
        dense = np.empty(x.sizes, dtype)
        strides = dense.strides if x.strides is None else [s * dtype.itemsize for s in x.strides]
        self.view: Array = np.lib.stride_tricks.as_strided(first.view(dtype), x.sizes, strides)
        self.fill(uniform((first.view(dtype).size,), dtype, -4, 4, seed))

    def fill(self, values: Array) -> None:
        """Replace the first bytes."""
        raw = values.view(np.uint8)
        self.heap[self.offset : self.offset + raw.size] = raw

    def binding(self) -> BufferBinding:
        """Return the tensor's range of the heap."""
        return BufferBinding(self.heap, self.offset, self.bound)

    def values(self) -> Array:
        """Return the tensor's elements."""
        return np.array(self.view, order="C")

    def without_elements(self) -> Array:
        """Return the heap with the tensor's elements cleared: the bytes that must not change."""
        saved = self.heap.copy()
        self.view[...] = 0
        cleared = self.heap.copy()
        self.heap[...] = saved
        return cleared
