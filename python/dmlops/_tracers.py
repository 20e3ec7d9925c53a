"""The error for the tracers of JAX: arrays without values, while JAX transforms a function."""

from __future__ import annotations

import inspect
import math
from typing import Any

from dmlops import _core
from dmlops._table import ROWS

_PLAIN = (bool, int, float, str)  # types whose repr is code
_DERIVATIVES = ("JVPTracer", "LinearizeTracer")


def refuse_tracers(
    name: str, arguments: tuple[Any, ...], keywords: dict[str, Any], tracer: type
) -> None:
    """Raise TypeError with the call of ``jax.pure_callback`` that takes the place of a call.

    Returns for a call that does not fit the signature, for which the core has an error.
    """
    try:
        bound = inspect.signature(getattr(_core, name)).bind(*arguments, **keywords)
    except TypeError:
        return
    given = {key: value for key, value in bound.arguments.items() if value is not None}
    given.pop("out", None)
    traced = [key for key, value in given.items() if isinstance(value, tracer)]
    if not traced:
        return
    kinds = {type(given[key]).__name__ for key in traced}
    text = (
        f"{name}: {traced[0]} is a {type(given[traced[0]]).__name__}, which stands for an array "
        "that JAX has not computed yet; call it with the computed array through "
        f"{_callback(name, given, traced, kinds)}"
    )
    if not kinds.isdisjoint(_DERIVATIVES):
        text += "; JAX cannot differentiate it: define its derivative with jax.custom_jvp"
    raise TypeError(text)


def _callback(name: str, given: dict[str, Any], traced: list[str], kinds: set[str]) -> str:
    """Return the code of the call."""
    row = ROWS[name]
    tensors = {tensor.parameter for tensor in row.inputs}
    arrays = [key for key in given if key in tensors or key in traced]
    positional = ["input", *(each.parameter for each in row.positional)][: len(arrays)]
    function = f"dmlops.{name}"
    if list(given) != positional:  # the callback receives arrays only, by position
        values = (_argument(key, value, key in arrays) for key, value in given.items())
        function = f"lambda {', '.join(arrays)}: {function}({', '.join(values)})"
    results = [tensor.like.removesuffix("_tensor") for tensor in row.outputs]
    shapes = results[0] if len(results) == 1 else f"({', '.join(results)})"
    batches = ', vmap_method="sequential"' if "BatchTracer" in kinds else ""
    return f"jax.pure_callback({function}, {shapes}, {', '.join(arrays)}{batches})"


def _argument(key: str, value: Any, is_array: bool) -> str:
    """Return an argument as code: plain values as they are, others by the parameter's name."""
    if key == "input":
        return key
    items = value if type(value) is tuple else (value,)
    is_plain = all(type(each) in _PLAIN for each in items) and not (
        isinstance(value, float) and not math.isfinite(value)
    )
    return f"{key}={repr(value) if is_plain and not is_array else key}"
