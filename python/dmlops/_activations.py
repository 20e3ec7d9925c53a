"""The activations, which are built-in functions, with docstrings from the table."""

import re

from dmlops import _core
from dmlops._docstrings import document
from dmlops._table import ACTIVATIONS, Operator

__all__ = sorted(row.function for row in ACTIVATIONS)  # noqa: PLE0605
globals().update({name: getattr(_core, name) for name in __all__})

_TEXT = """\
Compute ``{{formula}}`` for each element.

{{sections}}

Notes
-----
Implements {{struct}}. float16 is computed in float32 and
rounded once. A NaN stays NaN.{notes}

Examples
--------
>>> import numpy as np
>>> import dmlops
>>> y = dmlops.{name}(np.array([-2, -0.25, 1, 3], np.float32))
>>> [round(float(value), 4) for value in y]
{example}
"""


def _document(row: Operator) -> None:
    """Attach the docstring."""
    notes = ""
    if row.error is not None:
        ulp, x = row.error
        notes += (
            f"\n\nThe largest error of all float32 inputs, with the default parameters, is {ulp}"
            f"\nunits in the last place, at x = {x!r}."
        )
    if row.defaults:
        inside = " ".join(re.findall(r"(?:exp|tanh)\(([^()]*)\)", row.formula))
        is_inside = any(name in inside for name in row.defaults)
        notes += (
            "\n\nParameters are rounded to float32. One may be zero, infinite or NaN: the result is"
            "\nthe formula's in IEEE arithmetic"
        )
        notes += (
            "; with an infinite one inside of exp or tanh it may\nbe NaN." if is_inside else "."
        )
    if row.remark:
        notes += f"\n{row.remark}"
    text = _TEXT.format(notes=notes, name=row.function, example=list(row.results))
    document(getattr(_core, row.function), text)


for _row in ACTIVATIONS:
    _document(_row)
