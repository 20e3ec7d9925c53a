"""A plan: the order of a model's nodes, and the library that runs each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import onnx

from dmlops._text import counted
from dmlops.onnx import _onnxruntime
from dmlops.onnx._node import Step, UnsupportedError, label_of, outputs_of
from dmlops.onnx._operators import OPERATORS, prepare_node
from dmlops.onnx._values import Value, array_of, infer_types, of_array, of_type, require_consistent

OURS, FALLBACK = "dmlops", "onnxruntime"


class Placement(NamedTuple):
    """The place in which a node of a model runs."""

    node: str  # its name, which may be empty
    operator: str
    runs_on: str  # "dmlops" or "onnxruntime"
    subgraph: int | None = None  # of those that ONNX Runtime runs, counted from 0
    reason: str = ""  # why dmlops does not run the node


@dataclass
class PlannedStep:
    """Some nodes that run in one call."""

    run: Callable[..., Any]  # takes the sources, None where one is left out
    sources: list[str]
    targets: Sequence[str]  # "" where one is left out
    one_target: bool  # `run` returns the value itself instead of a sequence
    label: str
    finished: list[str]  # the values that no later step reads


@dataclass
class _Node:
    proto: onnx.NodeProto
    step: Step | None  # None: dmlops cannot run the node
    reason: str = ""
    subgraph: int | None = None
    reads: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.reads = _onnxruntime.reads(self.proto)

    def may_run_on(self, place: str) -> bool:
        """Return True if the node may run in a place; Identity may run in any."""
        if self.step is None:
            return place == FALLBACK
        return place == OURS or self.proto.op_type == "Identity"


class Plan:
    """The steps of a model, its constants, and the placement of its nodes."""

    def __init__(self, model: onnx.ModelProto, opset: int, fallback: str | None) -> None:
        graph = model.graph
        self._model = model
        self._outputs = {value.name for value in graph.output}
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.constants = {
            name: array_of(f"the initializer {name!r}", tensor)
            for name, tensor in self._tensors.items()
        }
        for value in (*graph.input, *graph.output):
            if value.name in self.constants:
                constant = of_array(value.name, self.constants[value.name])
                declared = of_type(value.name, value.type)
                require_consistent("the initializer", constant, declared)
        self._types = infer_types(model)
        for value in graph.input:  # a run may override the value
            self._tensors.pop(value.name, None)
        nodes = self._read(opset, fallback)
        if fallback is None:
            _require_all(nodes)
        computed = self._fold(nodes)
        inputs = {value.name for value in graph.input}
        self.steps: list[PlannedStep] = []
        subgraph = 0
        for place, members in _groups(computed, inputs | set(self.constants)):
            if place == OURS:
                self.steps += map(_step, members)
            else:
                self.steps += self._subgraph(members, computed)
                for node in members:
                    node.subgraph = subgraph
                subgraph += 1
        self._find_finished(inputs)
        self.placements = [_placement(node) for node in nodes]

    def _read(self, opset: int, fallback: str | None) -> list[_Node]:
        known = {name: of_array(name, array) for name, array in self.constants.items()}
        known |= {name: of_type(name, declared) for name, declared in self._types.items()}
        nodes = []
        for proto in self._model.graph.node:
            try:
                step = prepare_node(proto, opset, known)
                first = known.get(proto.input[0], Value("")) if proto.input else None
                if fallback and first and first.dtype is None and proto.op_type != "Identity":
                    raise UnsupportedError("the data type is not known before the model runs")
                nodes.append(_Node(proto, step))
            except UnsupportedError as error:
                reason = str(error).removeprefix(f"{label_of(proto)}: ")
                nodes.append(_Node(proto, None, reason))
        return nodes

    def _fold(self, nodes: list[_Node]) -> list[_Node]:
        """Fold Constant, and Identity of a constant, into the constants; return the other nodes.

        ONNX Runtime then gets weights as initializers, which it packs in advance.
        """
        computed = []
        for node in nodes:
            sources = list(node.proto.input)
            if (
                node.step is None
                or node.proto.op_type not in ("Constant", "Identity")
                or any(name not in self._tensors for name in sources)
            ):
                computed.append(node)
                continue
            name = node.proto.output[0]
            self.constants[name] = node.step(*(self.constants[source] for source in sources))
            self._tensors[name] = onnx.numpy_helper.from_array(self.constants[name], name)
        return computed

    def _subgraph(self, members: list[_Node], nodes: list[_Node]) -> list[PlannedStep]:
        """Return the step of some nodes in ONNX Runtime; none if their results are unused."""
        inside = {id(node) for node in members}
        needed = self._outputs | {
            name for node in nodes if id(node) not in inside for name in node.reads
        }
        protos = [node.proto for node in members]
        made = (name for proto in protos for name in proto.output)
        outputs = [name for name in made if name in needed]
        if not outputs:
            return []
        run, sources = _onnxruntime.session(
            self._model, protos, outputs, self._types, self._tensors, arrays=self.constants
        )
        return [PlannedStep(run, sources, outputs, False, "ONNX Runtime", [])]

    def _find_finished(self, inputs: set[str]) -> None:
        kept = self._outputs | inputs | {""} | set(self.constants)
        for step in reversed(self.steps):
            names = dict.fromkeys((*step.sources, *step.targets))
            step.finished = [name for name in names if name not in kept]
            kept.update(step.finished)


def _placement(node: _Node) -> Placement:
    place = OURS if node.subgraph is None else FALLBACK
    return Placement(node.proto.name, node.proto.op_type, place, node.subgraph, node.reason)


def _step(node: _Node) -> PlannedStep:
    assert node.step is not None
    proto = node.proto
    targets = outputs_of(proto)
    return PlannedStep(
        node.step, list(proto.input), targets, len(targets) == 1, label_of(proto), []
    )


def _groups(nodes: Iterable[_Node], available: set[str]) -> Iterable[tuple[str, list[_Node]]]:
    """Yield groups of nodes in topological order, with as few changes of place as possible.

    Each group takes every node of its place whose inputs are available, so that a value changes
    place only as often as on the longest path.
    """
    remaining, place = list(nodes), OURS
    while remaining:
        group: list[_Node] = []
        for node in remaining:  # in topological order, as the checker ensures
            if node.may_run_on(place) and available.issuperset(node.reads):
                group.append(node)
                available.update(node.proto.output)
        if group:
            yield place, group
        taken = set(map(id, group))
        remaining = [node for node in remaining if id(node) not in taken]
        place = FALLBACK if place == OURS else OURS


def _require_all(nodes: list[_Node]) -> None:
    """Refuse a model with nodes that dmlops lacks, and list all of them."""
    refused = [node for node in nodes if node.step is None]
    if refused:
        lines = [f"  {label_of(node.proto)}: {node.reason}" for node in refused]
        raise UnsupportedError(
            f"prepare: dmlops cannot run {len(refused)} of {counted(len(nodes), 'node')}:\n"
            + "\n".join(lines)
            + f"\ndmlops has {', '.join(OPERATORS)}; "
            f"prepare(model, fallback={FALLBACK!r}) runs the other nodes with ONNX Runtime"
        )
