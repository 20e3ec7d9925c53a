"""Reads an operator file as a whole, and checks that its parts refer to one another."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from enum import Enum
from pathlib import Path

from dmlops._enums import TensorDataType
from dmlops._operator_file.descriptors import read_data_type, read_desc, read_type
from dmlops._operator_file.model import (
    Binding,
    Command,
    Dispatch,
    File,
    Mixed,
    Model,
    Operator,
    Print,
    Resource,
    Sequence,
    Values,
    WriteFile,
    is_owned,
    tensors,
)
from dmlops._operator_file.read import STANDARD_INPUT, Node, read_json, reading, unknown
from dmlops._table.schema import camel_case
from dmlops._tensor_desc import MAX_DIMENSIONS


class _ResourceType(Enum):
    buffer = "a buffer"


class _ExecutionFlag(Enum):
    """DML_EXECUTION_FLAGS, which have no effect: float16 is always computed in float32."""

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class _CompileType(Enum):
    """DxDispatch's choice of a compilation method, which has no effect on results."""

    DmlCompileOp = "as an operator"
    DmlCompileGraph = "as a graph of one operator"


def read_model(path: str, folder: Path | None = None) -> Model:
    """Read a file; relative paths in it start from ``folder``, by default the file's own."""
    if folder is None:
        folder = Path() if path == STANDARD_INPUT else Path(path).parent
    with reading(path):
        return _read_model(path, folder)


def _read_model(path: str, folder: Path) -> Model:
    members = read_json(path).members(("dispatchables",), ("$schema", "resources", "commands"))
    resources = members["resources"].entries() if "resources" in members else {}
    commands = members["commands"].items() if "commands" in members else []
    dispatchables = members["dispatchables"].entries()
    model = Model({name: _read_resource(node, folder) for name, node in resources.items()}, {}, [])
    for name, node in dispatchables.items():
        model.operators[name] = _read_operator(name, node, model.resources)
    model.commands.extend(_read_command(node, model, folder) for node in commands)
    return model


# Dispatchables of DxDispatch other than DirectML operators.
_UNSUPPORTED = {
    "hlsl": "compute shaders (HLSL) are not supported; dmlops runs DirectML's operators",
    "onnx": "ONNX models are not supported in operator files; dmlops.onnx runs them from Python",
    "dmlSerializedGraph": "serialized graphs are not supported; describe the operators",
}


def _read_operator(name: str, node: Node, resources: dict[str, Resource]) -> Operator:
    entries = node.entries()
    if "type" not in entries:
        node.refuse("the field 'type' is missing")
    kind = entries["type"]  # first: other kinds have other fields
    if kind.text() in _UNSUPPORTED:
        kind.refuse(_UNSUPPORTED[kind.text()])
    operator = read_type(kind)
    desc_name = "Desc" if "Desc" in entries else "desc"
    optional = ("executionFlags", "dmlCompileType", "bindings")
    members = node.members(("type", desc_name), optional)
    for flag in members["executionFlags"].items() if "executionFlags" in members else []:
        flag.choice(_ExecutionFlag, "DML_EXECUTION_FLAG_")
    if "dmlCompileType" in members:
        members["dmlCompileType"].choice(_CompileType)
    desc = read_desc(operator, members[desc_name])
    initial = _read_bindings(
        members.get("bindings", Node({})),
        resources,
        (),
        [name for name, tensor in tensors(desc).items() if is_owned(tensor)],
    )
    return Operator(name, desc, initial)


def _read_path(node: Node, folder: Path) -> Path:
    if not node.text():
        node.refuse("the path is empty")
    return folder / node.text()


def _read_source(node: Node, folder: Path) -> Path:
    """Return a path relative to the folder, or, if only that exists, to the current folder."""
    path, other = _read_path(node, folder), Path(node.text())
    with reading(f"{node.place}: {path}"):
        return other if other.exists() and not path.exists() else path


def _check_dimensions(node: Node, shape: Collection[int]) -> None:
    if len(shape) > MAX_DIMENSIONS:
        node.refuse(
            f"has {len(shape)} dimensions; DirectML's tensors have at most {MAX_DIMENSIONS}"
        )


def _read_values(node: Node) -> Values:
    """Read an array, of arrays where it has more than one dimension."""
    flat = node.value
    shape = [len(flat)]
    while flat and isinstance(flat[0], list):
        shape.append(len(flat[0]))
        if any(not isinstance(row, list) or len(row) != shape[-1] for row in flat):
            node.refuse("the rows are not all of one length")
        flat = [value for row in flat for value in row]
    _check_dimensions(node, shape)
    if not flat:
        node.refuse("there are no values; a resource needs at least one")
    numbers = [
        v if type(v) in (int, float) and abs(v) < math.inf else Node(v, node.place).number()
        for v in flat
    ]
    return Values(tuple(shape), numbers)


def _read_mixed(node: Node) -> Mixed:
    """Read the list that DxDispatch takes for the data type UNKNOWN."""
    items = []
    for item in node.items():
        members = item.members(("type", "value"), ("name",))
        items.append((read_data_type(members["type"]), members["value"].number()))
    return Mixed(items)


