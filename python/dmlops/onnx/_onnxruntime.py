"""Runs the nodes that dmlops lacks as models of ONNX Runtime."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import onnx

import dmlops
from dmlops.onnx._node import UnsupportedError
from dmlops.onnx._values import LARGE, inner_graphs, stub

# Initializers need not be inputs from version 4 on, and ONNX Runtime may not read the newest.
VERSIONS = (4, 10)


def require() -> Any:
    """Return the module onnxruntime; ImportError names the extra that installs it."""
    try:
        return import_module("onnxruntime")
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise
        raise ModuleNotFoundError(
            "prepare: fallback='onnxruntime' needs the package onnxruntime; install with: "
            "pip install 'dmlops[onnx]'",
            name="onnxruntime",
        ) from None


def reads(node: onnx.NodeProto) -> list[str]:
    """Return the values that a node reads, captures of its inner graphs included."""
    found = [name for name in node.input if name]
    for graph in inner_graphs(node):
        own = {value.name for value in (*graph.input, *graph.initializer)}
        own |= {tensor.values.name for tensor in graph.sparse_initializer}
        own |= {name for inner in graph.node for name in inner.output}
        outer = [name for inner in graph.node for name in reads(inner)]
        outer += [value.name for value in graph.output]
        found += [name for name in outer if name not in own]
    return list(dict.fromkeys(found))


# The element types that ONNX Runtime takes as NumPy's arrays. By ONNX's type, since older releases
# of onnx convert BFLOAT16 to float32.
_NUMBERS = frozenset(
    onnx.helper.np_dtype_to_tensor_dtype(np.dtype(code)) for code in "?bBhHiIqQefd"
)


def _is_large(tensor: onnx.TensorProto) -> bool:
    """Return True if a tensor is passed beside the subgraph, which can have at most 2 GiB."""
    return tensor.data_type in _NUMBERS and math.prod(tensor.dims) > LARGE


def session(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    types: Mapping[str, onnx.TypeProto],
    constants: Mapping[str, onnx.TensorProto],
    *,
    arrays: Mapping[str, Any],
) -> tuple[Callable[..., list[Any]], list[str]]:
    """Return a function that runs some nodes of a model, and the names of its inputs.

    `arrays` has the elements of `constants`.
    """
    runtime = require()
    made = {name for node in nodes for name in node.output}
    taken = list(dict.fromkeys(name for node in nodes for name in reads(node) if name not in made))
    inputs = [name for name in taken if name not in constants]
    labels = ", ".join(dict.fromkeys(node.op_type for node in nodes))
    untyped = [name for name in inputs if name not in types]
    if untyped:
        raise UnsupportedError(
            f"prepare: {labels}: the type of {untyped[0]!r} is not known, but an input of a "
            "subgraph for ONNX Runtime must have one; declare it in the graph's value_info"
        )

    def values(names: Sequence[str]) -> list[onnx.ValueInfoProto]:
        return [
            onnx.helper.make_value_info(name, types.get(name, onnx.TypeProto())) for name in names
        ]

    used = [name for name in taken if name in constants]
    large = [name for name in used if _is_large(constants[name])]
    initializers = [stub(constants[name]) if name in large else constants[name] for name in used]
    subgraph = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "subgraph", values(inputs), values(outputs), initializers),
        opset_imports=model.opset_import,
        functions=model.functions,
        ir_version=min(max(model.ir_version, VERSIONS[0]), VERSIONS[1]),
    )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = dmlops.get_num_threads()
    options.log_severity_level = 4  # logged errors are also raised
    try:
        if large:
            values_of_large = [runtime.OrtValue.ortvalue_from_numpy(arrays[name]) for name in large]
            options.add_external_initializers(large, values_of_large)
        made_session = runtime.InferenceSession(
            subgraph.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # ONNX Runtime's own classes have no common base
        first_line = str(error).strip().partition("\n")[0]
        raise UnsupportedError(f"prepare: ONNX Runtime refuses {labels}: {first_line}") from error

    def run(*sources: Any) -> list[Any]:
        feeds = dict(zip(inputs, sources, strict=True))
        results: list[Any] = made_session.run(list(outputs), feeds)
        return results

    return run, inputs
