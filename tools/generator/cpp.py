"""The C++ interface: enumerations, descriptor structs, the activations as functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .common import (
    ACTIVATIONS,
    BY_VALUE,
    OPERATORS,
    camel,
    cpp_formula,
    cpp_number,
    cpp_text,
    note,
    schema,
    wrapped,
)

FUSABLE = [row for row in ACTIVATIONS if row.fusable]


def lines(*parts: str | Iterable[str]) -> str:
    """Return lines, and iterables of them, as one text."""
    flat = [line for part in parts for line in ([part] if isinstance(part, str) else part)]
    return "\n".join(flat) + "\n"


def parameters_text(row: Any) -> str:
    """Return the names of an activation's parameters."""
    return ", ".join(number.name for number in row.numbers) or "no parameters"


def operator_types() -> str:
    """Return include/dmlops/operator_types.hpp."""
    return lines(
        note("//"),
        "#pragma once",
        "",
        "#include <cstddef>",
        "#include <cstdint>",
        "",
        "namespace dmlops {",
        "",
        "/// The values of DML_OPERATOR_TYPE, of the operators that dmlops has.",
        "enum class OperatorType : std::uint32_t {",
        "invalid = 0,",
        (f"{row.name.lower()} = {row.value}," for row in BY_VALUE),
        "};",
        "/// The activations with the names of their parameters, those that can be fused first.",
        "enum class Activation : std::uint32_t {",
        (f"{row.function}, ///< {parameters_text(row)}" for row in ACTIVATIONS),
        "};",
        f"constexpr std::size_t kActivationCount = {len(ACTIVATIONS)}; ///< number of activations",
        "/// Number of activations that a normalization can fuse.",
        f"constexpr std::size_t kFusableActivationCount = {len(FUSABLE)};",
        "",
        "}  // namespace dmlops",
    )


def activation_infos() -> str:
    """Return src/operators/activation_infos.hpp."""

    def info(row: Any) -> str:
        names = ", ".join(f'"{number.name}"' for number in row.numbers)
        defaults = ", ".join(cpp_number(number.default) for number in row.numbers)
        return f'{{"{row.function}", {len(row.numbers)}, {{{names}}}, {{{defaults}}}}},'

    def types(row: Any) -> str:
        return f'{{{row.types.cpp}, "{row.types.accepted}"}},  // {row.function}'

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
        "// The accepted data types of each activation, and their description for messages.",
        "struct AcceptedByActivation { TypeSet types; const char* text; };",
        "constexpr AcceptedByActivation kActivationTypes[kActivationCount] = {",
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


def activations() -> str:
    """Return include/dmlops/activations.hpp."""

    def functions(row: Any) -> Iterator[str]:
        numbers = [number.name for number in row.numbers]
        given = "".join(f"float {name}, " for name in numbers)
        values = ", ".join([*numbers, *["0"] * (2 - len(numbers))]) if numbers else ""
        yield wrapped(f"Computes {cpp_formula(row.formula)}.", prefix="/// ")
        yield (
            f"inline void {row.function}(const ConstTensorView& input, {given}"
            f"const TensorView& output) {{"
        )
        yield f"activation(Activation::{row.function}, input, {{{values}}}, output);"
        yield "}"
        if numbers:
            defaults = " and ".join(f"{n.name} = {float(n.short):.8g}" for n in row.numbers)
            yield f"/// With the default{'s' if len(numbers) > 1 else ''} {defaults}."
            yield (
                f"inline void {row.function}(const ConstTensorView& input, "
                "const TensorView& output) {"
            )
            yield f"activation(Activation::{row.function}, input, output);"
            yield "}"

    return lines(
        note("//"),
        "//",
        "// The activations as functions with the names, parameters and defaults of Python. Each",
        "// calls `activation` from operators.hpp, whose rules hold. hard_sigmoid is in that file.",
        "#pragma once",
        "",
        '#include "dmlops/operators.hpp"',
        "",
        "namespace dmlops {",
        "",
        *(functions(row) for row in ACTIVATIONS if row.function != "hard_sigmoid"),
        "",
        "}  // namespace dmlops",
    )


