"""Arrays of other libraries: conversion of results, lazy and labeled arrays, and refusals.

The core itself reads NumPy's arrays, and others through DLPack and the buffer protocol. It calls
this module to convert a result to the caller's array type, for dask, pandas and xarray objects, and
to raise the error for a value that is not a supported array.

An array of a library implies that its module is imported, so no lookup imports a module.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from dmlops import _core
from dmlops._table import ROWS

Array = npt.NDArray[Any]
_NUMBERS = "fiub"  # kinds of dtype that NumPy converts to float32 (not complex)
# Prefixes of dtypes of other libraries.
_NARROW = ("bfloat16", "float8", "float6", "float4", "int4", "uint4", "int2", "uint2")


class Wanted(NamedTuple):
    """An array that an argument may be: dtypes, and those of the input where both must agree."""

    accepted: str  # a list for messages; for a binding, the dtype of the tensor
    dtype: str | None = None  # of the input
    rank: int = -1  # of the input
    is_byte_order: bool = False  # the dtype is accepted, but not its byte order


def is_instance(value: object, module: str, name: str) -> bool:
    """Return True if a value is an instance of a class of a module that may not be imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def type_name(value: object) -> str:
    """Return the name of a value's type, with the module unless it is a built-in type."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


# Results


def call(name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return a function's result for dask or labeled arrays, or NotImplemented for others."""
    values = (*arguments, *keywords.values())
    if any(is_instance(value, "dask.array", "Array") for value in values):
        from dmlops import _dask  # noqa: PLC0415 imports Dask

        return _dask.call(name, arguments, keywords)
    tracer = getattr(sys.modules.get("jax.core"), "Tracer", None)
    if isinstance(tracer, type) and any(isinstance(value, tracer) for value in values):
        from dmlops._tracers import refuse_tracers  # noqa: PLC0415 imports inspect

        refuse_tracers(name, arguments, keywords, tracer)
    from dmlops import _labeled  # noqa: PLC0415 imports this module

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
    offers_dlpack = hasattr(value, "__dlpack__") and not isinstance(value, type)
    try:
        return np.from_dlpack(value) if offers_dlpack else np.asarray(memoryview(value))
    except Exception as error:
        cause = error if offers_dlpack else None
        wanted = Wanted("the data types of DirectML", "float32")
        refuse_value(function, argument, value, wanted, cause)


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
    function: str, argument: str, value: Any, wanted: tuple[Any, ...], error: Exception | None
) -> NoReturn:
    """Raise the error for a value that is not an array, or whose memory is not shared."""
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if error is None:
        message = f"{function}: {argument} must be a numpy.ndarray, or offer DLPack or the buffer "
        message += f"protocol, not {type_name(value)}"
        advice = _advice(function, argument, value, Wanted(*wanted))
        raise TypeError(message + f"; {advice}" * (advice != ""))
    if is_instance(value, "jax.core", "Tracer"):
        raise TypeError(
            f"{function}: {argument} is a {type(value).__name__}, which stands for an array that "
            "JAX has not computed yet; use the computed array, inside of jax.pure_callback"
        ) from None
    if is_instance(value, "torch.fx", "Proxy"):
        raise TypeError(
            f"{function}: {argument} is a torch.fx.Proxy, which stands for a tensor that PyTorch "
            "has not computed yet; register the function that calls dmlops with torch.fx.wrap"
        ) from None
    if dtype.startswith(_NARROW):
        refuse_dtype(function, argument, value, dtype, wanted)
    protocol = "DLPack" if hasattr(value, "__dlpack__") else "the buffer protocol"
    raise BufferError(
        f"{function}: {argument} cannot be shared from the CPU's memory through {protocol}: {error}"
    ) from error


def refuse_negated(function: str, argument: str) -> NoReturn:
    """Raise BufferError for a PyTorch tensor with the negative bit."""
    place = _expression(argument)
    fix = f"torch.empty_like({place})" if _is_output(argument) else f"{place}.resolve_neg()"
    raise BufferError(
        f"{function}: {argument} has PyTorch's negative bit, which DLPack does not transfer, so "
        f"that its values would have the opposite sign; pass {fix}"
    )


def count_write(value: Any) -> None:
    """Count a write to a PyTorch tensor, so that autograd refuses to use the values before it."""
    if is_instance(value, "torch", "Tensor") and not value.is_inference():
        sys.modules["torch"].autograd.graph.increment_version(value)


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
    return f"make one with numpy.empty_like({outputs[index].like_parameter})"


