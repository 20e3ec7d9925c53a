"""The C++ sources: the activations, the rows of the descriptors, the functions' signatures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .common import ACTIVATIONS, OPERATORS, camel, cpp_number, note, schema
from .cpp import FUSABLE, lines


def activation_infos() -> str:
    """Return src/operators/activation_infos.hpp."""

    def info(row: Any) -> str:
        names = ", ".join(f'"{number.name}"' for number in row.numbers)
        defaults = ", ".join(cpp_number(number.default) for number in row.numbers)
        return f'{{"{row.function}", {len(row.numbers)}, {{{names}}}, {{{defaults}}}}},'

    def types(row: Any) -> str:
        return f"&{row.types.cpp},  // {row.function}"

    return lines(
        note("//"),
        "#pragma once",
        "",
        '#include "dmlops/activation.hpp"',
        '#include "operators/type_sets.hpp"',
        "",
        "namespace dmlops {",
        "",
        "// In the order of Activation.",
        "constexpr ActivationInfo kActivationInfos[kActivationCount] = {",
        map(info, ACTIVATIONS),
        "};",
        "constexpr const AcceptedTypes* kActivationTypes[kActivationCount] = {",
        map(types, ACTIVATIONS),
        "};",
        "",
        "}  // namespace dmlops",
    )


def activation_list() -> str:
    """Return src/kernels/activation_list.hpp."""
    functors = ", ".join(camel(row.function) for row in FUSABLE)
    others = [camel(row.function) for row in ACTIVATIONS if not row.fusable]
    return lines(
        note("//"),
        "#pragma once",
        "",
        '#include "dmlops/operator_types.hpp"',
        "// The functors of elementwise/activation.hpp, in the order of Activation.",
        f"#define DMLOPS_FUSABLE_FUNCTORS {functors}",
        f"#define DMLOPS_ACTIVATION_FUNCTORS {', '.join(['DMLOPS_FUSABLE_FUNCTORS', *others])}",
        "",
        "namespace dmlops {",
        "",
        "// True for formulas of dozens of instructions, beside which a call is negligible.",
        "constexpr bool is_long(Activation type) {",
        "switch (type) {",
        (f"case Activation::{row.function}:" for row in ACTIVATIONS if row.work == "long"),
        "return true;",
        "default:",
        "return false;",
        "}",
        "}",
        "",
        "}  // namespace dmlops",
    )


def conversions() -> str:
    """Return src/descriptors/conversions.cpp."""

    def conversion(row: Any) -> Iterator[str]:
        numbers = ", ".join(number.name for number in row.numbers)
        yield f"{row.desc}::operator OperatorDesc() const {{"
        yield "OperatorDesc desc;"
        yield f"desc.type = OperatorType::{row.name.lower()};"
        for i, tensor in enumerate(row.tensors):
            yield f"desc.tensors[{i}] = {tensor.name};"
        if numbers:
            yield f"desc.numbers = {{{numbers}}};"
        scalars = [field.name for field in row.fields if isinstance(field, schema.Scalar)]
        booleans = [field.name for field in row.fields if isinstance(field, schema.Boolean)]
        if booleans:
            yield f"desc.booleans = {{{', '.join(booleans)}}};"
        for field in row.fields:
            if isinstance(field, schema.ScaleBias | schema.Axes):
                yield f"desc.{field.name} = {field.name};"
            elif isinstance(field, schema.DataType):
                yield f"desc.min_max_data_type = {field.name};"
                yield f"set_scalars(desc, {', '.join(scalars)});"
            elif isinstance(field, schema.Activation):
                yield f"set_activation(desc, {field.name});"
        yield "return desc;"
        yield "}"
        yield ""

    return lines(
        note("//"),
        '#include "descriptors/conversions.hpp"',
        "",
        "namespace dmlops {",
        "",
        *(conversion(row) for row in OPERATORS if not row.fusable),
        "",
        "}  // namespace dmlops",
    )


def family() -> str:
    """Return src/descriptors/family.hpp."""
    return lines(
        note("//"),
        "#pragma once",
        "",
        "namespace dmlops {",
        "",
        "// Operators of a family are compiled alike.",
        "enum class Family {",
        (f"{name}," for name in dict.fromkeys(row.family for row in OPERATORS)),
        "};",
        "",
        "}  // namespace dmlops",
    )


def rows() -> str:
    """Return src/descriptors/rows.hpp."""
    kinds = {
        schema.Number: "number",
        schema.ScaleBias: "scale_bias",
        schema.DataType: "data_type",
        schema.Scalar: "scalar",
        schema.Boolean: "boolean",
        schema.Axes: "axes",
        schema.Activation: "activation",
    }

    def kind(field: Any) -> str:
        if not isinstance(field, schema.Tensor):
            return kinds[type(field)]
        return "output" if field.output else "parameter" if field.broadcast else "tensor"

    def fields(row: Any) -> Iterator[str]:
        yield f"constexpr Field kFieldsOf{row.desc}[] = {{"
        for field in row.fields:
            first = "AxisCount" if isinstance(field, schema.Axes) else field.external
            more = ""
            if getattr(field, "optional", False) or getattr(field, "may_be_empty", False):
                more = ", true"
            if isinstance(field, schema.Tensor) and field.like != "input_tensor":
                names = [tensor.name for tensor in row.tensors]
                more = f", {'true' if field.optional else 'false'}, {names.index(field.like)}"
            yield (
                f'{{"{field.name}", FieldKind::{kind(field)}, '
                f"offsetof({row.struct}, {first}){more}}},"
            )
        yield "};"

    def supports(row: Any) -> str:
        if row.supports[: len(schema.SINCE_1_0)] == schema.SINCE_1_0:
            rest = row.supports[len(schema.SINCE_1_0) :]
            return ", ".join(["DMLOPS_SINCE_1_0", *map(support, rest)])
        return ", ".join(map(support, row.supports))

    def support(each: Any) -> str:
        return (
            f"{{Level::level_{each.since}, {each.min_rank}, {each.max_rank}, {each.types.cpp}.set}}"
        )

    def operator(row: Any) -> str:
        more = [f"Activation::{row.function}" if row.activation else "Activation::identity"]
        more += ["true" if row.fusable else "false"]
        more += [f'"{row.rows_only}"' if row.rows_only else "nullptr"]
        return (
            f'{{OperatorType::{row.name.lower()}, "{row.desc}", Family::{row.family}, '
            f"{'true' if row.in_place else 'false'}, {{{supports(row)}}}, "
            f"kFieldsOf{row.desc}, {len(row.fields)}, {len(row.inputs)}, {len(row.outputs)}, "
            f"{', '.join(more)}}},"
        )

    return lines(
        note("//"),
        "#pragma once",
        "",
        "#include <cstddef>",
        '#include "descriptors/table.hpp"',
        '#include "dmlops/directml_types.h"',
        "",
        "namespace dmlops {",
        "",
        "// The fields of each struct, in its order.",
        *(fields(row) for row in OPERATORS),
        "using Level = FeatureLevel;",
        "// The support of most operators of level 1.0.",
        "#define DMLOPS_SINCE_1_0 " + ", ".join(support(each) for each in schema.SINCE_1_0),
        "constexpr OperatorInfo kOperators[] = {",
        map(operator, OPERATORS),
        "};",
        "#undef DMLOPS_SINCE_1_0",
        "",
        "}  // namespace dmlops",
    )


def signatures() -> str:
    """Return src/python/signatures.hpp."""

    def signature(row: Any) -> str:
        fields = (*row.positional, *row.keyword_only)
        names = ", ".join(f'"{name}"' for name in ["input", *(f.parameter for f in fields), "out"])
        required = 1 + sum(field.argument is None for field in fields)
        numbers = f"{1 + len(row.positional)}, {required}"
        return f'Signature {row.function}{{"{row.function}", {numbers}, {{{names}}}}};'

    rows = {row.function: row for row in OPERATORS if not row.activation}
    return lines(
        note("//"),
        "#pragma once",
        "",
        '#include "arguments.hpp"',
        "",
        "namespace dmlops::python {",
        "",
        "// The signatures of the functions other than activations.",
        "struct Signatures {",
        map(signature, rows.values()),
        "};",
        "",
        "}  // namespace dmlops::python",
    )
