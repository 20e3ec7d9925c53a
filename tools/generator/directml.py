"""DirectML's C structs, and the checks of their layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .common import BY_VALUE, OPERATORS, note, schema
from .cpp import lines

# Of a field: its declaration, and its size on 64-bit processors, which is also its alignment.
_C = {
    schema.Tensor: ("const DML_TENSOR_DESC* {};", 8),
    schema.Number: ("float {};", 4),
    schema.ScaleBias: ("const DML_SCALE_BIAS* {}; /* may be null */", 8),
    schema.DataType: ("DML_TENSOR_DATA_TYPE {};", 4),
    schema.Scalar: ("DML_SCALAR_UNION {};", 8),
    schema.Boolean: ("int32_t {};", 4),
    schema.Axes: ("const uint32_t* {};", 8),
    schema.Activation: ("const DML_OPERATOR_DESC* {}; /* may be null */", 8),
}
_SCALAR_UNION_SINCE = "5_0"


def members(row: Any) -> Iterator[tuple[str, str, int]]:
    """Yield name, declaration and size of the struct's members."""
    for field in row.fields:
        if isinstance(field, schema.Axes):
            yield "AxisCount", "uint32_t AxisCount;", 4
        declaration, size = _C[type(field)]
        null = " /* may be null */" if getattr(field, "optional", False) else ""
        yield field.external, declaration.format(field.external) + null, size


def structs() -> str:
    """Return include/dmlops/directml_operators.h."""

    def struct(row: Any) -> Iterator[str]:
        yield f"typedef struct {row.struct} {{"
        for _, declaration, _ in members(row):
            yield declaration
        yield f"}} {row.struct};"
        yield ""

    return lines(
        note("/*") + " */",
        "#ifndef DMLOPS_DIRECTML_OPERATORS_H",
        "#define DMLOPS_DIRECTML_OPERATORS_H",
        "",
        "/* Included by directml_types.h, within its declarations. */",
        "",
        "/* NOLINTBEGIN(readability-identifier-naming): DirectML's names */",
        "enum DML_OPERATOR_TYPE DMLOPS_INT32 {",
        "DML_OPERATOR_INVALID = 0,",
        (f"DML_OPERATOR_{row.name} = {row.value}," for row in BY_VALUE),
        "};",
        "typedef enum DML_OPERATOR_TYPE DML_OPERATOR_TYPE;",
        "",
        "typedef struct DML_OPERATOR_DESC {",
        "DML_OPERATOR_TYPE Type;",
        "const void* Desc; /* the operator's own struct */",
        "} DML_OPERATOR_DESC;",
        "",
        *(struct(row) for row in OPERATORS),
        "/* NOLINTEND(readability-identifier-naming) */",
        "",
        "#endif",
    )


def layout() -> str:
    """Return include/dmlops/directml_operators_layout.h."""

    def check(row: Any) -> Iterator[str]:
        offset = 0
        places = []
        for name, _, size in members(row):
            offset = -(-offset // size) * size
            places.append(f"DMLOPS_AT({row.struct}, {name}, {offset});")
            offset += size
        largest = max(size for _, _, size in members(row))
        yield f"DMLOPS_SIZE({row.struct}, {-(-offset // largest) * largest});"
        yield from places

    def level(since: str) -> Iterator[str]:
        number = f"0x{since.replace('_', '')}00"
        yield f"#if DMLOPS_DIRECTML_TARGET >= {number}"
        if since == _SCALAR_UNION_SINCE:
            yield "DMLOPS_SIZE(DML_SCALAR_UNION, 8);"
        for row in OPERATORS:
            if row.supports[0].since == since:
                yield from check(row)
        yield "#endif"

    firsts = sorted({row.supports[0].since for row in OPERATORS})
    return lines(
        note("//"),
        "//",
        "// The layouts of the operators' structs; directml_layout.h defines the macros.",
        *(level(since) for since in firsts),
    )