def _advice(function: str, argument: str, value: Any, wanted: Wanted) -> str:
    """Return the advice for a value that is not an array; empty if there is none."""
    if _is_out(argument):
        return _new_output(function, argument)
    if isinstance(value, (list, tuple, int, float)):
        target = _target(function, wanted)
        if isinstance(value, (int, float)):
            if not _fits(value, np.dtype(target)):
                return ""
            if wanted.rank >= 0:
                return f"make an array with {_filled(function, argument, wanted)}"
        array = f"numpy.asarray({argument}, numpy.{target})"
        return "" if _is_output(argument) else f"convert it with {array}"
    if value is None:
        return _neutral(function, argument)
    return _conversion_of(argument, value)


def _conversion_of(argument: str, value: Any) -> str:
    """Return the advice for an object that can be converted to an array."""
    if isinstance(value, type):
        return ""
    if is_instance(value, "dask.array", "Array") or is_instance(value, "dask.delayed", "Delayed"):
        return f"compute it first, with {argument}.compute()"
    if hasattr(value, "to_numpy"):
        return f"convert it with {argument}.to_numpy()"
    if hasattr(value, "__array__") or hasattr(value, "__array_namespace__"):
        return f"convert it with numpy.asarray({argument})"
    return ""


def _neutral(function: str, argument: str) -> str:
    """Return the advice to replace a scale or bias of None by ones or zeros."""
    inputs = [tensor.parameter for tensor in ROWS[function].inputs] if function in ROWS else []
    if argument not in {"scale", "bias"} or "mean" not in inputs:
        return ""
    return f"for none, pass numpy.{'ones' if argument == 'scale' else 'zeros'}_like(mean)"


def _fits(value: float, dtype: np.dtype[Any]) -> bool:
    """Return True if a dtype represents a number, apart from the rounding of floats."""
    if dtype.kind in "iu":
        if isinstance(value, float) and not value.is_integer():
            return False
        limits = np.iinfo(dtype)
        return bool(limits.min <= value <= limits.max)
    if isinstance(value, float) and not math.isfinite(value):
        return True
    return abs(value) <= float(np.finfo(dtype).max)


def _filled(function: str, argument: str, wanted: Wanted) -> str:
    """Return the code that makes an array of a number, of the input's dtype."""
    model = ""
    if argument in {"input_gradient", "fused_add"}:  # not broadcast
        model = "input"
    elif function == "batch_normalization_training":  # scale and bias have one shape
        model = "scale" if argument == "bias" else "bias"
    elif function.startswith("batch_normalization_") and function in ROWS:  # gradients
        model = "variance" if argument == "mean" else "mean"
    if model:
        return f"numpy.full_like({model}, {argument})"
    return f"numpy.full({(1,) * wanted.rank}, {argument}, numpy.{wanted.dtype})"


def refuse_dtype(
    function: str,
    argument: str,
    value: Any,
    dtype: np.dtype[Any] | str,
    wanted: tuple[Any, ...],
) -> NoReturn:
    """Raise TypeError for a dtype, or for the byte order of an accepted dtype."""
    accepted, required, _, is_byte_order = Wanted(*wanted)
    name = dtype if isinstance(dtype, str) else dtype.name
    if is_byte_order:
        problem = f"{name} in a byte order that is not this machine's"
    elif required is None or function not in ROWS:
        problem = f"{name}; it takes {accepted}"
    else:
        problem = f"{name}, but input has dtype {required}; they must be the same"
    is_number = isinstance(dtype, str) or dtype.kind in _NUMBERS or name.startswith(_NARROW)
    if _is_out(argument):
        fix = f"; {_new_output(function, argument)}"
    elif is_number and not _is_output(argument):
        target = name if is_byte_order and function in ROWS else _target(function, Wanted(*wanted))
        fix = f"; convert it with {_conversion(argument, value, target)}"
    else:
        fix = ""
    raise TypeError(f"{function}: {argument} has dtype {problem}{fix}")


def refuse_binding(operator: str, tensor: str, value: Any, given: str, wanted: str) -> NoReturn:
    """Raise BindingError for an array of another dtype than the tensor's."""
    if isinstance(value, np.ndarray):
        data = "array.view(numpy.uint8)"
    else:
        data = "numpy.asarray(array).reshape(-1).view(numpy.uint8)"
    convert = f"convert it with {_conversion('array', value, wanted)}"
    fix = f"pass an array of {wanted}" if _is_output(tensor) else convert
    raise _core.BindingError(
        f"{operator}: {tensor} is bound to an array of {given}; the tensor is of {wanted}; {fix}, "
        f"or, to bind its bytes as they are, {data}"
    )


def _target(function: str, wanted: Wanted) -> str:
    """Return the dtype to convert to."""
    return wanted.dtype or ("float32" if function in ROWS else str(wanted.accepted))


def _conversion(argument: str, value: Any, target: str) -> str:
    if is_instance(value, "torch", "Tensor"):
        return f"{argument}.float()" if target == "float32" else f"{argument}.to(torch.{target})"
    if hasattr(value, "astype"):
        return f"{argument}.astype(numpy.{target})"
    return f"numpy.asarray({argument}, numpy.{target})"
