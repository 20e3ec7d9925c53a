"""Runs an operator file: allocates the memory, compiles the operators, and runs the commands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dmlops import _core
from dmlops._cli import RefusedError, one_line
from dmlops._device import Device
from dmlops._enums import FeatureLevel
from dmlops._operator_file.chunks import chunks
from dmlops._operator_file.files import check_target, is_npy
from dmlops._operator_file.model import (
    Binding,
    Dispatch,
    Model,
    Operator,
    Print,
    WriteFile,
    is_owned,
)
from dmlops._operator_file.progress import Progress
from dmlops._operator_file.read import FileError
from dmlops._operator_file.resources import Memory, create, discard, load, write
from dmlops._operator_file.timing import Repetition, repeat
from dmlops._tensor_desc import BufferTensorDesc

# Refusals by DirectML's rules, and fields of a type or range that their struct cannot hold.
REFUSALS = (_core.ValidationError, _core.BindingError, TypeError, OverflowError)


def run(model: Model, level: FeatureLevel, repetition: Repetition | None = None) -> None:
    """Check the whole file, then run the commands in their order; print results.

    With a repetition, each dispatch is repeated, and its times are printed.
    """
    for operator in model.operators.values():
        with _named(operator):
            _core.validate(operator.desc, level)
    if not model.commands:
        raise FileError('there are no commands; {"type": "dispatch", ...} runs an operator')
    for command in model.commands:
        if isinstance(command, WriteFile):
            check_target(command.path)
    with ExitStack() as stack:
        memories = _make_memory(model, stack)
        _check_dimensions(model, memories)
        compiled = [
            _compile(command, memories, Device(level)) if isinstance(command, Dispatch) else None
            for command in model.commands
        ]
        for command, ready in zip(model.commands, compiled, strict=True):
            if isinstance(command, Dispatch):
                _dispatch(command, ready, memories, repetition)
            elif isinstance(command, Print):
                _print(command.resource, memories[command.resource], verbose=command.verbose)
            else:
                write(memories[command.resource], command.path, command.dimensions)
                shape = command.dimensions or memories[command.resource].values.shape
                kind = _kind(memories[command.resource].values.dtype, shape)
                print(one_line(f"{command.resource}: {kind}, written to {command.path}"))
        if all(isinstance(command, Dispatch) for command in model.commands):
            written = dict.fromkeys(
                output.resource for d in _dispatches(model) for output in d.outputs.values()
            )
            for name in written:
                _print(name, memories[name])


def _check_dimensions(model: Model, memories: dict[str, Memory]) -> None:
    """Refuse dimensions for a file that its resource will not match when it is written."""
    elements = {name: memory.values.size for name, memory in memories.items()}
    for command in model.commands:
        if isinstance(command, Dispatch):
            for name, output in command.outputs.items():
                elements[output.resource] = math.prod(getattr(command.operator.desc, name).sizes)
        elif isinstance(command, WriteFile) and command.dimensions is not None:
            count = elements[command.resource]
            if math.prod(command.dimensions) != count:
                given = f"{list(command.dimensions)}, but there are {count} elements"
                raise FileError(f"{command.path}: the dimensions are {given}")


def _dispatches(model: Model) -> list[Dispatch]:
    return [command for command in model.commands if isinstance(command, Dispatch)]


@contextmanager
def _named(operator: Operator) -> Iterator[None]:
    """Put an operator's own name before a refusal, and write DirectML's names in it."""
    try:
        yield
    except REFUSALS as error:
        raise RefusedError(f"{operator.name}: {_core.directml_names(str(error))}") from error


def _targets(model: Model) -> dict[str, Path]:
    """Return the .npy files of resources that no operator writes after the file is written.

    Such a resource may be mapped to its file from the start.
    """
    result: dict[str, Path] = {}
    for command in model.commands:
        if isinstance(command, WriteFile):
            usual = command.dimensions is None
            result.setdefault(command.resource, command.path if usual else Path())
        elif isinstance(command, Dispatch):
            again = {output.resource for output in command.outputs.values()} & result.keys()
            result |= dict.fromkeys(again, Path())
    return {name: path for name, path in result.items() if is_npy(path)}


def _make_memory(model: Model, stack: ExitStack) -> dict[str, Memory]:
    memories: dict[str, Memory] = {}
    first: dict[str, tuple[BufferTensorDesc, Binding]] = {}  # the output that is the resource
    used: dict[str, bool] = {}  # by a command, and at first as an input
    for dispatch in _dispatches(model):
        for name, binding in dispatch.bindings.items():
            used.setdefault(binding.resource, name not in dispatch.outputs)
        for name, binding in dispatch.outputs.items():
            tensor = getattr(dispatch.operator.desc, name)
            first.setdefault(binding.resource, (tensor, binding))
    shown = {c.resource for c in model.commands if not isinstance(c, Dispatch)}
    targets = _targets(model)
    for name, resource in model.resources.items():
        if resource.initial is not None:
            memories[name] = load(resource, written=name in first)
        elif used.get(name, name in shown):
            resource.node.refuse("the field 'initialValues' is missing; only outputs need none")
        elif name in first:
            memory = create(*first[name], resource, targets.get(name))
            stack.callback(discard, memory)
            memories[name] = memory
    return memories


def _compile(command: Dispatch, memories: dict[str, Memory], device: Device) -> Any:
    """Compile an operator; its OWNED_BY_DML inputs are copied before the first command."""
    desc = command.operator.desc
    with _named(command.operator):
        initial = {
            name: memories[binding.resource].binding(binding, getattr(desc, name))
            for name, binding in command.bindings.items()
            if is_owned(getattr(desc, name))
        }
        return device.compile(desc, initial)


def _dispatch(
    command: Dispatch, compiled: Any, memories: dict[str, Memory], repetition: Repetition | None
) -> None:
    desc = command.operator.desc
    with _named(command.operator), Progress(command.operator.name) as progress:
        bound = {
            name: None
            if is_owned(getattr(desc, name))
            else memories[binding.resource].binding(binding, getattr(desc, name))
            for name, binding in command.bindings.items()
        }
        whole = all(isinstance(array, np.ndarray) for array in bound.values())
        cut = chunks(desc, bound) if whole and repetition is None else []
        for chunk in cut:
            outputs = {name: chunk.bindings.pop(name) for name in command.outputs}
            operator = Device(compiled.feature_level).compile(chunk.desc)
            operator.dispatch(chunk.bindings, outputs)
            progress.reach(chunk.done)
        if not cut:
            outputs = {name: bound.pop(name) for name in command.outputs}
            if repetition is None:
                compiled.dispatch(bound, outputs)
            else:
                times = repeat(lambda: compiled.dispatch(bound, outputs), repetition, progress)
                print(one_line(f"{command.operator.name}: {times}"))
    for name, output in command.outputs.items():
        memories[output.resource].show_as(getattr(desc, name), output)


def _kind(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    return f"{dtype.name.upper()} {list(shape)}"


def _print(name: str, memory: Memory, *, verbose: bool = False) -> None:
    values = memory.values
    threshold = values.size if verbose else 1000
    print(one_line(f"{name}: {_kind(values.dtype, values.shape)}"))
    print(np.array2string(values, separator=", ", threshold=threshold, floatmode="unique"))
