"""The initial values of resources: given in the operator file, or mapped from another one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dmlops._enums import TensorDataType
from dmlops._operator_file.model import RAW, File, Resource, Sequence, Values
from dmlops._operator_file.progress import Progress
from dmlops._operator_file.read import Node

Array = NDArray[Any]

_BLOCK = 2**22  # elements that are filled at once


def dtype_of(data_type: TensorDataType) -> np.dtype[Any] | None:
    """Return NumPy's name for a data type, if it has one."""
    if data_type in (TensorDataType.UNKNOWN, TensorDataType.UINT4, TensorDataType.INT4):
        return None
    return np.dtype(data_type.name.lower())


def allocate(shape: tuple[int, ...], dtype: np.dtype[Any], node: Node) -> Array:
    """Return memory that is zero."""
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError) as error:
        size = math.prod(shape) * dtype.itemsize / 2**30
        node.refuse(f"there is no memory for {size:.1f} GiB ({error})")


def initial_values(resource: Resource, *, written: bool) -> Array:
    """Return the values, which an operator will write to or not."""
    if isinstance(resource.initial, File):
        return _load_file(resource, resource.initial.path, written=written)
    return _fill(resource)


def _load_file(resource: Resource, path: Path, *, written: bool) -> Array:
    """Map a file: what is written to it stays in memory."""
    node = resource.node
    mode: Literal["c", "r"] = "c" if written else "r"
    values: Array
    try:
        if path.suffix.lower() == ".npy":
            values = np.load(path, mmap_mode=mode)
        elif path.suffix.lower() in RAW:
            values = np.memmap(path, _dtype(resource), mode)
        else:
            node.refuse(f"{path} is neither .npy nor {' nor '.join(RAW)}")
    except (OSError, ValueError, EOFError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        node.refuse(f"{path}: {why}")
    native = values.dtype.newbyteorder("=")
    if native.name.upper() not in TensorDataType.__members__:
        node.refuse(f"{path} holds {values.dtype}, which DirectML has no data type for")
    if resource.data_type not in (TensorDataType.UNKNOWN, TensorDataType[native.name.upper()]):
        node.refuse(f"{path} holds {native.name.upper()}, not {resource.data_type.name}")
    if values.size == 0:
        node.refuse(f"{path} holds no elements")
    values = values.reshape(values.shape or (1,))
    if values.flags.c_contiguous and values.dtype == native:
        return values
    with Progress(f"reading {path.name}"):
        return np.array(values, native, order="C")  # the same elements, as a tensor has them


def _dtype(resource: Resource) -> np.dtype[Any]:
    dtype = dtype_of(resource.data_type)
    if dtype is None:
        resource.node.refuse(
            "initialValuesDataType must be one of "
            + ", ".join(t.name for t in TensorDataType if dtype_of(t) is not None)
        )
    return dtype


def _integer(value: float, dtype: np.dtype[Any], node: Node) -> int:
    limits = np.iinfo(dtype)
    if not isinstance(value, int) or not limits.min <= value <= limits.max:
        node.refuse(f"{value} is no {dtype.name.upper()}")
    return value


def _convert(values: Array, dtype: np.dtype[Any], node: Node) -> Array:
    """Round float64 to a type; infinities must have been asked for."""
    with np.errstate(over="ignore", under="ignore"):
        result = values.astype(dtype)
    wrong = np.isinf(result) & np.isfinite(values)
    if wrong.any():
        node.refuse(f"{values[wrong][0]} does not fit {dtype.name.upper()}")
    return result


def _fill(resource: Resource) -> Array:
    """Return the values that the operator file itself gives."""
    node, initial, dtype = resource.node, resource.initial, _dtype(resource)
    if isinstance(initial, Sequence):
        return _fill_sequence(initial, dtype, node)
    assert isinstance(initial, Values)
    if dtype.kind in "iu":
        whole = [_integer(value, dtype, node) for value in initial.values]
        return np.array(whole, dtype).reshape(initial.shape)
    return _convert(_float64(initial.values, node), dtype, node).reshape(initial.shape)


def _fill_sequence(sequence: Sequence, dtype: np.dtype[Any], node: Node) -> Array:
    count, start, delta = sequence.count, sequence.start, sequence.delta
    array = allocate((count,), dtype, node)
    if dtype.kind in "iu":
        if not isinstance(delta, int):
            node.refuse(f"{delta} is no whole number")
        _integer(start, dtype, node)
        _integer(start + delta * (count - 1), dtype, node)
    else:
        start, delta = _float64([start, delta], node)
    integers = dtype.kind in "iu"
    with Progress(node.place) as progress:
        for first in range(0, count, _BLOCK):
            block = array[first : first + _BLOCK]
            if integers:  # modulo 2**64, which the checks have made exact
                begin, step = (int(v) % 2**64 for v in (start + delta * first, delta))
                indices = np.arange(len(block), dtype=np.uint64)
                block[...] = (indices * np.uint64(step) + np.uint64(begin)).astype(dtype)
            elif delta:
                places = np.arange(first, first + len(block), dtype=np.float64)
                block[...] = _convert(start + delta * places, dtype, node)
            else:
                block[...] = _convert(np.array([start]), dtype, node)
            progress.reach(first / count)
    return array


def _float64(values: list[float], node: Node) -> Array:
    try:
        return np.array(values, np.float64)
    except OverflowError:
        node.refuse("a number does not fit FLOAT64")
