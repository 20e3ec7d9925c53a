"""Docstrings of the functions of the extension module, and the sections that they share."""

from collections.abc import Callable
from typing import Any

from dmlops._core import add_docstring
from dmlops._table import OPERATORS

# Sections that the docstrings of all operators share.
_INPUT = """\
input : numpy.ndarray
    Any strides, 0 to 8 dimensions, {dtypes}. Objects that offer DLPack on the CPU,
    such as PyTorch's tensors, or the buffer protocol work, too. Nothing is copied
    or cast."""
_OUT = """\
out : numpy.ndarray, optional
    Array for the result: dtype and shape of `input`, any strides without
    overlapping elements. `out` may be `input` itself, and may overlap it."""
_RETURNS = """\
Returns
-------
numpy.ndarray
    `out`, or a new array in the memory order of `input`: a NumPy scalar for a
    NumPy scalar, and an array of the same library for another library's array."""
_RAISES = """\
Raises
------
TypeError
    If an argument has a type or dtype that the operator does not support.
ValueError
    If a shape, a value or `out` is invalid."""
_ROWS = {row.function: row for row in OPERATORS}  # of several versions, the last


def document(function: Callable[..., Any], signature: str, text: str) -> None:
    """Attach a docstring to an operator's function.

    `text` has fields for the shared sections, and for two attributes of the table: `formula` and
    `struct`.
    """
    row = _ROWS[function.__name__]
    shared = {
        "formula": row.formula,
        "struct": row.struct,
        "input": _INPUT.format(dtypes=row.types.given),
        "out": _OUT,
        "returns": _RETURNS,
        "raises": _RAISES,
    }
    add_docstring(function, f"{signature}\n--\n\n{text.format(**shared)}")
