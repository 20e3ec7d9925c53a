"""The Python interface: enumeration, descriptor classes, and the stubs of the functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .common import ACTIVATIONS, BY_VALUE, OPERATORS, note, schema, wrapped
from .cpp import FUSABLE, lines

OTHERS = [row for row in OPERATORS if not row.fusable]


def operator_type() -> str:
    """Return python/dmlops/_operator_type.py."""
    return lines(
        note("#"),
        '"""DirectML\'s enumeration of the operators, with its numeric values."""',
        "",
        "from enum import IntEnum",
        "",
        "from dmlops._enums import PlainRepr",
        "",
        "class OperatorType(PlainRepr, IntEnum):",
        '    """DML_OPERATOR_TYPE: the operators of dmlops.',
        "",
        "    Examples",
        "    --------",
        "    >>> from dmlops import ActivationReluOperatorDesc, OperatorType",
        "    >>> ActivationReluOperatorDesc.operator_type is OperatorType.ACTIVATION_RELU",
        "    True",
        '    """',
        "",
        (f"    {row.name} = {row.value}" for row in BY_VALUE),
    )


def documentation(row: Any) -> Iterator[str]:
    """Yield the lines of a descriptor's docstring."""
    summary = row.text or f"{row.struct}: ``{row.formula}``."
    if len(summary) > 93 and row.text == "":
        yield f'    """{row.struct}.'
        yield ""
        yield wrapped(f"Computes ``{row.formula}``.", "    ")
    else:
        yield f'    """{summary}'
    yield ""
    yield "    Parameters"
    yield "    ----------"
    for group, text in row.groups(*row.fields):
        yield f"    {', '.join(field.name for field in group)} : {python_type(row, group[0])}"
        yield wrapped(text, "        ")
    yield ""
    yield "    Notes"
    yield "    -----"
    works = "Works in place." if row.in_place else "Does not work in place."
    since = row.supports[0].since.replace("_", ".")
    level = "" if since == "1.0" else f"From feature level {since} on."
    sentences = [f"Mirrors {row.struct}.", row.notes, works, level]
    yield wrapped(" ".join(filter(None, sentences)), "    ")
    yield ""
    yield "    Examples"
    yield "    --------"
    for line in (row.example or example(row)).splitlines():
        yield f"    {line}" if line else ""
    yield '    """'


def example(row: Any) -> str:
    """Return the example of an activation's descriptor."""
    first = next(iter(row.numbers), None)
    if not row.fusable:
        arguments = ", ".join(f"{tensor.name}=x" for tensor in row.tensors)
        call = f">>> desc = {row.desc}({arguments})"
        if len(call) > 95:
            call = f">>> desc = {row.desc}(\n...     {arguments}\n... )"
        return (
            f">>> from dmlops import {row.desc}, BufferTensorDesc, TensorDataType\n"
            ">>> from dmlops import required_feature_level\n"
            ">>> x = BufferTensorDesc(TensorDataType.FLOAT32, (1, 1, 8, 10))\n"
            f"{call}\n"
            ">>> required_feature_level(desc)\n"
            f"FeatureLevel.LEVEL_{row.supports[0].since}\n"
        )
    head = f">>> from dmlops import {row.desc}\n"
    if first is None:
        return head + f">>> {row.desc}().operator_type\nOperatorType.{row.name}\n"
    return head + f">>> {row.desc}({first.name}=2.0).{first.name}\n2.0\n"


def python_type(row: Any, field: Any) -> str:
    """Return the type of a field as docstrings say it."""
    if isinstance(field, schema.Tensor):
        optional = row.fusable or field.optional
        return "BufferTensorDesc, optional" if optional else "BufferTensorDesc"
    if isinstance(field, schema.Number):
        return f"float, default {field.default}" if field.default else "float"
    return {
        schema.ScaleBias: "ScaleBias, optional",
        schema.DataType: "TensorDataType",
        schema.Scalar: "float or int",
        schema.Boolean: f"bool, default {getattr(field, 'default', None)}",
        schema.Axes: "sequence of int",
        schema.Activation: "descriptor or name of an activation, optional",
    }[type(field)]


def annotation(field: Any, *, given: bool = False) -> str:
    """Return a field's type and default; `given`: as the constructor takes it."""
    if isinstance(field, schema.Number):
        return "float" + (f" = {field.default}" if field.default else "")
    if isinstance(field, schema.Boolean):
        return "bool" + (f" = {field.default}" if field.default is not None else "")
    if isinstance(field, schema.Activation):
        return f"{'FusedActivation' if given else 'ActivationDesc'} | None = None"
    if isinstance(field, schema.Axes):
        return "Sequence[SupportsIndex]" if given else "tuple[int, ...]"
    return {
        schema.Tensor: "BufferTensorDesc"
        + (" | None = None" if getattr(field, "optional", False) else ""),
        schema.ScaleBias: "ScaleBias | None = None",
        schema.DataType: "TensorDataType",
        schema.Scalar: "float",
    }[type(field)]