def member(field: Any) -> str:
    """Return a field as a member of a struct."""
    types = {
        schema.Tensor: "std::optional<BufferTensorDesc> {}"
        if getattr(field, "optional", False)
        else "BufferTensorDesc {}",
        schema.ScaleBias: "std::optional<ScaleBias> {}",
        schema.DataType: "TensorDataType {} = TensorDataType::unknown",
        schema.Scalar: "Scalar {} = 0",
        schema.Axes: "std::vector<std::uint32_t> {}",
        schema.Activation: "std::optional<OperatorDesc> {}",
    }
    if isinstance(field, schema.Number):
        value = cpp_number(field.default) if field.default else "0"
        return f"float {field.name} = {value};"
    if isinstance(field, schema.Boolean):
        value = "true" if field.default else "false"
        return f"bool {field.name} = {value};"
    return types[type(field)].format(field.name) + ";"


def activation_descs() -> str:
    """Return include/dmlops/activation_descs.hpp."""

    def struct(row: Any) -> Iterator[str]:
        values = "".join(f", {number.name}" for number in row.numbers)
        yield wrapped(f"{row.struct}: {cpp_formula(row.formula)}.", prefix="/// ")
        yield f"struct {row.desc} : ActivationDesc {{"
        for number in row.numbers:
            yield f"{member(number)} ///< {cpp_text(number.text)}"
        if row.numbers:
            yield ""
        yield "operator OperatorDesc() const {  ///< for Device::compile"
        yield f"return with(OperatorType::{row.name.lower()}{values});"
        yield "}"
        yield "};"
        yield ""

    return lines(
        note("//"),
        "//",
        "// DirectML's descriptors of the activations that can be fused, one struct for each.",
        "#pragma once",
        "",
        '#include "dmlops/descriptors.hpp"',
        "",
        "namespace dmlops {",
        "",
        "/// The tensors of an activation's descriptor, both absent if the activation is fused.",
        "struct ActivationDesc {",
        "std::optional<BufferTensorDesc> input_tensor; ///< absent if the activation is fused",
        "std::optional<BufferTensorDesc> output_tensor; ///< of the input's data type and sizes",
        "",
        "protected:",
        "/// Returns the descriptor with these parameters.",
        "OperatorDesc with(OperatorType type, float first = 0, float second = 0) const {",
        "OperatorDesc desc;",
        "desc.type = type;",
        "desc.tensors[0] = input_tensor;",
        "desc.tensors[1] = output_tensor;",
        "desc.numbers = {first, second};",
        "return desc;",
        "}",
        "};",
        "",
        *(struct(row) for row in FUSABLE),
        "",
        "}  // namespace dmlops",
    )


# Defaults and formulas whose form in C++ differs from Python.
_CPP_TEXTS = {schema.Activation: "An activation's descriptor without tensors."}


def operator_descs() -> str:
    """Return include/dmlops/operator_descs.hpp."""

    def struct(row: Any) -> Iterator[str]:
        yield wrapped(
            f"{row.struct}: {cpp_formula(cpp_text(row.text or row.formula))}.", prefix="/// "
        )
        if any(isinstance(field, schema.DataType) for field in row.fields):
            yield "/// The conversion throws ValidationError for a bound that does not fit."
        yield f"struct {row.desc} {{"
        for group in row.groups():
            first, *others = group
            text = cpp_text(_CPP_TEXTS.get(type(first), row.text_of(first)))
            yield f"{member(first)} ///< {text}"
            for field in others:
                yield f"{member(field)} ///< see {first.name}"
        yield ""
        yield "DMLOPS_API operator OperatorDesc() const;  ///< for Device::compile"
        yield "};"
        yield ""

    return lines(
        note("//"),
        "//",
        "// DirectML's descriptors, one struct for each operator, with the names and defaults of",
        "// Python. Each converts to OperatorDesc: for Device::compile, validate,",
        "// required_feature_level, or as a fused activation.",
        "#pragma once",
        "",
        '#include "dmlops/activation_descs.hpp"',
        "",
        "namespace dmlops {",
        "",
        *(struct(row) for row in OPERATORS if not row.fusable),
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
        return f"{{Level::level_{each.since}, {each.min_rank}, {each.max_rank}, {each.types.cpp}}}"

    def operator(row: Any) -> str:
        more = [
            f"Activation::{row.function}" if row.family == "activation" else "Activation::identity"
        ]
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
