"""Arrays of other libraries: conversion of results, lazy and labeled arrays, and refusals.

The core itself reads NumPy's arrays, and others through DLPack and the buffer protocol. It calls
this module to convert a result to the caller's array type, for dask, pandas and xarray objects, and
to raise the error for a value that is not a supported array.

An array of a library implies that its module is imported, so no lookup imports a module.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dmlops._table import ROWS

Array = npt.NDArray[Any]
_NUMBERS = "fiub"  # kinds of dtype that NumPy converts to float32 (not complex)
_NARROW = ("bfloat16", "float8", "float4")  # dtypes of other libraries


def is_instance(value: object, module: str, name: str) -> bool:
    """Return True if a value is an instance of a class of a module that may not be imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


# Results


def call(name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return a function's result for dask or labeled arrays, or NotImplemented for others."""
    for value in (*arguments, *keywords.values()):
        if is_instance(value, "dask.array", "Array"):
            from dmlops import _dask  # noqa: PLC0415 imports Dask

            return _dask.call(name, arguments, keywords)
    from dmlops import _labeled  # noqa: PLC0415 which imports this module

    given = arguments[0] if arguments else keywords.get("input")
    if not _labeled.is_labeled(given):
        return NotImplemented
    others = {key: value for key, value in keywords.items() if key != "input"}
    return _labeled.call(name, given, arguments[1:], others)


def wrap_like(result: Array, like: object) -> Any:
    """Convert a new array to the array type of `like`, without a copy."""
    if hasattr(like, "__array_namespace__"):
        return like.__array_namespace__().from_dlpack(result)
    for kind in type(like).__mro__:  # torch.Tensor and its subclasses
        library: Any = sys.modules.get(kind.__module__.partition(".")[0])
        if hasattr(library, "from_dlpack"):
            tensor = library.from_dlpack(result)
            if isinstance(tensor, kind):
                return tensor
    return result


def as_array(function: str, argument: str, value: Any) -> Array:
    """Return an array that shares memory through DLPack or the buffer protocol."""
    require_unmasked(function, argument, value)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    try:
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        return np.asarray(memoryview(value))
    except Exception as error:
        cause = error if hasattr(value, "__dlpack__") else None
        refuse_value(function, argument, value, "the data types of DirectML", cause)


# Refusals


def require_unmasked(function: str, argument: str, value: object) -> None:
    """Raise TypeError for a masked array, whose mask would be ignored."""
    if is_instance(value, "numpy.ma", "MaskedArray"):
        place = _expression(argument)
        fix = f"{place}.data" if _is_output(argument) else f"{place}.filled(value)"
        raise TypeError(
            f"{function}: {argument} is a masked array, whose mask would be ignored; use {fix}"
        )


def refuse_value(
    function: str, argument: str, value: Any, accepted: str, error: Exception | None
) -> NoReturn:
    """Raise the error for a value that is not an array, or whose memory is not shared."""
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if error is None:
        raise TypeError(_not_an_array(function, argument, value))
    if is_instance(value, "jax.core", "Tracer"):
        place = _expression(argument)
        raise TypeError(
            f"{function}: {argument} is a {type(value).__name__}, which stands for an array that "
            "JAX has not computed yet; call it with the computed array through "
            f"jax.pure_callback(dmlops.{function}, {place}, {place})"
        ) from None
    if dtype.startswith(_NARROW):
        refuse_dtype(function, argument, value, dtype, accepted)
    raise BufferError(
        f"{function}: {argument} cannot be shared from the CPU's memory through DLPack: {error}"
    ) from error


def refuse_negated(function: str, argument: str) -> NoReturn:
    """Raise BufferError for a PyTorch tensor with the negative bit."""
    place = _expression(argument)
    fix = f"torch.empty_like({place})" if _is_output(argument) else f"{place}.resolve_neg()"
    raise BufferError(
        f"{function}: {argument} has PyTorch's negative bit, which DLPack does not transfer, so "
        f"that its values would have the opposite sign; pass {fix}"
    )


def _is_output(argument: str) -> bool:
    """Return whether an argument of a function, or a binding, receives results."""
    return _is_out(argument) or argument.startswith("output")


def _is_out(argument: str) -> bool:
    """Return whether an argument is ``out`` or an element of it, such as "out[1] (mean)"."""
    return argument == "out" or argument.startswith("out[")


def _expression(argument: str) -> str:
    """Return an argument as code: "out[1]" for "out[1] (mean)"."""
    return argument.partition(" ")[0]


def _new_output(function: str, argument: str) -> str:
    """Return the advice to make an array with the shape of an output."""
    outputs = ROWS[function].outputs
    index = int(argument[len("out[")]) if argument.startswith("out[") else 0
    return f"make one with numpy.empty_like({outputs[index].like.removesuffix('_tensor')})"


def _not_an_array(function: str, argument: str, value: Any) -> str:
    message = f"{function}: {argument} must be a numpy.ndarray, or offer DLPack or the buffer "
    message += f"protocol, not {_type_name(value)}"
    if _is_out(argument):
        return f"{message}; {_new_output(function, argument)}"
    if isinstance(value, (list, tuple, int, float)):
        return f"{message}; convert it with numpy.asarray({argument}, numpy.float32)"
    if is_instance(value, "dask.array", "Array") or is_instance(value, "dask.delayed", "Delayed"):
        return f"{message}; compute it first, with {argument}.compute()"
    if hasattr(value, "to_numpy"):
        return f"{message}; convert it with {argument}.to_numpy()"
    if hasattr(value, "__array__") or hasattr(value, "__array_namespace__"):
        return f"{message}; convert it with numpy.asarray({argument})"
    return message


def refuse_dtype(
    function: str, argument: str, value: Any, dtype: np.dtype[Any] | str, accepted: str | None
) -> NoReturn:
    """Raise TypeError for a dtype; for a byte order if `accepted` is None."""
    name = dtype if isinstance(dtype, str) else dtype.name
    if accepted is None:
        problem = f"{name} in a byte order that is not this machine's"
        target = name
    else:
        problem = f"{name}; it takes {accepted}"
        is_number = isinstance(dtype, str) or dtype.kind in _NUMBERS or name.startswith(_NARROW)
        target = "float32" if is_number else ""
    if _is_out(argument):
        fix = f"; {_new_output(function, argument)}"
    elif target:
        fix = f"; convert it with {_conversion(argument, value, target)}"
    else:
        fix = ""
    raise TypeError(f"{function}: {argument} has dtype {problem}{fix}")


def refuse_other_dtype(
    function: str, argument: str, value: Any, dtype: np.dtype[Any], required: np.dtype[Any]
) -> NoReturn:
    """Raise TypeError for a dtype other than that of the input."""
    if _is_out(argument):
        fix = _new_output(function, argument)
    else:
        fix = f"convert it with {_conversion(argument, value, required.name)}"
    raise TypeError(
        f"{function}: {argument} has dtype {dtype.name}, but input has dtype {required.name}; "
        f"they must be the same; {fix}"
    )


def _conversion(argument: str, value: Any, target: str) -> str:
    if is_instance(value, "torch", "Tensor"):
        return f"{argument}.float()" if target == "float32" else f"{argument}.to(torch.{target})"
    if hasattr(value, "astype"):
        return f"{argument}.astype(numpy.{target})"
    return f"numpy.asarray({argument}, numpy.{target})"
