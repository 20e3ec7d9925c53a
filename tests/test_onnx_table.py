"""The table of operators in docs/onnx.md, compared with the code and with ONNX's definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
TYPES = {"float32": "float", "float16": "float16"} | {name: name for name in INTEGERS}
PAGE = Path(__file__).parents[1] / "docs" / "onnx.md"


def row(name: str) -> str:
    """Return the line of an operator: its first opset, the function, and the data types."""
    operator = backend.OPERATORS[name]
    schemas = [
        schema
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.name == name and not schema.domain and not schema.deprecated
    ]
    newest = max(schemas, key=lambda schema: schema.since_version)
    types = "any"
    if operator.types is not None:
        (formal,) = (each for each in newest.type_constraints if each.type_param_str == "T")
        ours = {dtype.name for dtype in operator.types}
        both = [
            name
            for name, theirs in TYPES.items()
            if name in ours and f"tensor({theirs})" in formal.allowed_type_strs
        ]
        types = ", ".join(both).replace(", ".join(INTEGERS), "all integers")
    function = f"`{operator.function}`" if operator.function else "no computation"
    note = f"; {operator.note}" if operator.note else ""
    first = min(schema.since_version for schema in schemas)
    return f"| {name} | {first}- | {function}{note} | {types} |"


def test_table_of_operators() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index("| ONNX | opsets | dmlops | data types |") + 2
    table = lines[start : lines.index("", start)]
    known = {schema.name for schema in onnx.defs.get_all_schemas()}
    expected = [row(name) for name in sorted(backend.OPERATORS, key=str.lower) if name in known]
    skipped = len(backend.OPERATORS) - len(expected)  # of an onnx that is too old
    missing = "\n".join(line for line in expected if line not in table)
    assert not missing, f"docs/onnx.md lacks\n{missing}"
    assert len(table) == len(expected) + skipped
    assert table == sorted(table, key=str.lower)
