"""A node of a graph with the attributes and the named inputs of its operator's definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from dmlops._text import counted
from dmlops.onnx._values import ONNX_DOMAINS, ModelError, Shape, Value, fits, written_shape

Array = npt.NDArray[Any]
# Takes the inputs, None where one is left out; returns the output, or of a node with several
# outputs a tuple, in which any value may stand for an output that is left out.
Step = Callable[..., Any]


class UnsupportedError(NotImplementedError):
    """dmlops lacks an operator, data type, rank or mode of the model; the message names it."""


@dataclass(frozen=True)
class Node:
    """An operator with its attributes, those of the definition's defaults included."""

    operator: str
    version: int  # the opset of its definition
    attributes: Mapping[str, Any]
    inputs: tuple[Value | None, ...]  # named as in the definition; None where one is left out
    outputs: tuple[Value | None, ...]  # as declared; up to the last one that has a name
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


def outputs_of(node: onnx.NodeProto) -> tuple[str, ...]:
    """Return the outputs up to the last one that has a name; "" is one that is left out."""
    names = list(node.output)
    while names and not names[-1]:
        names.pop()
    return tuple(names)


# Axes


def axes_from(axis: int, rank: int) -> range:
    """Return the axes from `axis` on; an array without dimensions has axis 0."""
    rank_or_1 = max(rank, 1)
    if not -rank_or_1 <= axis < rank_or_1:
        raise ValueError(
            f"axis {axis} is out of range for an input of {counted(rank, 'dimension')}, "
            f"{-rank_or_1} to {rank_or_1 - 1}"
        )
    return range(axis % rank_or_1, rank_or_1)


def require_axes(node: Node, *axes: int) -> None:
    """Refuse axes that the input lacks, and those named twice."""
    shape = node.input(0).shape
    try:
        places = [axis if shape is None else axes_from(axis, len(shape))[0] for axis in axes]
    except ValueError as error:
        raise node.invalid(str(error)) from None
    for axis in axes:
        if places.count(places[axes.index(axis)]) > 1:
            raise node.invalid(f"axes {list(axes)} name axis {axis} twice")


# Shapes of parameters


def with_checked_parameters(node: Node, step: Step, *, one: bool = False) -> Step:
    """Return a step that refuses parameters whose size is not that of the channels.

    With spatial=0, the size is that of channels and positions. If `one`, a single number is
    accepted too. The sizes are checked now, as far as they are known, and in each run, since
    dmlops would broadcast a parameter of size 1.
    """
    end = None if node.attributes.get("spatial", 1) == 0 else 2

    def check(x: Shape | None, *parameters: Shape | None) -> None:
        if x is None:
            return
        sizes = x[1:end] or (1,)
        for index, shape in enumerate(parameters, 1):
            if shape is None or fits(shape, sizes):
                continue
            if not one or any(size not in (None, 1) for size in shape):
                raise ValueError(
                    f"{node.input(index).name} has shape {written_shape(shape)}, but "
                    f"{node.input(0).name} has shape {written_shape(x)}, for which it must be "
                    f"{written_shape(sizes)}"
                )

    try:
        check(*(value and value.known_shape for value in node.inputs))
    except ValueError as error:
        raise node.invalid(str(error)) from None

    def run(*arrays: Array) -> Any:
        check(*(array.shape for array in arrays))
        return step(*arrays)

    return run


def require_broadcastable(node: Node) -> None:
    """Refuse parameters that do not broadcast to the first input."""
    x = node.input(0)
    if x.known_shape is None:
        return
    for value in filter(None, node.inputs[1:]):
        shape = value.known_shape
        if shape is None:
            continue
        like = x.known_shape[max(len(x.known_shape) - len(shape), 0) :]
        ones = tuple(1 if size == 1 else other for size, other in zip(shape, like, strict=False))
        if not fits(shape, ones):
            raise node.invalid(
                f"{value.name} has shape {value.written_shape()}, which does not broadcast to "
                f"that of {x.name}, {x.written_shape()}: aligned at the last dimension, each "
                f"size must be 1 or that of {x.name}"
            )


def along_channels(array: Array, rank: int) -> Array:
    """Return a parameter per channel with as many dimensions as the input."""
    return array.reshape((1, *array.shape, *(1,) * (rank - 1 - array.ndim))[-rank:])


def broadcastable(array: Array, rank: int) -> Array:
    """Return a parameter with as many dimensions as the input."""
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


# Data types


def as_float32(array: Array) -> Array:
    """Convert float16 to float32, which holds it; other types are dmlops' to refuse."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def as_type(array: Array, dtype: np.dtype[Any]) -> Array:
    """Round to a type in which large numbers may be infinite."""
    with np.errstate(over="ignore"):
        return array.astype(dtype, copy=False)
