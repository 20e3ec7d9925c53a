"""ONNX's operators in terms of dmlops: one entry each, for every opset that defines it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

import dmlops
from dmlops._table import ACTIVATIONS, ROWS, Operator
from dmlops.onnx._values import ModelError, Value

Array = npt.NDArray[Any]
Step = Callable[..., Any]  # takes the inputs, None where one was left out; returns the output
ONNX_DOMAINS = ("", "ai.onnx")


class UnsupportedError(NotImplementedError):
    """The model needs an operator, data type or mode that dmlops lacks; the message names it."""


@dataclass(frozen=True)
class Node:
    """An operator with its attributes, those of the definition's defaults included."""

    operator: str
    version: int  # the opset that its definition is from
    attributes: Mapping[str, Any]
    inputs: tuple[Value | None, ...]  # named as in the definition; None where one is left out
    outputs: int
    label: str

    def input(self, index: int) -> Value:
        """Return an input; an omitted one has an unknown type and shape."""
        value = self.inputs[index] if index < len(self.inputs) else None
        return value or Value("")

    def refuse(self, what: str) -> UnsupportedError:
        """Return the error for a feature of this node that dmlops lacks."""
        return UnsupportedError(f"{self.label}: {what}")

    def invalid(self, what: str) -> ModelError:
        """Return the error for an invalid node."""
        return ModelError(f"{self.label}: {what}")


def label_of(node: onnx.NodeProto) -> str:
    """Return the operator, and the node's name if it has one, for messages."""
    domain = f"{node.domain}." if node.domain not in ONNX_DOMAINS else ""
    return f"{domain}{node.op_type}" + (f" (node {node.name!r})" if node.name else "")


def prepare_node(node: onnx.NodeProto, opset: int, known: Mapping[str, Value]) -> Step:
    """Return a function that runs a node.

    Parameters
    ----------
    node : onnx.NodeProto
        Its attributes have the names and defaults of `opset`.
    opset : int
        The opset of the model.
    known : mapping of str to Value
        The known types and shapes of the node's inputs, against which the node is checked.

    Raises
    ------
    UnsupportedError
        If dmlops lacks the operator, or a data type or mode of it.
    ModelError
        If the node is not valid.
    """
    read = _read_node(node, opset, known)
    _require_one_type(read, opset)
    _require_data_type(read)
    return OPERATORS[read.operator](read)