def names(listed: Iterable[str]) -> Iterator[str]:
    """Yield the lines of `__all__`."""
    yield "__all__ = ["
    for name in sorted(listed):
        yield f'    "{name}",'
    yield "]"


def activation_descs() -> str:
    """Return python/dmlops/_activation_descs.py."""

    def desc(row: Any) -> Iterator[str]:
        yield "@dataclass(frozen=True, kw_only=True, eq=False, repr=False)"
        yield f"class {row.desc}(ActivationDesc):"
        yield from documentation(row)
        yield f"    operator_type: ClassVar[OperatorType] = OperatorType.{row.name}"
        for number in row.numbers:
            yield f"    {number.name}: {annotation(number)}"
        yield ""

    return lines(
        note("#"),
        '"""DirectML\'s descriptors of the activations, standalone or fused."""',
        "from __future__ import annotations",
        "from dataclasses import dataclass",
        "from typing import ClassVar",
        "from dmlops._operator_type import OperatorType",
        "from dmlops._tensor_desc import BufferTensorDesc, Descriptor",
        names(row.desc for row in FUSABLE),
        "",
        "@dataclass(frozen=True, kw_only=True, eq=False, repr=False)",
        "class ActivationDesc(Descriptor):",
        '    """Base class of the activations that can be fused: one input, one output.',
        "",
        "    Parameters",
        "    ----------",
        "    input_tensor, output_tensor : BufferTensorDesc, optional",
        "        Of one data type and the same sizes. None where the activation is fused.",
        '    """',
        "",
        "    operator_type: ClassVar[OperatorType]",
        "    input_tensor: BufferTensorDesc | None = None",
        "    output_tensor: BufferTensorDesc | None = None",
        "",
        *(desc(row) for row in FUSABLE),
    )


def operator_descs() -> str:
    """Return python/dmlops/_operator_descs.py."""

    def desc(row: Any) -> Iterator[str]:
        yield "@dataclass(frozen=True, kw_only=True, eq=False, repr=False)"
        yield f"class {row.desc}(Descriptor):"
        yield from documentation(row)
        yield f"    operator_type: ClassVar[OperatorType] = OperatorType.{row.name}"
        for field in row.fields:
            yield f"    {field.name}: {annotation(field)}"
        special = [
            field
            for field in row.fields
            if isinstance(field, schema.DataType | schema.Axes | schema.Activation)
        ]
        if not special:
            yield ""
            return
        if any(annotation(f) != annotation(f, given=True) for f in row.fields):
            yield "    if TYPE_CHECKING:  # see BufferTensorDesc"
            yield ""
            yield "        def __init__("
            yield "            self,"
            yield "            *,"
            for field in row.fields:
                yield f"            {field.name}: {annotation(field, given=True)},"
            yield "        ) -> None: ..."
            yield ""
        yield "    def __post_init__(self) -> None:"
        yield '        """Convert convenient forms of fields, such as names."""'
        yield "        super().__post_init__()"
        for field in special:
            convert = {
                schema.DataType: "as_data_type",
                schema.Axes: "as_axes",
                schema.Activation: "as_activation",
            }[type(field)]
            yield f'        {convert}(self, "{field.name}")'
        yield ""

    return lines(
        note("#"),
        '"""DirectML\'s descriptors of the operators that cannot be fused."""',
        "from __future__ import annotations",
        "from collections.abc import Sequence",
        "from dataclasses import dataclass",
        "from typing import TYPE_CHECKING, ClassVar, SupportsIndex",
        "from dmlops._activation_descs import ActivationDesc",
        "from dmlops._conversions import as_activation, as_axes, as_data_type",
        "from dmlops._enums import TensorDataType",
        "from dmlops._fused_activation import FusedActivation",
        "from dmlops._operator_type import OperatorType",
        "from dmlops._scale_bias import ScaleBias",
        "from dmlops._tensor_desc import BufferTensorDesc, Descriptor",
        names(row.desc for row in OTHERS),
        "",
        *(desc(row) for row in OTHERS),
        "# The descriptor of any operator.",
        f"OperatorDesc = {' | '.join(row.desc for row in OTHERS)} | ActivationDesc",
    )


# The stubs


