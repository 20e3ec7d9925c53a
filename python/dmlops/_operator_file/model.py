"""An operator file as a whole: resources, operators, and commands that refer to them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from dmlops._enums import OperatorType, TensorDataType
from dmlops._operator_file.descriptors import field_name, read_data_type, read_desc, read_type
from dmlops._operator_file.read import STANDARD_INPUT, Node, read_json, unknown

RAW = (".bin", ".dat")  # files of nothing but elements


@dataclass(frozen=True)
class File:
    """Initial values that are in a file: .npy, or raw."""

    path: Path


@dataclass(frozen=True)
class Sequence:
    """Initial values ``start, start + delta, ...``; a constant where ``delta`` is 0."""

    count: int
    start: float
    delta: float


@dataclass(frozen=True)
class Values:
    """Initial values one by one, in an array of that shape."""

    shape: tuple[int, ...]
    values: list[float]


@dataclass(frozen=True)
class Resource:
    """Memory, and what is in it at the start. Without initial values it is an output's."""

    node: Node
    data_type: TensorDataType
    initial: File | Sequence | Values | None
    offset: int  # of the initial values, in bytes
    size_in_bytes: int | None  # None: what the initial values need


@dataclass(frozen=True)
class Operator:
    """A dispatchable."""

    name: str
    type: OperatorType
    desc: Any


@dataclass(frozen=True)
class Binding:
    """A part of a resource; ``size`` None is what the tensor needs, ``whole`` is all of it."""

    resource: str
    offset: int = 0  # in elements
    count: int | None = None
    element_size: int | None = None  # None: that of the resource

    @property
    def whole(self) -> bool:
        """Whether nothing is said but the name."""
        return self == Binding(self.resource)


@dataclass(frozen=True)
class Dispatch:
    """A command: run an operator. The bindings are by the names of the descriptor's fields."""

    operator: Operator
    bindings: dict[str, Binding]

    @property
    def output(self) -> Binding:
        """Where the result goes."""
        return self.bindings["output_tensor"]


@dataclass(frozen=True)
class Print:
    """A command: show a resource."""

    resource: str
    verbose: bool  # every element


@dataclass(frozen=True)
class WriteFile:
    """A command: write a resource to a file."""

    resource: str
    path: Path


Command = Dispatch | Print | WriteFile


@dataclass(frozen=True)
class Model:
    """All that a file says."""

    resources: dict[str, Resource]
    operators: dict[str, Operator]
    commands: list[Command]


class _ResourceType(Enum):
    buffer = "a buffer"


class _ExecutionFlag(Enum):
    """DML_EXECUTION_FLAGS. All mean the same on a CPU: float16 is computed in float32 anyway."""

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class _CompileType(Enum):
    """How DxDispatch compiles; the result is the same."""

    DmlCompileOp = "as an operator"
    DmlCompileGraph = "as a graph of one operator"


def read_model(path: str, folder: Path | None = None) -> Model:
    """Read a file; relative paths in it start from ``folder``, by default the file's own."""
    if folder is None:
        folder = Path() if path == STANDARD_INPUT else Path(path).parent
    members = read_json(path).members(("dispatchables",), ("$schema", "resources", "commands"))
    resources = members["resources"].entries() if "resources" in members else {}
    commands = members["commands"].items() if "commands" in members else []
    dispatchables = members["dispatchables"].entries()
    operators = {name: _read_operator(name, node) for name, node in dispatchables.items()}
    model = Model(
        {name: _read_resource(node, folder) for name, node in resources.items()}, operators, []
    )
    model.commands.extend(_read_command(node, model, folder) for node in commands)
    return model


def _read_operator(name: str, node: Node) -> Operator:
    members = node.members(("type", "desc"), ("executionFlags", "dmlCompileType"))
    operator = read_type(members["type"])
    for flag in members["executionFlags"].items() if "executionFlags" in members else []:
        flag.choice(_ExecutionFlag, "DML_EXECUTION_FLAG_")
    if "dmlCompileType" in members:
        members["dmlCompileType"].choice(_CompileType)
    return Operator(name, operator, read_desc(operator, members["desc"]))


def _read_path(node: Node, folder: Path) -> Path:
    if not node.text():
        node.refuse("the path is empty")
    return folder / node.text()


def _read_values(node: Node) -> Values:
    """Read an array, of arrays where it has more than one dimension."""
    flat = node.value
    shape = [len(flat)]
    while flat and isinstance(flat[0], list):
        shape.append(len(flat[0]))
        if any(not isinstance(row, list) or len(row) != shape[-1] for row in flat):
            node.refuse("the rows are not all of one length")
        flat = [value for row in flat for value in row]
    if not flat:
        node.refuse("there are no values; a resource has at least one")
    numbers = [v if type(v) in (int, float) else Node(v, node.place).number() for v in flat]
    return Values(tuple(shape), numbers)


def _read_initial(node: Node, folder: Path) -> File | Sequence | Values:
    if isinstance(node.value, list):
        return _read_values(node)
    names = node.entries()
    if "sourcePath" in names:
        return File(_read_path(node.members(("sourcePath",))["sourcePath"], folder))
    if "valueStart" in names or "valueDelta" in names:
        members = node.members(("valueCount", "valueStart", "valueDelta"))
        start, delta = members["valueStart"].number(), members["valueDelta"].number()
    else:
        others = ("sourcePath", "valueStart", "valueDelta")  # for the message of a misspelt name
        members = node.members(("valueCount", "value"), others)
        start, delta = members["value"].number(), 0
    return Sequence(members["valueCount"].count(least=1), start, delta)


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
        size = members["sizeInBytes"].count(least=1)
    return Resource(node, data_type, initial, offset or 0, size)


def _read_binding(node: Node, resources: dict[str, Resource]) -> Binding:
    """Read what a tensor is bound to: a name, or a part, or an array of one of them."""
    if isinstance(node.value, list):
        items = node.items()
        if len(items) != 1:
            node.refuse(f"{len(items)} resources are bound; each tensor takes one")
        node = items[0]
    if isinstance(node.value, str):
        name, more = node, {}
    else:
        members = node.members(("name",), ("elementCount", "elementSizeInBytes", "elementOffset"))
        name = members.pop("name")
        more = {key: value.count() for key, value in members.items()}
    if name.text() not in resources:
        name.refuse(unknown("resource", name.text(), resources))
    return Binding(
        name.text(),
        more.get("elementOffset", 0),
        more.get("elementCount"),
        more.get("elementSizeInBytes"),
    )


def _read_dispatch(members: dict[str, Node], model: Model) -> Dispatch:
    name = members["dispatchable"]
    if name.text() not in model.operators:
        name.refuse(unknown("dispatchable", name.text(), model.operators))
    operator = model.operators[name.text()]
    fields = [field.name for field in dataclasses.fields(operator.desc)]
    tensors = {field_name(field): field for field in fields if field.endswith("_tensor")}
    bindings = members["bindings"].members(tensors)
    return Dispatch(
        operator,
        {tensors[key]: _read_binding(node, model.resources) for key, node in bindings.items()},
    )


# The fields of each command besides its type: required, optional.
_COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "dispatch": (("dispatchable", "bindings"), ("threadGroupCount",)),  # of shaders
    "print": (("resource",), ("verbose",)),
    "writeFile": (("resource", "targetPath"), ()),
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
    return WriteFile(resource.text(), _read_path(members["targetPath"], folder))
