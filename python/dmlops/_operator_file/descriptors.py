"""DirectML's structs in JSON: their fields by their own names, whatever the operator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from dmlops._activation_descs import ActivationDesc
from dmlops._device import OperatorDesc
from dmlops._enums import OperatorType, TensorDataType, TensorFlags
from dmlops._operator_file.other_operators import OTHER_OPERATORS
from dmlops._operator_file.read import Node
from dmlops._scale_bias import ScaleBias
from dmlops._tensor_desc import BufferTensorDesc

# Every descriptor, by its operator.
DESCS: dict[OperatorType, type[Any]] = {
    desc.operator_type: desc
    for desc in (*get_args(OperatorDesc), *ActivationDesc.__subclasses__())
    if hasattr(desc, "operator_type")  # neither the base class nor a subclass of the user
}

_TENSOR = ("DataType", "Sizes")
_TENSOR_OPTIONAL = (
    "Flags",
    "DimensionCount",
    "Strides",
    "TotalTensorSizeInBytes",
    "GuaranteedBaseOffsetAlignment",
)


def field_name(name: str) -> str:
    """Return DirectML's name of a field: "InputTensor" for "input_tensor"."""
    return "".join(word.capitalize() for word in name.split("_"))


def read_type(node: Node) -> OperatorType:
    """Return the operator that a DML_OPERATOR_TYPE names."""
    name = node.text().removeprefix("DML_OPERATOR_")
    if name in OTHER_OPERATORS:
        known = ", ".join(OperatorType.__members__)
        node.refuse(f"dmlops does not have DirectML's operator {name}; it has {known}")
    return node.choice(OperatorType, "DML_OPERATOR_")


def read_data_type(node: Node) -> TensorDataType:
    """Return a DML_TENSOR_DATA_TYPE."""
    return node.choice(TensorDataType, "DML_TENSOR_DATA_TYPE_")


def _check_count(members: dict[str, Node], name: str, counted: str, length: int) -> None:
    """Compare DirectML's field for the length of an array, optional in JSON, with the array."""
    if name in members and members[name].integer() != length:
        members[name].refuse(f"is {members[name].value}, but {counted} has {length} entries")


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
        kind.refuse(f"is {kind.value!r}; DirectML's tensors are of the type 'BUFFER'")
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


_READERS: dict[str, Callable[[Node], Any]] = {
    "scale_bias": _read_scale_bias,
    "min_max_data_type": read_data_type,
    "spatial": Node.boolean,
    "axes": Node.integers,
    "fused_activation": _read_activation,
}


def _read_field(name: str, node: Node) -> Any:
    if name.endswith("_tensor"):
        return read_tensor(node)
    return _READERS.get(name, Node.number)(node)


def read_desc(operator: OperatorType, node: Node, *, fused: bool = False) -> Any:
    """Read the descriptor of an operator.

    Pointers that may be NULL are optional fields; all other fields are required, as in C.
    """
    desc = DESCS[operator]
    names = {field_name(field.name): field.name for field in dataclasses.fields(desc)}
    optional = {
        external
        for external, name in names.items()
        if name in ("scale_bias", "fused_activation") or (fused and name.endswith("_tensor"))
    }
    required = [name for name in names if name not in optional]
    if "axes" in names.values():
        optional.add("AxisCount")
    members = node.members(required, optional)
    if "Axes" in members:
        _check_count(members, "AxisCount", "Axes", len(members["Axes"].integers()))
    tensors = [name for name in names.values() if name.endswith("_tensor")]
    values: dict[str, Any] = dict.fromkeys(tensors) if fused else {}
    for external, name in names.items():
        if external not in members:
            continue
        if name in ("min", "max") and "min_max_data_type" in values:
            values[name] = _read_scalar(members[external], values["min_max_data_type"])
        else:
            values[name] = _read_field(name, members[external])
    return desc(**values)
