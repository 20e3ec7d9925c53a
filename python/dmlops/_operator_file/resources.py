"""The memory of resources: allocated or mapped from a file, bound, printed and written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dmlops._device import BufferBinding
from dmlops._operator_file.files import Array, NewFile, is_npy, map_source
from dmlops._operator_file.initial import allocate, dtype_of, initial_values
from dmlops._operator_file.model import Binding, File, Resource
from dmlops._operator_file.progress import Progress
from dmlops._operator_file.read import FileError
from dmlops._tensor_desc import BufferTensorDesc, calc_buffer_tensor_size

HUGE = 2**28  # bytes; larger results are computed in the mapped output file
_BLOCK = 2**22  # elements that are copied at once
_GRANULARITY = 4  # bytes; DirectML's buffer sizes are multiples


@dataclass
class Memory:
    """The contiguous memory of a resource, and the view of it that is printed."""

    array: Array  # of one dimension
    values: Array  # the view of `array` that is printed
    element_size: int  # bytes, the default unit of a binding's offset and size
    file: NewFile | None = None  # the mapped output file, until it is written
    source: Path | None = None  # a .npy file, which states its data type

    def binding(self, bound: Binding, tensor: BufferTensorDesc) -> Any:
        """Return the binding for `CompiledOperator.dispatch`.

        Memory may be bound as any data type. The exception is a whole .npy file, whose data type is
        not stated in the operator file: binding it as another type counts as a mistake.
        """
        dtype = dtype_of(tensor.data_type)
        if bound.whole and self.array.dtype == self.values.dtype:
            if self.array.dtype == dtype:
                return self.array
            if self.source is not None:
                raise FileError(
                    f"{self.source} holds {self.array.dtype.name.upper()}, but the tensor is of"
                    f" {tensor.data_type.name}; convert the file with numpy.ndarray.astype, or bind"
                    " its bytes with elementSizeInBytes"
                )
        size = bound.element_size or self.element_size
        length = None if bound.count is None else bound.count * size
        return BufferBinding(self.array.view(np.uint8), bound.offset * size, length)

    def show_as(self, tensor: BufferTensorDesc, bound: Binding) -> None:
        """View the memory as a tensor that was written to it."""
        dtype = dtype_of(tensor.data_type)
        assert dtype is not None  # an operator wrote it
        strides = None
        if tensor.strides is not None:
            strides = tuple(stride * dtype.itemsize for stride in tensor.strides)
        offset = bound.offset * (bound.element_size or self.element_size)
        memory = self.array.view(np.uint8)
        self.values = np.ndarray(tensor.sizes, dtype, memory, offset, strides)


def load(resource: Resource, *, written: bool) -> Memory:
    """Return the memory of a resource that has initial values."""
    values = initial_values(resource, written=written)
    path = resource.initial.path if isinstance(resource.initial, File) else None
    needed = resource.offset + values.nbytes
    size = needed if resource.size_in_bytes is None else resource.size_in_bytes
    if size < needed:
        resource.node.refuse(f"sizeInBytes is {size}, but the initial values end at {needed}")
    if path is None:  # the size of a mapped file is fixed
        size = _rounded_up(size)
    if size == values.nbytes:
        source = path if path is not None and is_npy(path) else None
        return Memory(values.reshape(-1), values, values.itemsize, source=source)
    array = allocate((size,), np.dtype(np.uint8), resource.node)
    array[resource.offset : needed] = values.reshape(-1).view(np.uint8)
    if resource.offset % values.itemsize:
        return Memory(array, array, values.itemsize)
    inside = np.ndarray(values.shape, values.dtype, array, resource.offset)
    return Memory(array, inside, values.itemsize)


def _rounded_up(size: int) -> int:
    """Return the size of a buffer that holds as many bytes."""
    return -(-size // _GRANULARITY) * _GRANULARITY


def total_size(tensor: BufferTensorDesc) -> int:
    """Return the bytes that a binding of a tensor must hold."""
    size = calc_buffer_tensor_size(tensor.data_type, tensor.sizes, tensor.strides)
    return max(size, tensor.total_tensor_size_in_bytes or 0)


def create(
    tensor: BufferTensorDesc, bound: Binding, resource: Resource, target: Path | None
) -> Memory:
    """Return the memory of a resource that has no initial values, for the tensor written to it."""
    dtype = dtype_of(tensor.data_type)
    assert dtype is not None  # the descriptor is valid
    stated = dtype_of(resource.data_type)
    element_size = dtype.itemsize if stated is None else stated.itemsize
    packed = tensor.strides is None and tensor.total_tensor_size_in_bytes is None
    size = math.prod(tensor.sizes) * dtype.itemsize
    if packed and bound.whole and resource.size_in_bytes is None:
        if target is not None and size >= HUGE:
            file = NewFile(target, dtype, tensor.sizes)
            return Memory(file.array.reshape(-1), file.array, element_size, file)
        if size % _GRANULARITY == 0:
            array = allocate(tensor.sizes, dtype, resource.node)
            return Memory(array.reshape(-1), array, element_size)
    size = total_size(tensor) + bound.offset * (bound.element_size or element_size)
    if resource.size_in_bytes is not None:  # if it is too small, the binding is refused
        size = resource.size_in_bytes
    array = allocate((_rounded_up(size),), np.dtype(np.uint8), resource.node)
    values = array[: len(array) // dtype.itemsize * dtype.itemsize].view(dtype)
    return Memory(array, values, element_size)


def write(memory: Memory, path: Path, dimensions: tuple[int, ...] | None = None) -> None:
    """Write a resource to a file atomically."""
    with Progress(f"writing {path.name}") as progress:
        if memory.file is not None:  # the mapped file already holds the elements
            file, memory.file = memory.file, None
            memory.array = memory.values = np.empty(0)
            try:
                file.commit()
            finally:
                file.discard()
            memory.values = map_source(path, None, written=False)
            memory.array = memory.values.reshape(-1)
        else:
            values = memory.values.reshape(dimensions or memory.values.shape)
            file = NewFile(path, values.dtype, values.shape)
            try:
                _copy(values, file.array, progress)
                file.commit()
            finally:
                file.discard()


def discard(memory: Memory) -> None:
    """Remove a mapped file that was not finished."""
    if memory.file is not None:
        memory.array = memory.values = np.empty(0)
        memory.file.discard()


def _copy(source: Array, copy: Array, progress: Progress) -> None:
    """Copy in blocks, along the first dimension."""
    rows = max(1, _BLOCK * len(source) // source.size)
    for start in range(0, len(source), rows):
        copy[start : start + rows] = source[start : start + rows]
        progress.reach(start / len(source))
