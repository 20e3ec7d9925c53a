"""DirectML's structs in JSON: reads the fields of any operator by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dmlops import _activation_descs, _operator_descs
from dmlops._enums import TensorDataType, TensorFlags
from dmlops._operator_file.other_operators import OTHER_OPERATORS
from dmlops._operator_file.read import Node
from dmlops._operator_type import OperatorType
from dmlops._scale_bias import ScaleBias
from dmlops._table import OPERATORS, schema
from dmlops._tensor_desc import BufferTensorDesc
from dmlops._text import counted

ROWS = {OperatorType(row.value): row for row in OPERATORS}

# Every descriptor, by its operator.
DESCS: dict[OperatorType, type[Any]] = {
    operator: getattr(_activation_descs if row.fusable else _operator_descs, row.desc)
    for operator, row in ROWS.items()
}

_TENSOR = ("DataType", "Sizes")
_TENSOR_OPTIONAL = (
    "Flags",
    "DimensionCount",
    "Strides",
    "TotalTensorSizeInBytes",
    "GuaranteedBaseOffsetAlignment",
)


def read_type(node: Node) -> OperatorType:
    """Return the operator that a DML_OPERATOR_TYPE names."""
    name = node.text().removeprefix("DML_OPERATOR_")
    if name in OTHER_OPERATORS:
        known = ", ".join(OperatorType.__members__)
        node.refuse(f"dmlops lacks DirectML's operator {name}; it has {known}")
    return node.choice(OperatorType, "DML_OPERATOR_")


def read_data_type(node: Node) -> TensorDataType:
    """Return a DML_TENSOR_DATA_TYPE."""
    return node.choice(TensorDataType, "DML_TENSOR_DATA_TYPE_")


def _check_count(members: dict[str, Node], name: str, array: str, length: int) -> None:
    """Compare DirectML's field for the length of an array, optional in JSON, with the array."""
    if name in members and members[name].integer() != length:
        entries = counted(length, "entry", "entries")
        members[name].refuse(f"is {members[name].value}, but {array} has {entries}")


def _inner(node: Node) -> tuple[Node | None, Node]:
    """Split a struct that is a type and a pointer, ``{"Type": ..., "Desc": {...}}``.

    The fields may also stand beside the type, or without one.
    """
    entries = node.entries()
    if "Desc" in entries:
        members = node.members(("Desc",), ("Type",))
        return members.get("Type"), members["Desc"]
    kind = entries.pop("Type", None)
    return kind, Node({name: entry.value for name, entry in entries.items()}, node.place)


def read_tensor(node: Node) -> BufferTensorDesc:
    """Read a DML_TENSOR_DESC with its DML_BUFFER_TENSOR_DESC."""
    kind, node = _inner(node)
    if kind is not None and kind.text().removeprefix("DML_TENSOR_TYPE_") != "BUFFER":
        kind.refuse(f"is {kind.value!r}; it must be 'BUFFER'")
    members = node.members(_TENSOR, _TENSOR_OPTIONAL)
    sizes = members["Sizes"].integers()
    _check_count(members, "DimensionCount", "Sizes", len(sizes))
    more: dict[str, Any] = {}
    if "Flags" in members:
        more["flags"] = members["Flags"].choice(
            TensorFlags, "DML_TENSOR_FLAG_", "DML_TENSOR_FLAGS_"
        )
    if "Strides" in members:
        more["strides"] = members["Strides"].integers()
    if "GuaranteedBaseOffsetAlignment" in members:
        alignment = members["GuaranteedBaseOffsetAlignment"].integer()
        more["guaranteed_base_offset_alignment"] = alignment
    if "TotalTensorSizeInBytes" in members:  # 0 means the computed size
        more["total_tensor_size_in_bytes"] = members["TotalTensorSizeInBytes"].integer() or None
    return BufferTensorDesc(read_data_type(members["DataType"]), sizes, **more)


def _read_scale_bias(node: Node) -> ScaleBias:
    members = node.members(("Scale", "Bias"))
    return ScaleBias(members["Scale"].number(), members["Bias"].number())


def _read_scalar(node: Node, data_type: TensorDataType) -> float:
    """Read a DML_SCALAR_UNION: a number, or the union's member, as ``{"Float32": 1.5}``."""
    if not isinstance(node.value, dict):
        return node.number()
    half = data_type is TensorDataType.FLOAT16  # given by its bits
    name = "UInt16" if half else data_type.name.capitalize().replace("Uint", "UInt")
    member = node.members((name,))[name]
    if not half:
        return member.number()
    if not 0 <= member.integer() < 2**16:
        member.refuse(f"is {member.value}; 16 bits are needed")
    return float(np.array(member.integer(), np.uint16).view(np.float16))


def _read_activation(node: Node) -> Any:
    """Read a fused DML_OPERATOR_DESC; validation checks later if the operator can be fused."""
    kind, node = _inner(node)
    if kind is None:
        node.refuse("the field 'Type' is missing")
    return read_desc(read_type(kind), node, fused=True)


_READERS: dict[type[schema.Field], Callable[[Node], Any]] = {
    schema.Tensor: read_tensor,
    schema.Number: Node.number,
    schema.ScaleBias: _read_scale_bias,
    schema.DataType: read_data_type,
    schema.Boolean: Node.boolean,
    schema.Axes: Node.integers,
    schema.Activation: _read_activation,
}


def read_desc(operator: OperatorType, node: Node, *, fused: bool = False) -> Any:
    """Read the descriptor of an operator.

    Pointers that may be NULL are optional fields; all other fields are required, as in C.
    """
    row = ROWS[operator]
    may_be_null: tuple[type[schema.Field], ...] = (schema.ScaleBias, schema.Activation)
    if fused:
        may_be_null += (schema.Tensor,)
    optional = {
        field.external
        for field in row.fields
        if isinstance(field, may_be_null) or (isinstance(field, schema.Tensor) and field.optional)
    }
    required = [field.external for field in row.fields if field.external not in optional]
    if any(isinstance(field, schema.Axes) for field in row.fields):
        optional.add("AxisCount")
    members = node.members(required, optional)
    if "Axes" in members:
        _check_count(members, "AxisCount", "Axes", len(members["Axes"].integers()))
    values: dict[str, Any] = {}
    data_type = TensorDataType.UNKNOWN  # of the scalars behind it
    for field in row.fields:
        if field.external not in members:
            if isinstance(field, schema.Tensor):
                values[field.name] = None
            continue
        member = members[field.external]
        if isinstance(field, schema.Scalar):
            values[field.name] = _read_scalar(member, data_type)
            continue
        values[field.name] = _READERS[type(field)](member)
        if isinstance(field, schema.DataType):
            data_type = values[field.name]
    return DESCS[operator](**values)