# The types of the functions' parameters in the stubs; that of arrays depends on the overload.
_PARAMETER_TYPES = {
    schema.Number: "_Number",
    schema.Scalar: "_Number",
    schema.ScaleBias: "ScaleBias",
    schema.Boolean: "bool",
    schema.Axes: "SupportsIndex | Sequence[SupportsIndex]",
    schema.Activation: "FusedActivation",
}


# The types of an overload: the input, the parameter whose shape further results have, other arrays,
# the elements of `out`, the results.
_Types = tuple[str, str, str, tuple[str, ...], tuple[str, ...]]


def _one_result(variable: str) -> Iterator[_Types]:
    """Yield the types for ndarrays, for other libraries' arrays, and for buffers."""
    ndarray, own, other = f"_Array[_Shape, {variable}]", f"NDArray[{variable}]", "_Parameter"
    yield ndarray, own, own, (f"_Out[{variable}]",), (ndarray,)
    yield "_Same", other, other, ("_Same | None",), ("_Same",)
    yield "_New", other, other, ("None",), ("_New",)
    yield "_Other", other, other, ("_Out[Any]",), ("NDArray[Any]",)


def _several_results(variable: str, count: int) -> Iterator[_Types]:
    """Yield the types of a function whose results, except the first, have a parameter's shape."""
    ndarray, own, other = f"_Array[_Shape, {variable}]", f"NDArray[{variable}]", "_Parameter"
    every, further = count, count - 1
    yield ndarray, own, own, (f"_Out[{variable}]",) * every, (ndarray,) * every
    for given, group, out in (
        ("_Same", "_Group", "_Same | None"),
        (ndarray, "_Same", f"_Out[{variable}]"),
    ):
        yield (
            given,
            group,
            other,
            (out, *(f"{group} | None",) * further),
            (given, *(group,) * further),
        )
    lazy = "_Lazy | NDArray[Any]"
    yield "_LazySame", lazy, lazy, (), ("_LazySame",) * every
    dense = "_Buffer | NDArray[Any]"
    yield "_Buffer", dense, other, ("_Out[Any]",) * every, ("NDArray[Any]",) * every
    yield "_Other", other, other, (f"{other} | None",) * every, ("Any",) * every


def parameter(field: Any, array: str) -> str:
    """Return a parameter of a function with its type and default."""
    optional = " | None" if field.argument == "None" else ""
    default = "" if field.argument is None else f" = {field.argument}"
    return f"{field.parameter}: {_PARAMETER_TYPES.get(type(field), array)}{optional}{default}"


def overloads(row: Any) -> Iterator[str]:
    """Yield a function's signature for each kind of arrays."""
    variable, count = row.types.variable, len(row.outputs)
    several = _several_results(variable, count)
    for given, group, array, out, result in several if count > 1 else _one_result(variable):
        outputs, results = "".join(out), "".join(result)
        if count > 1:
            outputs = f"tuple[{', '.join(out)}] | None" if out else "None"
            results = f"tuple[{', '.join(result)}]"
        arrays = {row.outputs[-1].like: group}
        parameters = [
            f"input: {given}",
            *(parameter(field, arrays.get(field.name, array)) for field in row.positional),
            "*",
            *(parameter(field, arrays.get(field.name, array)) for field in row.keyword_only),
            f"out: {outputs} = None",
        ]
        yield "@overload"
        yield f"def {row.function}({', '.join(parameters)}) -> {results}: ..."


def stubs(rows: list[Any]) -> str:
    """Return the stub of a module of functions."""
    by_function = {row.function: row for row in rows}
    return lines(
        note("#"),
        "from collections.abc import Sequence",
        "from typing import Any, SupportsIndex, overload",
        "from numpy.typing import NDArray",
        "from dmlops._core import _Array, _Buffer, _Element, _Float, _Group, _Lazy, _LazySame",
        "from dmlops._core import _Narrow, _New, _Number, _Other, _Out, _Parameter, _Same, _Shape",
        "from dmlops._core import _Signed",
        "from dmlops._fused_activation import FusedActivation",
        "from dmlops._scale_bias import ScaleBias",
        "",
        "# Overloads overlap in theory: an array may offer DLPack and the buffer protocol.",
        '# mypy: disable-error-code="overload-overlap"',
        "# pyright: reportOverlappingOverload=false",
        "",
        names({row.function for row in rows}),
        "",
        *(overloads(row) for row in by_function.values()),
    )


def activation_stubs() -> str:
    """Return python/dmlops/_activations.pyi."""
    return stubs(list(ACTIVATIONS))


def operator_stubs() -> str:
    """Return python/dmlops/_operators.pyi."""
    return stubs([row for row in OPERATORS if not row.activation])
