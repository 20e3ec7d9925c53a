"""ONNX's operators in terms of dmlops: one entry each, for every opset that defines it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx

import dmlops
from dmlops._table import ACTIVATIONS, ROWS
from dmlops._tensor_desc import MAX_DIMENSIONS
from dmlops.onnx import _normalization
from dmlops.onnx._node import (
    Array,
    Node,
    Step,
    UnsupportedError,
    along_channels,
    axes_from,
    broadcastable,
    label_of,
    outputs_of,
    require_axes,
    require_broadcastable,
    with_checked_parameters,
)
from dmlops.onnx._values import (
    ONNX_DOMAINS,
    ModelError,
    Value,
    array_of,
    copied,
    require_consistent,
)


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
        If dmlops lacks the operator, or a data type, rank or mode of it.
    ModelError
        If the node is not valid.
    """
    if node.domain not in ONNX_DOMAINS or node.op_type not in OPERATORS:
        raise UnsupportedError(f"{label_of(node)}: dmlops has no such operator")
    schema = onnx.defs.get_schema(node.op_type, opset)
    read = _read_node(node, schema, known)
    _require_types(read, schema)
    operator = OPERATORS[read.operator]
    if operator.types is not None:
        _require_supported(read, operator.types)
    return operator.prepare(read)


