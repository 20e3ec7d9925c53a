"""Docstrings of the functions of the extension module: signature and sections from the table."""

import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dmlops._core import add_docstring
from dmlops._table import ROWS, Operator, schema

_SECTIONS = """\
Parameters
----------
{parameters}{out}

Returns
-------
{returns}
Raises
------
TypeError
    If an argument has a type or dtype that the operator does not support.
ValueError
    If a shape, a value or `out` is invalid.
BufferError
    If an array is not in the CPU's memory, or a tensor requires a gradient."""
_INPUT = (
    "Any strides, 0 to 8 dimensions, {}. Objects that offer DLPack on the CPU, such as PyTorch's "
    "tensors, or the buffer protocol work, too. Nothing is copied or cast."
)
_OUT = """\
out : numpy.ndarray, optional
    Array for the result: dtype and shape of `input`, any strides without
    overlapping elements. `out` may be `input` itself, and may overlap it."""
_SEVERAL_OUT = """\
out : tuple, optional
    3 arrays of the dtype and the shapes of the results, each None for a new
    one. They must not overlap one another. The first may be `input`."""
_RETURNS = """\
numpy.ndarray
    `out`, or a new array in the memory order of `input`: a NumPy scalar for a
    NumPy scalar, and an array of the same library for another library's array.
"""
_TYPES: dict[type[schema.Field], str] = {
    schema.Tensor: "numpy.ndarray",
    schema.Number: "float",
    schema.Scalar: "float or int",
    schema.ScaleBias: "ScaleBias",
    schema.Boolean: "bool",
    schema.Axes: "int or sequence of int",
    schema.Activation: "descriptor or name of an activation",
}


def _signature(row: Operator) -> str:
    def written(field: schema.Field) -> str:
        return field.parameter + ("" if field.argument is None else f"={field.argument}")

    positional, keywords = map(written, row.positional), map(written, row.keyword_only)
    return f"{row.function}({', '.join(['input', *positional, '*', *keywords, 'out=None'])})"


def _entry(names: Iterable[str], kind: str, text: str) -> str:
    body = textwrap.fill(text, 84, initial_indent="    ", subsequent_indent="    ")
    return f"{', '.join(names)} : {kind}\n{body}\n"


def _parameters(row: Operator) -> Iterator[str]:
    yield _entry(["input"], "numpy.ndarray", _INPUT.format(row.types.text))
    for group, text in row.groups(*row.positional, *row.keyword_only, of_function=True):
        default = group[0].argument
        kind = {None: "", "None": ", optional"}.get(default, f", default {default}")
        yield _entry((each.parameter for each in group), _TYPES[type(group[0])] + kind, text)


def _results(row: Operator) -> Iterator[str]:
    for group, text in row.groups(*row.outputs, of_function=True):
        names = (each.parameter.removeprefix("output_") for each in group)
        yield _entry(names, "numpy.ndarray", text)


def _sections(row: Operator) -> str:
    several = len(row.outputs) > 1
    return _SECTIONS.format(
        parameters="".join(_parameters(row)),
        out=_SEVERAL_OUT if several else _OUT,
        returns="".join(_results(row)) if several else _RETURNS,
    )


def document(function: Callable[..., Any], text: str) -> None:
    """Attach a docstring to an operator's function.

    `text` has fields for `sections`, on parameters, results and errors, and for two attributes of
    the table: `formula` and `struct`.
    """
    row = ROWS[function.__name__]
    filled = text.format(formula=row.formula, struct=row.struct, sections=_sections(row))
    add_docstring(function, f"{_signature(row)}\n--\n\n{filled}")
