"""The functions on dask arrays: arguments are checked at once, blocks are computed lazily.

The core calls this module when it has refused the type of an argument and dask.array is imported.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt

from dmlops import _core
from dmlops._dask_groups import (
    fits_block,
    hardmax,
    has_whole_groups,
    normalized_axes,
    rechunk,
    require_block,
    require_known_sizes,
    softmax,
)
from dmlops._dask_normalization import normalize
from dmlops._foreign import require_unmasked
from dmlops._table import ROWS


def call(name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the lazy result of the function, or NotImplemented to keep the core's own error."""
    function = getattr(_core, name)
    try:
        bound = inspect.signature(function).bind(*arguments, **keywords)
    except TypeError:
        return NotImplemented  # the core's error is more precise
    bound.apply_defaults()
    values = bound.arguments
    if values.pop("out") is not None:
        raise TypeError(
            f"{name}: out cannot be given with a dask.array: the result is a new, lazy one; "
            "dask.array.store writes it to memory or a file"
        )
    names = [tensor.parameter for tensor in ROWS[name].inputs]
    given = {key: value for key in names if (value := values.pop(key)) is not None}
    for key, value in given.items():
        _require_numpy_blocks(name, key, value)
    _refuse_arrays(name, values)
    if "axes" in values:
        values["axes"] = _repeatable(values["axes"])
    _check(name, function, given, values)
    if "axes" in values or len(ROWS[name].outputs) > 1:
        return _by_groups(name, given, values)
    x, *others = map(_lazy, given.values())
    return _by_blocks(name, [x, *(_chunked_as(x, array) for array in others)], values)


def _require_numpy_blocks(name: str, argument: str, value: Any) -> None:
    if isinstance(value, np.ndarray):
        require_unmasked(name, argument, value)
        return
    if not isinstance(value, da.Array):
        raise TypeError(
            f"{name}: {argument} must be a dask.array or a numpy.ndarray where another argument "
            f"is a dask.array, not {type(value).__name__}"
        )
    if isinstance(value._meta, np.ma.MaskedArray):
        raise TypeError(
            f"{name}: {argument} is a dask.array of masked arrays, whose masks would be ignored; "
            f"use dask.array.ma.filled({argument}, value)"
        )
    if not isinstance(value._meta, np.ndarray):
        raise TypeError(
            f"{name}: {argument} is a dask.array of {type(value._meta).__name__}; "
            "its blocks must be numpy.ndarray: map_blocks converts them"
        )


