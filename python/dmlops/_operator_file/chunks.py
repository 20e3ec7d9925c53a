"""Splits long dispatches into chunks along one dimension, for progress reports and interrupts.

Each chunk is an operator on a range of the same memory. Results do not depend on the chunks: a
formula depends on a single element, or on a single group, which is never split.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dmlops._device import BufferBinding
from dmlops._operator_file.initial import dtype_of
from dmlops._operator_file.model import tensors
from dmlops._operator_file.resources import total_size
from dmlops._operator_type import OperatorType
from dmlops._table import DESCS
from dmlops._tensor_desc import BufferTensorDesc

CHUNK = 2**23  # elements of the output: a few hundredths of a second
_ALIGNMENT = 16  # bytes of a binding's offset; also ensured by multiples of 16 elements


@dataclass(frozen=True)
class Chunk:
    """A chunk of an operator, and the bindings of its tensors."""

    desc: Any
    bindings: dict[str, Any]
    done: float  # fraction of the work done after this chunk


def _strides(tensor: BufferTensorDesc) -> tuple[int, ...]:
    if tensor.strides is not None:
        return tensor.strides
    return tuple(math.prod(tensor.sizes[axis + 1 :]) for axis in range(len(tensor.sizes)))


def _dimension(desc: Any) -> int | None:
    """Return the first dimension that is long enough to split and not reduced."""
    row = DESCS[type(desc).__name__]
    if len(row.outputs) > 1:
        return None
    sizes = desc.input_tensor.sizes
    reduced: tuple[int, ...] = ()
    if desc.operator_type is OperatorType.MEAN_VARIANCE_NORMALIZATION:
        reduced = (1, 2, 3) if desc.cross_channel else (2, 3)
    elif hasattr(desc, "axes"):
        reduced = desc.axes
    elif row.rows_only:
        reduced = (len(sizes) - 1,)
    if math.prod(sizes) <= 2 * CHUNK:
        return None
    long = (axis for axis, size in enumerate(sizes) if size >= 2 * _ALIGNMENT)
    return next((axis for axis in long if axis not in reduced), None)


def _cut(tensor: BufferTensorDesc, axis: int, count: int) -> BufferTensorDesc:
    """Return a chunk of a tensor; broadcast dimensions stay broadcast."""
    sizes = list(tensor.sizes)
    sizes[axis] = min(sizes[axis], count)
    return BufferTensorDesc(tensor.data_type, tuple(sizes), strides=_strides(tensor))


def _bind(array: Any, tensor: BufferTensorDesc, axis: int, start: int) -> BufferBinding:
    offset = start * _strides(tensor)[axis] * array.itemsize if tensor.sizes[axis] > 1 else 0
    return BufferBinding(array, offset)


def _fits(array: Any, tensor: BufferTensorDesc) -> bool:
    """Return True if an array of the tensor's data type is large enough."""
    return bool(array.dtype == dtype_of(tensor.data_type) and total_size(tensor) <= array.nbytes)


def chunks(desc: Any, arrays: dict[str, Any]) -> list[Chunk]:
    """Split an operator whose tensors are bound to whole arrays; empty if it cannot be split.

    The rules for bindings of the whole operator hold for each chunk: the arrays are large enough,
    and the output shares memory only with an input of the same layout.
    """
    axis = _dimension(desc)
    if axis is None:
        return []
    parts = tensors(desc)
    written = DESCS[type(desc).__name__].outputs[0].name
    output = parts[written]
    for name, tensor in parts.items():
        shared = arrays[name] is arrays[written] and tensor is not output
        if not _fits(arrays[name], tensor) or (shared and tensor != output):
            return []
    size = output.sizes[axis]
    rows = size * CHUNK // math.prod(output.sizes)
    rows = max(_ALIGNMENT, rows // _ALIGNMENT * _ALIGNMENT)
    result = []
    for start in range(0, size, rows):
        count = min(rows, size - start)
        cut = {name: _cut(tensor, axis, count) for name, tensor in parts.items()}
        bound = {name: _bind(arrays[name], tensor, axis, start) for name, tensor in parts.items()}
        result.append(Chunk(replace(desc, **cut), bound, (start + count) / size))
    return result
