"""The C++ sources: the activations, the rows of the descriptors, the functions' arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .common import ACTIVATIONS, OPERATORS, cpp_number, note, schema
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
    functors = ", ".join(schema.camel_case(row.function) for row in FUSABLE)
    others = [schema.camel_case(row.function) for row in ACTIVATIONS if not row.fusable]
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


_KINDS = {
    schema.Number: "number",
    schema.ScaleBias: "scale_bias",
    schema.DataType: "data_type",
    schema.Scalar: "scalar",
    schema.Boolean: "boolean",
    schema.Axes: "axes",
    schema.Activation: "activation",
}


def _kind(field: Any) -> str:
    if not isinstance(field, schema.Tensor):
        return _KINDS[type(field)]
    return "output" if field.output else "parameter" if field.broadcast else "tensor"


def _fields(row: Any) -> Iterator[str]:
    """Yield the array of a struct's fields."""
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
            f'{{"{field.name}", FieldKind::{_kind(field)}, offsetof({row.struct}, {first}){more}}},'
        )
    yield "};"


def _supports(row: Any) -> str:
    """Return the ranks and data types of each level."""
    if row.supports[: len(schema.SINCE_1_0)] == schema.SINCE_1_0:
        rest = row.supports[len(schema.SINCE_1_0) :]
        return ", ".join(["DMLOPS_SINCE_1_0", *map(_support, rest)])
    return ", ".join(map(_support, row.supports))


def _support(each: Any) -> str:
    return f"{{Level::level_{each.since}, {each.min_rank}, {each.max_rank}, {each.types.cpp}.set}}"


def _operator(row: Any) -> str:
    """Return the row of an operator."""
    more = [f"Activation::{row.function}" if row.activation else "Activation::identity"]
    more += ["true" if row.fusable else "false"]
    more += [f'"{row.rows_only}"' if row.rows_only else "nullptr"]
    return (
        f'{{OperatorType::{row.name.lower()}, "{row.desc}", Family::{row.family}, '
        f"{'true' if row.in_place else 'false'}, {{{_supports(row)}}}, "
        f"kFieldsOf{row.desc}, {len(row.fields)}, {len(row.inputs)}, {len(row.outputs)}, "
        f"{', '.join(more)}}},"
    )


def rows() -> str:
    """Return src/descriptors/rows.hpp."""
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
        *(_fields(row) for row in OPERATORS),
        "using Level = FeatureLevel;",
        "// The support of most operators of level 1.0.",
        "#define DMLOPS_SINCE_1_0 " + ", ".join(_support(each) for each in schema.SINCE_1_0),
        "constexpr OperatorInfo kOperators[] = {",
        map(_operator, OPERATORS),
        "};",
        "#undef DMLOPS_SINCE_1_0",
        "",
        "}  // namespace dmlops",
    )


# Of an argument: its declaration and how it is read.
_ARGUMENTS = {
    schema.Tensor: (
        "InputArray {name};",
        '{name}.read_input(function, "{name}", {value}, {types}{like})',
    ),
    schema.Number: (
        "float {name} = {default};",
        'read_float(function, "{name}", {value}, {name})',
    ),
    schema.Scalar: ("Scalar {name};", 'read_bound(function, "{name}", {value}, {name})'),
    schema.ScaleBias: (
        "std::optional<ScaleBias> {name};",
        "read_scale_bias(function, {value}, {name})",
    ),
    schema.Boolean: (
        "bool {name} = {default};",
        'read_bool(function, "{name}", {value}, {name})',
    ),
    schema.Axes: (
        "std::int64_t {name}[kMaxRank];\nstd::size_t axis_count = 0;",
        "read_axes(function, {value}, input.view(), {name}, axis_count)",
    ),
    schema.Activation: (
        "std::optional<FusedActivation> {name};",
        "read_fused_activation(function, {value}, {name})",
    ),
}


def _argument(row: Any, i: int, field: Any) -> tuple[str, str]:
    """Return the declaration and the reader of the i-th argument."""
    words = {"name": field.parameter, "value": f"values[{i}]", "types": row.types.cpp}
    words["like"] = ", &input" if i else ""
    if isinstance(field, schema.Number):
        words["default"] = cpp_number(field.default)
    if isinstance(field, schema.Boolean):
        words["default"] = "true" if field.default else "false"
    declaration, read = (text.format(**words) for text in _ARGUMENTS[type(field)])
    if isinstance(field, schema.Tensor) and field.optional:
        read = f"(!is_given(values[{i}]) || {read})"
    return declaration, read


def _outputs(row: Any, i: int) -> tuple[str, str]:
    """Return the declaration and the reader of `out`, the i-th argument."""
    if len(row.outputs) == 1:
        read = f"out.read_output(function, values[{i}], input, {row.types.cpp})"
        return "OutputArray out;", read
    like = ", ".join(f"&{each.like_parameter}" for each in row.outputs)
    names = f"k{schema.camel_case(row.function)}Outputs"
    read = f"read_outputs(function, values[{i}], {names}, {{{like}}}, out)"
    return f"OutputArray out[{len(row.outputs)}];", read


def _arguments(row: Any) -> Iterator[str]:
    """Yield the struct of a function's arguments."""
    fields = (row.inputs[0], *row.positional, *row.keyword_only)
    names = ", ".join(f'"{name}"' for name in [*(f.parameter for f in fields), "out"])
    required = sum(field.argument is None for field in fields)
    each = [_argument(row, i, field) for i, field in enumerate(fields)]
    each.append(_outputs(row, len(fields)))
    yield f"struct {schema.camel_case(row.function)}Arguments {{"
    yield f"static constexpr std::size_t kCount = {len(fields) + 1};"
    yield "static Signature signature() {"
    yield f'return {{"{row.function}", {1 + len(row.positional)}, {required}, {{{names}}}}};'
    yield "}"
    yield ""
    yield from (declaration for declaration, _ in each)
    yield ""
    yield "bool read(const char* function, PyObject* const (&values)[kCount]) {"
    yield f"return {' && '.join(read for _, read in each)};"
    yield "}"
    yield "};"
    yield ""


def function_arguments() -> str:
    """Return src/python/function_arguments.hpp."""
    rows = {row.function: row for row in OPERATORS if not row.activation}
    structs = ", ".join(f"{schema.camel_case(name)}Arguments" for name in rows)
    return lines(
        note("//"),
        "//",
        "// The arguments of the functions other than activations. read() returns false with an",
        "// error set.",
        "#pragma once",
        "",
        "#include <optional>",
        '#include "arguments.hpp"',
        '#include "axes.hpp"',
        '#include "descriptors.hpp"',
        '#include "ndarray.hpp"',
        '#include "outputs.hpp"',
        "",
        "namespace dmlops::python {",
        "",
        *(_arguments(row) for row in rows.values()),
        "template <class... Arguments>",
        "struct Functions {",
        "static constexpr std::size_t kCount = sizeof...(Arguments);",
        "};",
        f"using AllFunctions = Functions<{structs}>;",
        "",
        "}  // namespace dmlops::python",
    )