def _refuse_arrays(name: str, values: dict[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, da.Array):
            raise TypeError(f"{name}: {key} is a dask.array; it must be known now: compute() it")


def _repeatable(axes: Any) -> Any:
    """Return a tuple of several axes, since an iterator yields its items once."""
    try:
        items = iter(axes)
    except TypeError:
        return axes
    return axes if isinstance(axes, str) else tuple(items)


def _check(
    name: str, function: Callable[..., object], given: dict[str, Any], values: dict[str, Any]
) -> None:
    """Check data types, shapes and values by a call without data.

    The output is refused, after the other arguments, since its elements overlap.
    """
    known = not any(np.isnan(size) for array in given.values() for size in array.shape)

    def view(array: Any) -> npt.NDArray[Any]:
        shape = array.shape if known else (0,) * array.ndim  # blocks are checked when computed
        one = np.zeros((), array.dtype)
        return np.lib.stride_tricks.as_strided(one, shape, (0,) * array.ndim)

    views = {key: view(array) for key, array in given.items()}
    like = (given[tensor.like_parameter] for tensor in ROWS[name].outputs)
    outputs = tuple(view(array) for array in like)
    try:
        function(**views, **values, out=outputs if len(outputs) > 1 else outputs[0])
    except ValueError as error:
        if "has elements that overlap one another" in str(error):
            return
        if known or "shape (" not in str(error):
            raise
        raise ValueError(
            f"{error}; sizes are written as 0, since chunks have unknown sizes"
        ) from None


def _lazy(array: Any) -> Any:
    """Return a dask array; an empty NumPy array becomes one chunk.

    Dask's automatic chunks are inversely proportional to the sizes, and fail for a size of 0.
    """
    if isinstance(array, np.ndarray) and array.size == 0:
        return da.from_array(array, chunks=array.shape)
    return da.asarray(array)


def _chunked_as(x: Any, array: Any) -> Any:
    """Return an array with the chunks of `x`; a broadcast dimension is one chunk."""
    sizes = zip(array.shape, x.shape, x.chunks, strict=True)
    chunks = ((1,) if size == 1 != whole else parts for size, whole, parts in sizes)
    return _lazy(array).rechunk(tuple(chunks))


def _checked(name: str, argument: str, array: Any) -> Any:
    """Return an array whose blocks are checked when they are computed."""
    check = partial(require_block, name, argument, dtype=array.dtype)
    return da.map_blocks(check, array, dtype=array.dtype, meta=array._meta)


def _by_blocks(name: str, arrays: list[Any], values: dict[str, Any]) -> Any:
    """Call the core on each block of the first array with those of the others."""
    x = arrays[0]
    meta = np.empty((0,) * x.ndim, x.dtype)
    function = getattr(_core, name)
    if len(ROWS[name].outputs) == 1:
        return da.map_blocks(function, *arrays, **values, dtype=x.dtype, meta=meta)
    return da.map_blocks(function, *arrays, **values, dtype=object, meta=meta.astype(object))


def _results(name: str, x: Any, given: dict[str, Any], results: Any) -> Any:
    """Return the result, or a tuple of them, with the chunks of the input."""
    if len(ROWS[name].outputs) == 1:
        return results.rechunk(x.chunks)
    arrays = []
    for i, tensor in enumerate(ROWS[name].outputs):
        like = given.get(tensor.like_parameter, x)
        # Each chunk of a group has the same numbers of the group.
        broadcast = [size == 1 != whole for size, whole in zip(like.shape, x.shape, strict=True)]
        first = tuple(slice(1 if once else None) for once in broadcast)
        parts = results.blocks[first] if first else results
        sizes = zip(broadcast, parts.chunks, strict=True)
        array = da.map_blocks(
            operator.itemgetter(i),
            parts,
            dtype=x.dtype,
            meta=np.empty((0,) * x.ndim, x.dtype),
            chunks=tuple((1,) if once else chunks for once, chunks in sizes),
            token=f"{name}-{tensor.name}",
        )
        arrays.append(array.rechunk(_chunked_as(x, like).chunks))
    return tuple(arrays)


def _by_groups(name: str, given: dict[str, Any], values: dict[str, Any]) -> Any:
    """Call the core on chunks of whole groups, or compute groups from their chunks."""
    x = _lazy(given.pop("input"))
    if "axes" in values:
        reduced = normalized_axes(x, values["axes"])
        values = values | {"axes": reduced}
    else:
        parameter = given[ROWS[name].outputs[-1].like_parameter]
        reduced = tuple(axis for axis, size in enumerate(parameter.shape) if size == 1)
    if name == "mean_variance_normalization":  # None is the number 1 or 0
        one = np.ones((1,) * x.ndim, x.dtype)
        given = {"scale": given.get("scale", one), "bias": given.get("bias", 0 * one)}
    whole = x
    if not has_whole_groups(x, reduced):
        require_known_sizes(name, x, reduced)
        if not fits_block(x, reduced):
            # Sums need elements in each chunk; _results restores the empty chunks.
            filled = x.rechunk(tuple(tuple(filter(None, sizes)) for sizes in x.chunks))
            checked = _checked(name, "input", filled)
            others = {
                key: _checked(name, key, _chunked_as(filled, array)) for key, array in given.items()
            }
            return _results(name, x, others, _by_chunks(name, checked, others, values, reduced))
        whole = rechunk(x, {axis: (x.shape[axis],) for axis in reduced})
    others = {key: _chunked_as(whole, array) for key, array in given.items()}
    return _results(name, x, others, _by_blocks(name, [whole, *others.values()], values))


def _by_chunks(
    name: str, x: Any, others: dict[str, Any], values: dict[str, Any], reduced: tuple[int, ...]
) -> Any:
    if name == "hardmax":
        return hardmax(x, reduced)
    if name in ("softmax", "log_softmax"):
        return softmax(name, x, reduced)
    return normalize(name, x, others, values, reduced)
