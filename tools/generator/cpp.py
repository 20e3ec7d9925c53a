"""The C++ interface: enumerations, descriptor structs, the activations as functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .common import (
    ACTIVATIONS,
    BY_VALUE,
    OPERATORS,
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
        "// calls `activation` from operators.hpp, whose rules hold.",
        "#pragma once",
        "",
        '#include "dmlops/operators.hpp"',
        "",
        "namespace dmlops {",
        "",
        *map(functions, ACTIVATIONS),
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


# Texts of fields that differ from Python.
_CPP_TEXTS = {schema.Activation: "An activation's descriptor without tensors."}


def operator_descs() -> str:
    """Return include/dmlops/operator_descs.hpp."""

    def struct(row: Any) -> Iterator[str]:
        yield wrapped(
            f"{row.struct}: {cpp_formula(cpp_text(row.text or row.formula))}.", prefix="/// "
        )
        yield f"struct {row.desc} {{"
        for (first, *others), text in row.groups(*row.fields):
            yield f"{member(first)} ///< {cpp_text(_CPP_TEXTS.get(type(first), text))}"
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
        "// Python, where min, max, min_max_data_type and axes have none. Each converts to",
        "// OperatorDesc: for Device::compile, validate, required_feature_level, or as a fused",
        "// activation.",
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
