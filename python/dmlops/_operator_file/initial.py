"""The initial values of resources: listed in the operator file, or mapped from another file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from dmlops._enums import TensorDataType
from dmlops._operator_file.files import RAW, Array, is_npy, is_raw, map_source
from dmlops._operator_file.model import File, Mixed, Resource, Sequence, Values
from dmlops._operator_file.progress import Progress
from dmlops._operator_file.read import Node, reading, shown

_BLOCK = 2**22  # elements that are filled at once


def dtype_of(data_type: TensorDataType) -> np.dtype[Any] | None:
    """Return the NumPy dtype of a data type, or None."""
    if data_type in (TensorDataType.UNKNOWN, TensorDataType.UINT4, TensorDataType.INT4):
        return None
    return np.dtype(data_type.name.lower())


def allocate(shape: tuple[int, ...], dtype: np.dtype[Any], node: Node) -> Array:
    """Return zeroed memory."""
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        size = math.prod(shape) * dtype.itemsize / 2**30
        node.refuse(f"not enough memory for {size:.1f} GiB ({error})")


def initial_values(resource: Resource, *, written: bool) -> Array:
    """Return the initial values; `written` tells if an operator writes to them."""
    if isinstance(resource.initial, File):
        return _load_file(resource, resource.initial.path, written=written)
    return _fill(resource)


def _load_file(resource: Resource, path: Path, *, written: bool) -> Array:
    """Map a file."""
    node = resource.node
    if not is_npy(path) and not is_raw(path):
        node.refuse(f"{path} is neither .npy nor {' nor '.join(RAW)}")
    raw = _dtype(resource.data_type, node) if is_raw(path) else None
    with reading(f"{node.place}: {path}"):
        values = map_source(path, raw, written=written)
    native = values.dtype.newbyteorder("=")
    if resource.data_type not in (TensorDataType.UNKNOWN, TensorDataType[native.name.upper()]):
        node.refuse(f"{path} holds {native.name.upper()}, not {resource.data_type.name}")
    values = values.reshape(values.shape or (1,))
    if values.flags.c_contiguous and values.dtype == native:
        return values
    with Progress(f"reading {path.name}"):
        return np.array(values, native, order="C")  # the same elements, as a tensor has them


def _dtype(data_type: TensorDataType, node: Node) -> np.dtype[Any]:
    dtype = dtype_of(data_type)
    if dtype is None:
        known = ", ".join(t.name for t in TensorDataType if dtype_of(t) is not None)
        node.refuse(f"initialValuesDataType is {data_type.name}; it must be one of {known}")
    return dtype


def _check_integers(values: list[float], dtype: np.dtype[Any], node: Node) -> None:
    """Refuse values that are not integers in the range of a type."""
    for value in values if any(type(value) is not int for value in values) else ():
        if not isinstance(value, int):
            node.refuse(f"{shown(value)} is not an integer; {dtype.name.upper()} needs integers")
    limits = np.iinfo(dtype)
    for value in (min(values), max(values)):
        if not limits.min <= value <= limits.max:
            range_ = f"{limits.min} to {limits.max}"
            node.refuse(f"{shown(value)} does not fit {dtype.name.upper()} ({range_})")


def _convert(values: Array, dtype: np.dtype[Any], node: Node) -> Array:
    """Round float64 to a type; refuse finite values that become infinite."""
    with np.errstate(over="ignore", under="ignore"):
        result = values.astype(dtype)
    wrong = np.isinf(result) & np.isfinite(values)
    if wrong.any():
        node.refuse(f"{values[wrong][0]} does not fit {dtype.name.upper()}")
    return result


def _fill(resource: Resource) -> Array:
    """Return values that the operator file lists."""
    node, initial = resource.node, resource.initial
    if isinstance(initial, Mixed):
        return _fill_mixed(resource, initial)
    dtype = _dtype(resource.data_type, node)
    if isinstance(initial, Sequence):
        return _fill_sequence(initial, dtype, node)
    assert isinstance(initial, Values)
    return _array(initial.values, dtype, node).reshape(initial.shape)


def _array(values: list[float], dtype: np.dtype[Any], node: Node) -> Array:
    if dtype.kind in "iu":
        _check_integers(values, dtype, node)
        return np.array(values, dtype)
    return _convert(_float64(values, node), dtype, node)


def _fill_mixed(resource: Resource, mixed: Mixed) -> Array:
    """Return the bytes of values of several data types."""
    node = resource.node
    if resource.data_type is not TensorDataType.UNKNOWN:
        node.refuse(
            f"initialValuesDataType is {resource.data_type.name}, but each value has a type of its"
            " own; write UNKNOWN"
        )
    parts = [_array([value], _dtype(kind, node), node).tobytes() for kind, value in mixed.items]
    return np.frombuffer(bytearray().join(parts), np.uint8)


def _fill_sequence(sequence: Sequence, dtype: np.dtype[Any], node: Node) -> Array:
    count, start, delta = sequence.count, sequence.start, sequence.delta
    array = allocate((count,), dtype, node)
    integers = dtype.kind in "iu"
    if integers:
        if not isinstance(delta, int):
            node.refuse(f"{shown(delta)} is not an integer; {dtype.name.upper()} needs integers")
        _check_integers([start, start + delta * (count - 1)], dtype, node)
    else:
        start, delta = _float64([start, delta], node)
    with Progress(node.place) as progress:
        for first in range(0, count, _BLOCK):
            block = array[first : first + _BLOCK]
            if integers:  # arithmetic modulo 2**64 is exact here, as the range has been checked
                begin, step = (int(v) % 2**64 for v in (start + delta * first, delta))
                indices = np.arange(len(block), dtype=np.uint64)
                block[...] = (indices * np.uint64(step) + np.uint64(begin)).astype(dtype)
            elif delta:
                places = np.arange(first, first + len(block), dtype=np.float64)
                with np.errstate(over="ignore", invalid="ignore"):
                    values = start + delta * places
                if np.isfinite([start, delta]).all() and not np.isfinite(values).all():
                    node.refuse("a value of the sequence does not fit FLOAT64")
                block[...] = _convert(values, dtype, node)
            else:
                block[...] = _convert(np.array([start]), dtype, node)
            progress.reach(first / count)
    return array


def _float64(values: list[float], node: Node) -> Array:
    try:
        return np.array(values, np.float64)
    except OverflowError:
        node.refuse("a number does not fit FLOAT64")