def _read_initial(node: Node, folder: Path) -> File | Sequence | Values | Mixed | None:
    if node.value == "deferred":  # DxDispatch's text for memory that an operator fills
        return None
    if isinstance(node.value, list):
        return (_read_mixed if isinstance(next(iter(node.value), 0), dict) else _read_values)(node)
    names = node.entries()
    if "sourcePath" in names:
        return File(_read_source(node.members(("sourcePath",))["sourcePath"], folder))
    if "valueStart" in names or "valueDelta" in names:
        members = node.members(("valueCount", "valueStart", "valueDelta"))
        start, delta = members["valueStart"].number(), members["valueDelta"].number()
    else:
        others = ("sourcePath", "valueStart", "valueDelta")  # for the message of a misspelt name
        members = node.members(("valueCount", "value"), others)
        start, delta = members["value"].number(), 0
    return Sequence(members["valueCount"].count(minimum=1), start, delta)


def _read_resource(node: Node, folder: Path) -> Resource:
    members = node.members(
        (),
        (
            "type",
            "initialValues",
            "initialValuesDataType",
            "initialValuesOffsetInBytes",
            "sizeInBytes",
        ),
    )
    if "type" in members:
        members["type"].choice(_ResourceType)
    initial = offset = size = None
    data_type = TensorDataType.UNKNOWN
    if "initialValues" in members:
        initial = _read_initial(members["initialValues"], folder)
    if "initialValuesDataType" in members:
        data_type = read_data_type(members["initialValuesDataType"])
    if "initialValuesOffsetInBytes" in members:
        offset = members["initialValuesOffsetInBytes"].count()
    if "sizeInBytes" in members:
        size = members["sizeInBytes"].count(minimum=1)
    return Resource(node, data_type, initial, offset or 0, size)


_COUNTS = ("elementCount", "elementSizeInBytes", "elementStride", "elementOffset")
_IGNORED = ("format", "shape", "counter")  # of bindings for shaders and ONNX models


def _read_binding(node: Node, resources: dict[str, Resource]) -> Binding:
    """Read a binding: a name, a range of a resource, or an array with one of these."""
    if isinstance(node.value, list):
        items = node.items()
        if len(items) != 1:
            node.refuse(f"{len(items)} resources are bound; each tensor takes one")
        node = items[0]
    if isinstance(node.value, str):
        name, more = node, {}
    else:
        members = node.members(("name",), (*_COUNTS, *_IGNORED))
        name = members["name"]
        more = {key: members[key].count() for key in _COUNTS if key in members}
    if name.text() not in resources:
        name.refuse(unknown("resource", name.text(), resources))
    return Binding(
        name.text(),
        more.get("elementOffset", 0),
        more.get("elementCount") or None,  # 0 means the resource's own
        more.get("elementSizeInBytes") or more.get("elementStride") or None,
    )


def _read_bindings(
    node: Node,
    resources: dict[str, Resource],
    required: Iterable[str],
    optional: Iterable[str] = (),
) -> dict[str, Binding]:
    """Read the bindings of tensors by name."""
    names = {camel_case(name): name for name in (*required, *optional)}
    members = node.members(map(camel_case, required), map(camel_case, optional))
    return {names[key]: _read_binding(value, resources) for key, value in members.items()}


def _read_dispatch(members: dict[str, Node], model: Model) -> Dispatch:
    name = members["dispatchable"]
    if name.text() not in model.operators:
        name.refuse(unknown("dispatchable", name.text(), model.operators))
    operator = model.operators[name.text()]
    unbound = [tensor for tensor in tensors(operator.desc) if tensor not in operator.initial]
    bindings = _read_bindings(members["bindings"], model.resources, unbound)
    return Dispatch(operator, operator.initial | bindings)


# The fields of each command besides its type: required, optional.
_COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "dispatch": (("dispatchable", "bindings"), ("threadGroupCount",)),  # of shaders
    "print": (("resource",), ("verbose",)),
    "writeFile": (("resource", "targetPath"), ("dimensions",)),
}


def _read_command(node: Node, model: Model, folder: Path) -> Command:
    entries = node.entries()
    if "type" not in entries:
        node.refuse("the field 'type' is missing")
    kind = entries["type"].text()
    if kind not in _COMMANDS:
        entries["type"].refuse(unknown("command", kind, _COMMANDS))
    required, optional = _COMMANDS[kind]
    members = node.members(("type", *required), optional)
    if kind == "dispatch":
        return _read_dispatch(members, model)
    resource = members["resource"]
    if resource.text() not in model.resources:
        resource.refuse(unknown("resource", resource.text(), model.resources))
    if kind == "print":
        verbose = members.get("verbose", Node(False)).boolean()
        return Print(resource.text(), verbose)
    dimensions = None
    if "dimensions" in members:
        dimensions = members["dimensions"].integers()
        _check_dimensions(members["dimensions"], dimensions)
        if min(dimensions, default=1) < 1:
            members["dimensions"].refuse(f"is {list(dimensions)}; each must be at least 1")
    return WriteFile(resource.text(), _read_path(members["targetPath"], folder), dimensions)
