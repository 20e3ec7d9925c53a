"""The table of operators in docs/onnx.md, compared with the code and with ONNX's definitions.

python tests/test_onnx_table.py writes the table.
"""

from __future__ import annotations

from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
TYPES = {"float32": "float", "float16": "float16"} | {name: name for name in INTEGERS}
PAGE = Path(__file__).parents[1] / "docs" / "onnx.md"
if not PAGE.exists():  # as in an sdist
    pytest.skip("the documentation is not here", allow_module_level=True)


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


def table() -> tuple[str, str, list[str]]:
    """Return the page before and after the table's rows, and the rows."""
    head = "| ONNX | opsets | dmlops | data types |\n| --- | --- | --- | --- |\n"
    before, rest = PAGE.read_text(encoding="utf-8").split(head)
    rows, after = rest.split("\n\n", 1)
    return before + head, "\n\n" + after, rows.split("\n")


def expected_rows() -> list[str]:
    """Return the rows of the operators that this version of onnx has."""
    known = {schema.name for schema in onnx.defs.get_all_schemas()}
    return [row(name) for name in sorted(backend.OPERATORS, key=str.lower) if name in known]


def test_table_of_operators() -> None:
    _, _, rows = table()
    expected = expected_rows()
    skipped = len(backend.OPERATORS) - len(expected)  # of an onnx that is too old
    missing = "\n".join(line for line in expected if line not in rows)
    assert not missing, f"docs/onnx.md lacks\n{missing}"
    assert len(rows) == len(expected) + skipped
    assert rows == sorted(rows, key=str.lower)


if __name__ == "__main__":
    before, after, _ = table()
    PAGE.write_text(before + "\n".join(expected_rows()) + after, encoding="utf-8")
