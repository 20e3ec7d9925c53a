"""The activations in the C++ tests, from tests/activation_rows.py and the formulas of exact.py.

Only their order comes from the table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from itertools import groupby
from typing import Any

from .common import ACTIVATIONS, ROOT, cpp_number, load, note, schema
from .cpp import lines

EXACT = ROOT / "python/dmlops/_accuracy/exact.py"
ROWS = load("tests/activation_rows.py").ROWS
if [row.name for row in ROWS] != [row.function for row in ACTIVATIONS]:
    raise SystemExit("tests/activation_rows.py must have the table's activations, in its order")


def formulas() -> dict[str, ast.expr]:
    """Return the dictionary ELEMENTWISE of exact.py."""
    for node in ast.parse(EXACT.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            keys = (ast.unparse(key).strip("'") for key in node.value.keys if key)
            return dict(zip(keys, node.value.values, strict=True))
    raise SystemExit(f"{EXACT} has no dictionary of formulas")


def reference() -> str:
    """Return tests/cpp/activation_reference.hpp."""
    nodes = formulas()

    def formula(row: Any) -> str:
        """Return C++'s form, in which `np` is a namespace and the parameters are `a` and `b`."""
        node = nodes[row.name]
        text = ast.unparse(node.body) if isinstance(node, ast.Lambda) else f"{ast.unparse(node)}(x)"
        for field, name in zip(row.fields, "ab", strict=False):
            text = re.sub(rf"\b{field}\b", name, text)
        return re.sub(r"\b_(?=\w+\()", "", text.replace("np.", "np::"))

    def call(row: Any) -> str:
        return f"{row.name}({', '.join(['x', *'ab'[: len(row.fields)], 'y'])})"

    def entry(row: Any) -> str:
        defaults = ", ".join(cpp_number(str(value)) for value in row.parameters[0])
        bounds = f"{row.ulps}, {row.default_ulps or row.ulps}"
        return f"{{{row.value}, {len(row.fields)}, {{{defaults}}}, {bounds}}},  // {row.name}"

    return lines(
        note("//", "tests/activation_rows.py and _accuracy/exact.py"),
        "#pragma once",
        "",
        "#include <cstdint>",
        "#include <vector>",
        "",
        '#include "dmlops/activations.hpp"',
        '#include "dmlops/operator_descs.hpp"',
        '#include "numpy_functions.hpp"',
        "",
        "namespace dmlops {",
        "",
        "// The result in double, with the parameters a and b.",
        "inline double activation_formula(Activation type, double a, double b, double x) {",
        "switch (type) {",
        *(f"case Activation::{row.name}:\nreturn {formula(row)};" for row in ROWS),
        "}",
        "return 0;",
        "}",
        "",
        "// Calls the function of the activation's name.",
        "inline void call(Activation type, const ConstTensorView& x, float a, float b, "
        "const TensorView& y) {",
        "switch (type) {",
        *(f"case Activation::{row.name}:\nreturn {call(row)};" for row in ROWS),
        "}",
        "}",
        "",
        "struct ActivationRow {",
        "std::uint32_t value;  // of DML_OPERATOR_TYPE",
        "int parameter_count;",
        "ActivationParameters defaults;",
        "double ulps, default_ulps;  // allowed errors",
        "};",
        "// In the order of Activation.",
        "constexpr ActivationRow kActivationRows[] = {",
        map(entry, ROWS),
        "};",
        "",
        "inline std::vector<OperatorDesc> activation_descs() {",
        "return {",
        *(f"Activation{schema.camel_case(row.name)}OperatorDesc()," for row in ROWS),
        "};",
        "}",
        "",
        "}  // namespace dmlops",
    )


def _by_level(declaration: Callable[[Any], str]) -> str:
    """Return a declaration of each activation, under Microsoft's condition on the level."""
    parts = []
    for since, rows in groupby(sorted(ROWS, key=lambda row: row.since), lambda row: row.since):
        declarations = [declaration(row) for row in rows]
        if since != "1_0":
            condition = f"#if DML_TARGET_VERSION >= 0x{since.replace('_', '')}00"
            declarations = [condition, *declarations, "#endif"]
        parts += declarations
    return "\n".join(parts)


def enumerators() -> str:
    """Return the enumerators of DML_OPERATOR_TYPE in the stand-in for Microsoft's header."""
    return _by_level(lambda row: f"DML_OPERATOR_ACTIVATION_{row.name.upper()} = {row.value},")


def structs() -> str:
    """Return the structs in the stand-in for Microsoft's header."""

    def struct(row: Any) -> str:
        numbers = ", ".join(map(schema.camel_case, row.fields))
        return (
            f"struct DML_ACTIVATION_{row.name.upper()}_OPERATOR_DESC {{\n"
            "const DML_TENSOR_DESC *InputTensor, *OutputTensor;\n"
            + (f"FLOAT {numbers};\n" if numbers else "")
            + "};"
        )

    return _by_level(struct)
