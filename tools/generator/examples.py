"""Generates the operator file of the activations."""

from __future__ import annotations

import json
from typing import Any

from .common import ACTIVATIONS, OPERATORS, schema

COUNT = 7  # elements of each tensor
PRELU = next(row for row in OPERATORS if row.function == "parameterized_relu")
ROWS = (*ACTIVATIONS, PRELU)


def activations() -> str:
    """Return examples/activations.json: each activation with its default parameters."""
    size = {"DataType": "FLOAT32", "Sizes": [COUNT]}

    def values(start: float, delta: float) -> Any:
        sequence = {"valueCount": COUNT, "valueStart": start, "valueDelta": delta}
        return {"initialValuesDataType": "FLOAT32", "initialValues": sequence}

    def dispatchable(row: Any) -> Any:
        tensors = {each.external: size for each in row.tensors}
        numbers = {
            each.external: float(each.short)
            for each in row.fields
            if isinstance(each, schema.Number)
        }
        return {"type": row.name, "desc": tensors | numbers}

    def dispatch(row: Any) -> Any:
        bindings = {"InputTensor": "x", "SlopeTensor": "slope", "OutputTensor": row.function}
        bound = {each.external: bindings[each.external] for each in row.tensors}
        return {"type": "dispatch", "dispatchable": row.function, "bindings": bound}

    resources = {"x": values(-3, 1), "slope": values(0.25, 0.25)}
    resources |= {row.function: {} for row in ROWS}
    return f"""\
{{
    "resources":
    {{
{_members(resources)}
    }},

    "dispatchables":
    {{
{_members({row.function: dispatchable(row) for row in ROWS})}
    }},

    "commands":
    [
{_lines(json.dumps(dispatch(row)) for row in ROWS)}
    ]
}}
"""


def _members(members: dict[str, Any]) -> str:
    return _lines(f'"{name}": {json.dumps(value)}' for name, value in members.items())


def _lines(lines: Any) -> str:
    return ",\n".join(" " * 8 + line for line in lines)