def _read_node(
    node: onnx.NodeProto, schema: onnx.defs.OpSchema, known: Mapping[str, Value]
) -> Node:
    label = label_of(node)
    undefined = onnx.AttributeProto.UNDEFINED
    defaults = {
        name: _value_of(label, attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type != undefined
    }
    given = {attribute.name: _value_of(label, attribute) for attribute in node.attribute}
    inputs = tuple(
        known.get(name, Value(name))._replace(name=formal.name) if name else None
        for name, formal in zip(node.input, schema.inputs, strict=False)
    )
    outputs = tuple(known.get(name, Value(name)) if name else None for name in outputs_of(node))
    return Node(node.op_type, schema.since_version, defaults | given, inputs, outputs, label)


def _value_of(label: str, attribute: onnx.AttributeProto) -> Any:
    """Return the value of an attribute; texts are decoded."""
    try:
        value = onnx.helper.get_attribute_value(attribute)
        return value.decode() if isinstance(value, bytes) else value
    except ValueError as error:
        raise ModelError(f"{label}: attribute {attribute.name!r} is invalid: {error}") from error


def _require_types(node: Node, schema: onnx.defs.OpSchema) -> None:
    """Refuse several data types where the definition has one for inputs and outputs."""
    first: dict[str, Value] = {}
    for value, formal in zip(node.inputs, schema.inputs, strict=False):
        if value is None or value.dtype is None:
            continue
        other = first.setdefault(formal.type_str, value)
        if value.dtype != other.dtype:
            raise node.invalid(
                f"{value.name} has data type {value.dtype}, but {other.name} has "
                f"{other.dtype}; convert {value.name}, as Cast does"
            )
    for declared, formal in zip(node.outputs, schema.outputs, strict=False):
        dtype = first.get(formal.type_str, Value("")).dtype
        if declared:
            require_consistent(f"{node.label}: the result", Value("", dtype), declared)


# Functions that turn a node into a function to run


def _elementwise(function: Callable[..., Array], names: Mapping[str, str], node: Node) -> Step:
    """Return an elementwise function; `names` maps its parameters to ONNX's attributes."""
    values = {ours: node.attributes[theirs] for ours, theirs in names.items()}
    return partial(function, **values)


def _gelu(node: Node) -> Step:
    approximate = node.attributes["approximate"]
    if approximate != "none":
        raise node.refuse(f"approximate={approximate!r}; dmlops has 'none', the exact formula")
    return dmlops.gelu


def _shrink(node: Node) -> Step:
    lambd = node.attributes["lambd"]
    if lambd < 0:  # both conditions may hold, of which ONNX tests x < -lambd first
        raise node.refuse(f"lambd={lambd}; dmlops supports 0 and above")
    return partial(dmlops.shrink, bias=node.attributes["bias"], threshold=lambd)


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
    require_axes(node, axis)
    if node.version >= 13:
        return partial(function, axes=axis)
    # Before opset 13, the input is flattened to a matrix: the axes from this one on are columns.
    return lambda x: function(x, axes_from(axis, x.ndim))


def _prelu(node: Node) -> Step:
    if node.version >= 7:
        require_broadcastable(node)
        return lambda x, slope: dmlops.parameterized_relu(x, broadcastable(slope, x.ndim))

    def run(x: Array, slope: Array) -> Array:
        slopes = slope.reshape((1,) * x.ndim) if slope.size == 1 else along_channels(slope, x.ndim)
        return dmlops.parameterized_relu(x, slopes)

    return with_checked_parameters(node, run, one=True)


def _constant(node: Node) -> Step:
    kinds = [name for name in node.attributes if name.startswith(("value", "sparse"))]
    if len(kinds) != 1:
        given = f"the values {', '.join(kinds)}" if kinds else "no value"
        raise node.invalid(f"{given}; a constant must have exactly one")
    (kind,) = kinds
    value = node.attributes[kind]
    if kind == "value":
        array = array_of(f"{node.label}: the value", value)
    elif kind in ("value_float", "value_floats"):
        array = np.array(value, np.float32)
    elif kind in ("value_int", "value_ints"):
        array = np.array(value, np.int64)
    else:
        raise node.refuse(f"{kind}; dmlops has numbers, in dense tensors")
    for declared in filter(None, node.outputs):
        require_consistent(f"{node.label}: the value", Value("", array.dtype), declared)
    return lambda: array


@dataclass(frozen=True)
class Operator:
    """One of ONNX's operators in terms of dmlops."""

    prepare: Callable[[Node], Step]  # turns a node into a function to run
    function: str = ""  # of dmlops; "": no computation
    types: frozenset[np.dtype[Any]] | None = None  # of all inputs; None is any
    note: str = ""  # for the documentation


def _types(function: str) -> frozenset[np.dtype[Any]]:
    """Return the data types that a function takes."""
    return frozenset(np.dtype(name.lower()) for name in ROWS[function].types.names)


def _calls(function: str, prepare: Callable[[Node], Step], note: str = "") -> Operator:
    return Operator(prepare, function, _types(function), note)


def _calls_softmax(function: str) -> Operator:
    return _calls(function, partial(_softmax, getattr(dmlops, function)))


_MVN = "mean_variance_normalization"

# By the operator's name, for every opset that defines it.
OPERATORS: dict[str, Operator] = {
    "BatchNormalization": _calls(
        "batch_normalization",
        _normalization.batch_normalization,
        "from 14 on training: `batch_normalization_training`",
    ),
    "Clip": _calls("clip", _clip),
    "Constant": Operator(_constant),
    "Gelu": _calls("gelu", _gelu, '`approximate="none"` only'),
    "GroupNormalization": _calls(_MVN, _normalization.group_normalization),
    "Hardmax": _calls_softmax("hardmax"),
    "Identity": Operator(lambda _: copied),
    "InstanceNormalization": _calls(_MVN, _normalization.instance_normalization),
    "LayerNormalization": _calls(_MVN, _normalization.layer_normalization),
    "LogSoftmax": _calls_softmax("log_softmax"),
    "MeanVarianceNormalization": _calls(_MVN, _normalization.mean_variance_normalization),
    "PRelu": _calls("parameterized_relu", _prelu),
    "RMSNormalization": _calls(_MVN, _normalization.rms_normalization),
    "Softmax": _calls_softmax("softmax"),
    # The operators that mean the same as an activation.
    **{
        row.onnx: _calls(
            row.function,
            partial(_elementwise, getattr(dmlops, row.function), row.onnx_attributes),
        )
        for row in ACTIVATIONS
        if row.onnx
    },
    "Shrink": _calls("shrink", _shrink, "`lambd` of 0 and above"),
}


def _require_supported(node: Node, accepted: frozenset[np.dtype[Any]]) -> None:
    """Raise UnsupportedError if dmlops lacks the data type or the rank of an input."""
    for index, value in enumerate(node.inputs):
        if value is None:
            continue
        which = f"{value.name} of " if index else ""
        if value.dtype is not None and value.dtype not in accepted:
            names = ", ".join(sorted(taken.name for taken in accepted))
            raise node.refuse(f"{which}data type {value.dtype}; dmlops supports {names}")
        if value.shape is not None and len(value.shape) > MAX_DIMENSIONS:
            raise node.refuse(
                f"{which}{len(value.shape)} dimensions; dmlops supports at most {MAX_DIMENSIONS}"
            )
