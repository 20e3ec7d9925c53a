"""The functions on dask arrays: arguments are checked at once, blocks are computed lazily.

The core calls this module when it has refused the type of an argument and dask.array is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt

from dmlops import _core
from dmlops._dask_log_softmax import log_softmax, normalized_axes
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
    row = ROWS[name]
    if len(row.outputs) > 1:
        raise TypeError(
            f"{name}: input is a dask.array, of which {name} takes none: compute() it first"
        )
    names = [tensor.name.removesuffix("_tensor") for tensor in row.inputs]
    given = {key: value for key in names if (value := values.pop(key)) is not None}
    for key, value in given.items():
        _require_numpy_blocks(name, key, value)
    _refuse_arrays(name, values)
    if name == "batch_normalization":
        _check_shapes(list(given.values()))
    _check_values(function, given, values)
    if name == "log_softmax":
        return log_softmax(given["input"], values["axes"])
    if "axes" in values:
        return _by_groups(function, given, values)
    return _with_parameters(function, given, values)


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


def _check_shapes(arrays: list[Any]) -> None:
    if any(np.isnan(size) for array in arrays for size in array.shape):
        return  # sizes not known yet are checked when the block is computed
    _core.check_batch_normalization(
        *(np.broadcast_to(np.empty((), array.dtype), array.shape) for array in arrays)
    )


def _check_values(
    function: Callable[..., object], given: dict[str, Any], values: dict[str, Any]
) -> None:
    """Call the function on empty arrays, which checks data types, ranks and values."""
    empty = {key: np.empty((0,) * array.ndim, array.dtype) for key, array in given.items()}
    try:
        function(**empty, **values)
    except ValueError as error:
        message = str(error).replace(str(empty["input"].shape), str(given["input"].shape))
        raise ValueError(message) from None


def _by_blocks(
    function: Callable[..., npt.NDArray[Any]], arrays: list[Any], values: dict[str, Any]
) -> Any:
    x = arrays[0]
    return da.map_blocks(
        function, *arrays, **values, dtype=x.dtype, meta=np.empty((0,) * x.ndim, x.dtype)
    )


def _by_groups(
    function: Callable[..., npt.NDArray[Any]], given: dict[str, Any], values: dict[str, Any]
) -> Any:
    """Compute a reduction on chunks that hold whole groups."""
    x = da.asarray(given["input"])
    values = values | {"axes": normalized_axes(x, values["axes"])}
    whole = x if x.ndim == 0 else x.rechunk(dict.fromkeys(values["axes"], -1), method="tasks")
    parameters = []
    if len(given) > 1:  # scale and bias of mean-variance normalization
        parameters = [
            given.get(key, np.full((1,) * x.ndim, number, x.dtype))
            for key, number in (("scale", 1), ("bias", 0))
        ]
    arrays = [whole, *_chunked_alike(whole, parameters)]
    return _by_blocks(function, arrays, values).rechunk(x.chunks)


def _chunked_alike(x: Any, parameters: list[Any]) -> list[Any]:
    """Return parameters with the chunks of the input, but for sizes of 1."""
    arrays = [da.asarray(parameter) for parameter in parameters]
    return [
        array.rechunk(
            tuple(
                (1,) if size == 1 else chunks
                for size, chunks in zip(array.shape, x.chunks, strict=True)
            )
        )
        for array in arrays
    ]


def _with_parameters(
    function: Callable[..., npt.NDArray[Any]], given: dict[str, Any], values: dict[str, Any]
) -> Any:
    """Compute a function of several arrays, all chunked as the input."""
    x = da.asarray(given["input"])
    parameters = [value for key, value in given.items() if key != "input"]
    return _by_blocks(function, [x, *_chunked_alike(x, parameters)], values)
