"""The model of an operator file: resources, operators, and commands that refer to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dmlops._enums import TensorDataType, TensorFlags
from dmlops._operator_file.read import Node
from dmlops._table import DESCS
from dmlops._tensor_desc import BufferTensorDesc


def tensors(desc: Any) -> dict[str, BufferTensorDesc]:
    """Return the tensors that a descriptor has, by the names of its fields."""
    fields = {each.name: getattr(desc, each.name) for each in DESCS[type(desc).__name__].tensors}
    return {name: tensor for name, tensor in fields.items() if tensor is not None}


def is_owned(tensor: BufferTensorDesc) -> bool:
    """Return True if a tensor is bound when its operator is compiled."""
    return bool(tensor.flags & TensorFlags.OWNED_BY_DML)


@dataclass(frozen=True)
class File:
    """Initial values in a file: .npy, or raw."""

    path: Path


@dataclass(frozen=True)
class Sequence:
    """Initial values ``start, start + delta, ...``; a constant where ``delta`` is 0."""

    count: int
    start: float
    delta: float


@dataclass(frozen=True)
class Values:
    """Initial values listed one by one, in an array of the given shape."""

    shape: tuple[int, ...]
    values: list[float]


@dataclass(frozen=True)
class Mixed:
    """Initial values in sequence, each with its own data type."""

    items: list[tuple[TensorDataType, float]]


@dataclass(frozen=True)
class Resource:
    """Memory and its initial values, which an output may lack."""

    node: Node
    data_type: TensorDataType
    initial: File | Sequence | Values | Mixed | None
    offset: int  # of the initial values, in bytes
    size_in_bytes: int | None  # None: the size of the initial values


@dataclass(frozen=True)
class Operator:
    """A dispatchable, with the bindings of its OWNED_BY_DML inputs if it has any."""

    name: str
    desc: Any
    initial: dict[str, Binding]


@dataclass(frozen=True)
class Binding:
    """A range of a resource; `count` None: as many elements as the tensor needs."""

    resource: str
    offset: int = 0  # in elements
    count: int | None = None
    element_size: int | None = None  # None: that of the resource's initial values

    @property
    def whole(self) -> bool:
        """True if the binding is a name without an offset, a size or a type."""
        return self == Binding(self.resource)


@dataclass(frozen=True)
class Dispatch:
    """A command: run an operator. The bindings are by the names of the descriptor's fields."""

    operator: Operator
    bindings: dict[str, Binding]

    @property
    def outputs(self) -> dict[str, Binding]:
        """The bindings of the outputs."""
        row = DESCS[type(self.operator.desc).__name__]
        return {tensor.name: self.bindings[tensor.name] for tensor in row.outputs}


@dataclass(frozen=True)
class Print:
    """A command: show a resource."""

    resource: str
    verbose: bool  # every element


@dataclass(frozen=True)
class WriteFile:
    """A command: write a resource to a file, in other dimensions if they are given."""

    resource: str
    path: Path
    dimensions: tuple[int, ...] | None


Command = Dispatch | Print | WriteFile


@dataclass(frozen=True)
class Model:
    """The contents of a file."""

    resources: dict[str, Resource]
    operators: dict[str, Operator]
    commands: list[Command]
