"""The error for the tracers of JAX: arrays without values, while JAX transforms a function."""

from __future__ import annotations

import contextlib
import inspect
import math
import operator
from dataclasses import fields
from typing import Any

import numpy as np

from dmlops import _core
from dmlops._activation_descs import ActivationDesc
from dmlops._table import ROWS
from dmlops._tensor_desc import Descriptor

_PLAIN = (bool, int, float, str)  # types whose repr is code


def refuse_tracers(
    name: str, arguments: tuple[Any, ...], keywords: dict[str, Any], tracer: type
) -> None:
    """Raise TypeError with the call of ``jax.pure_callback`` that takes the place of a call.

    Returns for a call that the core refuses for arrays, too: one that does not fit the signature,
    or has None for an argument that must be given.
    """
    signature = inspect.signature(getattr(_core, name))
    try:
        bound = signature.bind(*arguments, **keywords).arguments
    except TypeError:
        return
    absent = [key for key, value in bound.items() if value is None]
    if any(signature.parameters[key].default is not None for key in absent):
        return
    given = {key: value for key, value in bound.items() if key not in {*absent, "out"}}
    traced = [key for key, value in given.items() if isinstance(value, tracer)]
    if not traced:
        return
    # Inside jax.jit, a tracer's type does not show an outer jax.vmap or jax.grad, so the code and
    # the advice serve both.
    raise TypeError(
        f"{name}: {traced[0]} is a {type(given[traced[0]]).__name__}, which stands for an array "
        "that JAX has not computed yet; call it with the computed array through "
        f"{_callback(name, given, traced)}; to differentiate it, define its derivative with "
        "jax.custom_jvp"
    )


def _callback(name: str, given: dict[str, Any], traced: list[str]) -> str:
    """Return the code of the call."""
    row = ROWS[name]
    tensors = {tensor.parameter for tensor in row.inputs}
    arrays = [key for key in given if key in tensors or key in traced]
    positional = ["input", *(each.parameter for each in row.positional)][: len(arrays)]
    function = f"dmlops.{name}"
    if list(given) != positional:  # the callback receives arrays only, by position
        values = (
            key if key == "input" else f"{key}={key if key in arrays else _code(value, key)}"
            for key, value in given.items()
        )
        function = f"lambda {', '.join(arrays)}: {function}({', '.join(values)})"
    results = [tensor.like_parameter for tensor in row.outputs]
    shapes = results[0] if len(results) == 1 else f"({', '.join(results)})"
    operands = ", ".join(arrays)
    return f'jax.pure_callback({function}, {shapes}, {operands}, vmap_method="sequential")'


def _code(value: Any, name: str) -> str:
    """Return a value as code; `name` for an object of an unknown type."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, Descriptor):
        parts = ((each.name, getattr(value, each.name)) for each in fields(value))  # type: ignore[arg-type]
        given = ", ".join(f"{key}={_code(part, key)}" for key, part in parts if part is not None)
        return f"dmlops.{type(value).__name__}({given})"
    if isinstance(value, type) and issubclass(value, ActivationDesc):
        return f"dmlops.{value.__name__}"
    if type(value) is float and not math.isfinite(value):
        return f'float("{value}")'
    if type(value) in (list, tuple, range, np.ndarray):
        with contextlib.suppress(TypeError):
            return repr(tuple(operator.index(each) for each in value))
    return repr(value) if type(value) in _PLAIN else name
