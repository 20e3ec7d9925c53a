"""Values of a graph: their data types and shapes, as far as known before the model runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import onnx

ONNX_DOMAINS = ("", "ai.onnx")


Shape = tuple[int | None, ...]  # None: a size that is not fixed


class ModelError(onnx.checker.ValidationError, ValueError):  # type: ignore[misc]
    """The model is not valid ONNX; the message names the node, the input and both values."""


@contextmanager
def model_errors() -> Iterator[None]:
    """Raise ModelError for the errors by which onnx refuses a model."""
    try:
        yield
    except UnicodeDecodeError as error:  # onnx cannot convert its own message
        raise ModelError(f"a text of the model is not valid UTF-8: {error}") from error
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ModelError(str(error)) from error


class Value(NamedTuple):
    """An input or output of a model or node."""

    name: str
    dtype: np.dtype[Any] | None = None  # None: no tensor, or not known
    # A size that the model does not fix is None, or a name that several shapes share. None: not a
    # tensor, or a tensor of unknown rank.
    shape: tuple[int | str | None, ...] | None = None

    @property
    def known_shape(self) -> Shape | None:
        """The shape with None for each size that the model does not fix."""
        if self.shape is None:
            return None
        return tuple(size if isinstance(size, int) else None for size in self.shape)

    def written_shape(self) -> str:
        """Return the shape as text, with a question mark for each size that is not fixed."""
        return written_shape(self.known_shape or ())


def fits(shape: Shape, declared: Shape) -> bool:
    """Return True if two shapes agree in their known sizes."""
    return len(shape) == len(declared) and all(
        None in pair or pair[0] == pair[1] for pair in zip(shape, declared, strict=True)
    )


def require_consistent(what: str, value: Value, declared: Value) -> None:
    """Refuse a declared data type or shape that contradicts the value, as far as both are known."""
    known, shape = value.known_shape, declared.known_shape
    types_differ = None not in (value.dtype, declared.dtype) and value.dtype != declared.dtype
    shapes_differ = known is not None and shape is not None and not fits(known, shape)
    if types_differ or shapes_differ:
        ours, theirs = (
            f"{each.dtype or '?'} {each.written_shape()}" if shapes_differ else f"{each.dtype}"
            for each in (value, declared)
        )
        raise ModelError(f"{what} {declared.name!r} is {ours}, but the graph declares {theirs}")


def written_shape(shape: Shape) -> str:
    """Return a shape as text, with a question mark for each size that is not fixed."""
    text = ", ".join("?" if size is None else str(size) for size in shape)
    return f"({text},)" if len(shape) == 1 else f"({text})"


def of_type(name: str, declared: onnx.TypeProto) -> Value:
    """Return a value of a declared or inferred type."""
    if not declared.HasField("tensor_type"):
        return Value(name)
    tensor = declared.tensor_type
    dtype = None
    if tensor.elem_type != onnx.TensorProto.UNDEFINED:
        try:
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        except KeyError:
            raise ModelError(
                f"value {name!r} has element type {tensor.elem_type}, which ONNX does not define"
            ) from None
    if not tensor.HasField("shape"):
        return Value(name, dtype)
    return Value(name, dtype, tuple(map(_size, tensor.shape.dim)))


def _size(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None  # older exporters: -1 is unknown
    return dim.dim_param or None


def of_array(name: str, array: Any) -> Value:
    """Return the value of an array; a list stands for a sequence."""
    return Value(name, array.dtype, array.shape) if isinstance(array, np.ndarray) else Value(name)


def copied(value: Any) -> Any:
    """Return a copy of an array, or of a list of arrays, which stands for a sequence."""
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def array_of(what: str, tensor: onnx.TensorProto) -> Any:
    """Return the array of a tensor."""
    try:
        return onnx.numpy_helper.to_array(tensor)
    except KeyError:
        raise ModelError(
            f"{what} has element type {tensor.data_type}, which ONNX does not define"
        ) from None
    except (TypeError, ValueError, onnx.checker.ValidationError) as error:
        raise ModelError(f"{what} has invalid data: {error}") from error


LARGE = 1024  # elements; tensors that give shapes (of Reshape, Slice, Pad) are smaller


def stub(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """Return a tensor whose data is elsewhere in memory."""
    without_data = onnx.TensorProto(
        name=tensor.name,
        data_type=tensor.data_type,
        dims=tensor.dims,
        data_location=onnx.TensorProto.EXTERNAL,
    )
    # ONNX's checker looks for a file unless the location begins with "#".
    without_data.external_data.add(key="location", value="#memory")
    return without_data


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of the model with stubs in place of large initializers.

    protobuf, and so ONNX's checker and inference, cannot serialize models above 2 GiB.
    """
    copy = onnx.ModelProto()
    _copy_fields(model, copy, "graph")
    _copy_fields(model.graph, copy.graph, "initializer")
    copy.graph.initializer.extend(
        stub(tensor) if math.prod(tensor.dims) > LARGE else tensor
        for tensor in model.graph.initializer
    )
    return copy


def _copy_fields(source: Any, target: Any, excluded: str) -> None:
    for field, value in source.ListFields():
        if field.name == excluded:
            continue
        if hasattr(value, "MergeFrom"):  # a message, or a repeated field
            getattr(target, field.name).MergeFrom(value)
        else:
            setattr(target, field.name, value)


def infer_types(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    """Return the types by name: those of inputs as declared, the others as ONNX infers them.

    Of results, the model declares the data types only. Their declared shapes may be stale, for
    example where the batch size of the input was changed after the export.
    """
    copy = without_weights(model)
    for value in copy.graph.input:
        _clear_negative_sizes(value.type)
    _prepare_for_inference(copy.graph)
    with model_errors():
        graph = onnx.shape_inference.infer_shapes(copy).graph
    return {v.name: v.type for v in (*graph.value_info, *graph.output, *graph.input)}


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that are attributes of a node, as of If and Loop."""
    for attribute in node.attribute:
        yield from attribute.graphs
        if attribute.HasField("g"):
            yield attribute.g


def _prepare_for_inference(graph: onnx.GraphProto) -> None:
    """Clear the shapes of results, and replace operators that ONNX does not infer."""
    for value in (*graph.value_info, *graph.output):
        _clear_shape(value.type)
    for node in graph.node:
        for inner in inner_graphs(node):
            _prepare_for_inference(inner)
        if node.op_type == "GroupNormalization" and node.domain in ONNX_DOMAINS:
            node.op_type = "Identity"  # has the same types
            del node.input[1:], node.attribute[:]


def _clear_shape(declared: onnx.TypeProto) -> None:
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        getattr(declared, kind).ClearField("shape")
    elif kind in ("sequence_type", "optional_type"):
        _clear_shape(getattr(declared, kind).elem_type)


def _clear_negative_sizes(declared: onnx.TypeProto) -> None:
    for dim in declared.tensor_type.shape.dim if declared.HasField("tensor_type") else ():
        if dim.dim_value < 0:
            dim.ClearField("dim_value")