def _read_node(node: onnx.NodeProto, opset: int, known: Mapping[str, Value]) -> Node:
    label = label_of(node)
    if node.domain not in ONNX_DOMAINS or node.op_type not in OPERATORS:
        raise UnsupportedError(f"{label}: dmlops has no such operator")
    schema = onnx.defs.get_schema(node.op_type, opset)
    read = onnx.helper.get_attribute_value
    undefined = onnx.AttributeProto.UNDEFINED
    defaults = {
        name: read(attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type != undefined
    }
    given = {attribute.name: read(attribute) for attribute in node.attribute}
    inputs = tuple(
        known.get(name, Value(name))._replace(name=formal.name) if name else None
        for name, formal in zip(node.input, schema.inputs, strict=False)
    )
    outputs = sum(1 for name in node.output if name)
    return Node(node.op_type, schema.since_version, defaults | given, inputs, outputs, label)


def _require_one_type(node: Node, opset: int) -> None:
    """Refuse inputs of several data types where the definition has one for them."""
    first: dict[str, Value] = {}
    for value, formal in zip(
        node.inputs, onnx.defs.get_schema(node.operator, opset).inputs, strict=False
    ):
        if value is None or value.dtype is None:
            continue
        other = first.setdefault(formal.type_str, value)
        if value.dtype != other.dtype:
            raise node.invalid(
                f"{value.name} has data type {value.dtype.name}, but {other.name} has "
                f"{other.dtype}; convert {value.name}, as Cast does"
            )


# Functions that turn a node into a function to run


def _elementwise(function: Callable[..., Array], names: Mapping[str, str], node: Node) -> Step:
    """Return an elementwise function; `names` maps its parameters to ONNX's attributes."""
    values = {ours: node.attributes[theirs] for ours, theirs in names.items()}
    return partial(function, **values)


def _gelu(node: Node) -> Step:
    approximate = node.attributes["approximate"].decode()
    if approximate != "none":
        raise node.refuse(f"approximate={approximate!r}; dmlops has 'none', the exact formula")
    return dmlops.gelu


def _clip(node: Node) -> Step:
    if node.version < 11:
        bounds = (node.attributes.get("min"), node.attributes.get("max"))
        return lambda x: _clip_between(x, *bounds)
    for bound in filter(None, node.inputs[1:]):
        if any(size not in (None, 1) for size in bound.known_shape or ()):
            raise node.invalid(
                f"{bound.name} has shape {bound.written_shape()}, but a bound must be a scalar, of "
                "shape (); limits that differ by element take Min and Max"
            )
    return _clip_between


def _clip_between(x: Array, low: Any = None, high: Any = None) -> Array:
    """Limit as ONNX does: absent bounds are the type's limits, and the upper one wins."""
    limits = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
    low = limits.min if low is None else _scalar("min", low)
    high = limits.max if high is None else _scalar("max", high)
    return dmlops.clip(x, high if low > high else low, high)


def _scalar(name: str, value: Any) -> Any:
    if np.size(value) != 1:
        raise ValueError(f"Clip: {name} has shape {np.shape(value)}; it must be a scalar")
    return np.asarray(value).item()


def _softmax(function: Callable[..., Any], node: Node) -> Step:
    axis = node.attributes["axis"]
    shape = node.input(0).shape
    if shape is not None and not -max(len(shape), 1) <= axis < max(len(shape), 1):
        dimensions = "1 dimension" if len(shape) == 1 else f"{len(shape)} dimensions"
        raise node.invalid(
            f"axis {axis} is out of range for an input of {dimensions}, "
            f"{-len(shape)} to {len(shape) - 1}"
        )
    if node.version >= 13:
        return partial(function, axes=axis)
    # Before opset 13, the input is flattened to a matrix: the axes from this one on are columns.
    return lambda x: function(x, range(axis % x.ndim if axis < x.ndim else axis, x.ndim))


def _batch_normalization(node: Node) -> Step:
    attributes = node.attributes
    if node.version >= 14:
        training = attributes["training_mode"] != 0
    elif node.version >= 7:
        training = node.outputs > 1
    else:
        training = attributes["is_test"] == 0
    if training:
        raise node.refuse("training; dmlops has inference, with a given mean and variance")
    _require_parameters_of_channels(node)
    return partial(_normalize, epsilon=attributes["epsilon"])


def _require_parameters_of_channels(node: Node) -> None:
    """Refuse parameters whose size is not that of the channels (spatial=0: and positions)."""
    x = node.input(0)
    if x.known_shape is None:
        return
    sizes = x.known_shape[1:] or (1,)
    sizes = sizes[: None if node.attributes.get("spatial", 1) == 0 else 1]
    expected = Value("", shape=sizes).written_shape()
    for value in filter(None, node.inputs[1:]):
        shape = value.known_shape
        if shape is not None and not fits(shape, sizes):
            raise node.invalid(
                f"{value.name} has shape {value.written_shape()}, but {x.name} has shape "
                f"{x.written_shape()}, for which it must be {expected}"
            )


def fits(shape: Sequence[int | None], declared: Sequence[int | None]) -> bool:
    """Return True if two shapes agree in their known sizes."""
    return len(shape) == len(declared) and all(
        None in pair or pair[0] == pair[1] for pair in zip(shape, declared, strict=True)
    )


def _normalize(
    x: Array, scale: Array, bias: Array, mean: Array, variance: Array, *, epsilon: float
) -> Array:
    """Normalize, with parameters per channel or per element of a sample (spatial=0, to opset 8)."""
    given = (x, *(_along_channels(array, x.ndim) for array in (mean, variance, scale, bias)))
    # From opset 14 on the types may differ; float32, in which dmlops computes, holds float16.
    mixed = any(array.dtype != x.dtype for array in given)
    arrays: list[Any] = [array.astype(np.float32) if mixed else array for array in given]
    result: Array = dmlops.batch_normalization(*arrays, epsilon=epsilon)  # type: ignore[call-overload]
    return result.astype(x.dtype) if mixed else result


def _along_channels(array: Array, rank: int) -> Array:
    return array.reshape((1, *array.shape, *(1,) * (rank - 1 - array.ndim))[-rank:])


def _identity(node: Node) -> Step:
    return lambda x: x.copy() if isinstance(x, np.ndarray) else x


def _constant(node: Node) -> Step:
    (kind,) = (name for name in node.attributes if name.startswith(("value", "sparse")))
    value = node.attributes[kind]
    if kind == "value":
        array = onnx.numpy_helper.to_array(value)
    elif kind in ("value_float", "value_floats"):
        array = np.array(value, np.float32)
    elif kind in ("value_int", "value_ints"):
        array = np.array(value, np.int64)
    else:
        raise node.refuse(f"{kind}; dmlops has numbers, in dense tensors")
    return lambda: array


# ONNX's operators that mean the same as an activation.
_ELEMENTWISE = {row.onnx: row for row in ACTIVATIONS if row.onnx}

# By the operator's name: the function that turns a node into a function to run.
OPERATORS: dict[str, Callable[[Node], Step]] = {
    "BatchNormalization": _batch_normalization,
    "Clip": _clip,
    "Constant": _constant,
    "Gelu": _gelu,
    "Identity": _identity,
    "LogSoftmax": partial(_softmax, dmlops.log_softmax),
    "Softmax": partial(_softmax, dmlops.softmax),
    "Hardmax": partial(_softmax, dmlops.hardmax),
    **{
        name: partial(_elementwise, getattr(dmlops, row.function), row.onnx_attributes)
        for name, row in _ELEMENTWISE.items()
    },
}

_FLOATS = frozenset(map(np.dtype, (np.float32, np.float16)))


def _types(row: Operator) -> frozenset[np.dtype[Any]]:
    """Return the data types that an operator takes."""
    return frozenset(np.dtype(name.lower()) for name in row.types.names)


# Data types of the first input, unless they are _FLOATS; None is any.
_DATA_TYPES: dict[str, frozenset[np.dtype[Any]] | None] = {
    "Clip": _types(ROWS["clip"]),
    "Constant": None,
    "Identity": None,
    **{name: _types(row) for name, row in _ELEMENTWISE.items()},
}


def _require_data_type(node: Node) -> None:
    """Raise UnsupportedError if dmlops lacks the operator for the first input's data type."""
    accepted, dtype = _DATA_TYPES.get(node.operator, _FLOATS), node.input(0).dtype
    if accepted is None or dtype is None or dtype in accepted:
        return
    names = ", ".join(sorted(taken.name for taken in accepted))
    raise node.refuse(f"data type {dtype.name}; dmlops has it for {names}")
