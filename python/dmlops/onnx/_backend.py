"""The backend: `prepare` compiles a model to a plan, whose steps each run executes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from dmlops.onnx import _onnxruntime
from dmlops.onnx._node import UnsupportedError, label_of, outputs_of
from dmlops.onnx._operators import prepare_node
from dmlops.onnx._plan import FALLBACK, OURS, Placement, Plan
from dmlops.onnx._values import (
    ONNX_DOMAINS,
    ModelError,
    Value,
    copied,
    fits,
    model_errors,
    of_array,
    of_type,
    without_weights,
)


class PreparedModel(BackendRep):  # type: ignore[misc]
    """A model that is ready to run any number of times, from several threads at once.

    Created by `prepare`.
    """

    def __init__(self, model: onnx.ModelProto, fallback: str | None = None) -> None:
        graph = model.graph
        if graph.sparse_initializer:
            raise UnsupportedError("sparse initializers; dmlops has dense tensors")
        plan = Plan(model, _opset(model), fallback)
        self._constants, self._steps, self._placements = (
            plan.constants,
            plan.steps,
            plan.placements,
        )
        self._declared = {value.name: of_type(value.name, value.type) for value in graph.input}
        self._tensors = {v.name for v in graph.input if v.type.HasField("tensor_type")}
        self._inputs = [name for name in self._declared if name not in self._constants]
        self._outputs = tuple(of_type(value.name, value.type) for value in graph.output)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The inputs that a run needs, in order: name, data type and shape of each.

        Excludes initializers, which a run may replace by name.
        """
        return tuple(self._declared[name] for name in self._inputs)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The outputs of a run, in order: name, data type and shape of each."""
        return self._outputs

    def placement(self) -> list[Placement]:
        """Return where each node runs, in the model's order.

        Returns
        -------
        list of Placement
            Each has the node's name, its operator, ``runs_on`` ("dmlops" or "onnxruntime"), the
            number of ONNX Runtime's subgraph, and the reason why dmlops cannot run the node.
        """
        return list(self._placements)

    def __repr__(self) -> str:
        """Return the inputs, the outputs and the number of nodes per place."""
        inputs, outputs = (
            ", ".join(f"{value.name}: {value.dtype} {value.written_shape()}" for value in values)
            for values in (self.inputs, self.outputs)
        )
        places = [placement.runs_on for placement in self._placements]
        counts = ", ".join(
            f"{places.count(place)} on {place}" for place in (OURS, FALLBACK) if place in places
        )
        return f"<PreparedModel ({inputs}) => ({outputs}); nodes: {counts or 'none'}>"

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """Run the model.

        Parameters
        ----------
        inputs : sequence of numpy.ndarray, or mapping of str to numpy.ndarray
            In the order of the graph's inputs without initializers, or by name.
        **kwargs
            Refused: no options are defined.

        Returns
        -------
        namedtuple of numpy.ndarray
            The graph's outputs, by position or by name. They share no memory with the inputs, the
            model or each other.

        Raises
        ------
        TypeError
            If an input differs in data type from the model's declaration.
        ValueError
            If the number of inputs or a shape differs from the model's declaration, or if shapes
            do not match each other in a node.
        """
        if kwargs:
            raise TypeError(f"run: unknown options {', '.join(kwargs)}")
        values = self._constants | self._named(inputs)
        for step in self._steps:
            arguments = (values[name] if name else None for name in step.sources)
            try:
                results = step.run(*arguments)
            except (TypeError, ValueError) as error:
                if type(error) not in (TypeError, ValueError):
                    raise
                raise type(error)(f"{step.label}: {error}") from error
            values.update(zip(step.targets, [results] if step.one_target else results, strict=True))
            del results  # the reference to values that no step reads
            values.pop("", None)
            for name in step.finished:
                del values[name]
        return self._own_results(values)

    def _own_results(self, values: dict[str, Any]) -> Any:
        """Return the outputs, to which the caller may write.

        Constants, inputs and values that are returned twice are copied. Steps return new arrays.
        """
        names = [value.name for value in self._outputs]
        shared = {*self._constants, *self._declared}
        results = []
        for name in names:
            results.append(copied(values[name]) if name in shared else values[name])
            shared.add(name)
        return namedtupledict("Outputs", names)(*results)

    def _named(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            named = dict(inputs)
            unknown = [name for name in named if name not in self._declared]
            missing = [name for name in self._inputs if name not in named]
            if unknown or missing:
                raise ValueError(
                    f"run: the model has inputs {self._inputs}; unknown: {unknown}, "
                    f"missing: {missing}"
                )
        elif isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes):
            if len(inputs) != len(self._inputs):
                raise ValueError(
                    f"run: {len(inputs)} inputs for a model that has {len(self._inputs)}: "
                    f"{', '.join(self._inputs)}"
                )
            named = dict(zip(self._inputs, inputs, strict=True))
        else:
            raise TypeError(
                "run: inputs must be a sequence of arrays, or a mapping from names to arrays, "
                f"not {type(inputs).__name__}"
            )
        named = {
            name: np.asarray(value) if isinstance(value, np.generic) else value
            for name, value in named.items()
        }
        for name, value in named.items():
            if name in self._tensors:
                named[name] = _read_input(value, self._declared[name])
        return named


def _read_input(value: Any, declared: Value) -> npt.NDArray[Any]:
    """Return the input as a plain array, after a comparison of data type and fixed dimensions."""
    name, dtype = declared.name, declared.dtype
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"run: input {name!r} must be a numpy.ndarray, not {type(value).__name__}; "
            "convert it with numpy.asarray"
        )
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"run: input {name!r} is a masked array, whose mask would be "
            "ignored; pass its filled(value)"
        )
    if dtype is not None and value.dtype != dtype:
        raise TypeError(
            f"run: input {name!r} has dtype {value.dtype}, but the model declares {dtype}; "
            f"convert it with astype({dtype.name!r})"
        )
    shape = declared.known_shape
    if shape is not None and not fits(value.shape, shape):
        raise ValueError(
            f"run: input {name!r} has shape {value.shape}, but the model declares "
            f"{declared.written_shape()}"
        )
    return np.asarray(value)


def _opset(model: onnx.ModelProto) -> int:
    """Return the version of ONNX's own operators that the model uses."""
    versions = (entry.version for entry in model.opset_import if entry.domain in ONNX_DOMAINS)
    return _require_known(next(versions, 1))


def _require_known(opset: int) -> int:
    """Return the opset, or refuse one that the installed package onnx is too old for."""
    newest = onnx.defs.onnx_opset_version()
    if opset > newest:
        raise UnsupportedError(
            f"prepare: the model has opset {opset}, but onnx {onnx.__version__} defines the "
            f"operators to opset {newest}; install a newer onnx, or export to opset {newest}"
        )
    return opset


def _load(model: Any) -> onnx.ModelProto:
    """Return the model in a file or in bytes."""
    if isinstance(model, onnx.ModelProto):
        return model
    if not isinstance(model, str | os.PathLike | bytes | bytearray | memoryview):
        raise TypeError(
            "prepare: model must be an onnx.ModelProto, a path, or the bytes of a file, not "
            f"{type(model).__name__}"
        )
    what = repr(os.fspath(model)) if isinstance(model, str | os.PathLike) else "the argument"
    try:
        if isinstance(model, str | os.PathLike):
            return onnx.load(model)
        return onnx.load_model_from_string(bytes(model))
    except DecodeError as error:
        raise ModelError(f"prepare: {what} is not an ONNX model: {error}") from error
    except (onnx.checker.ValidationError, ValueError) as error:  # of external data
        raise ModelError(f"prepare: {what}: {error}") from error


class DmlopsBackend(Backend):  # type: ignore[misc]
    """`onnx.backend.base.Backend` on dmlops; the module has its methods as functions."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Return True if `prepare` accepts the model, False if it is not valid or not supported."""
        try:
            cls.prepare(model, device, **kwargs)
        except (UnsupportedError, ModelError):
            return False
        return True

    @classmethod
    def prepare(
        cls, model: Any, device: str = "CPU", *, fallback: str | None = None, **kwargs: Any
    ) -> PreparedModel:
        """Check a model and make it ready to run.

        Parameters
        ----------
        model : onnx.ModelProto, path of a file, or bytes of a file
            Any opset.
        device : str, default "CPU"
            The only device.
        fallback : {None, "onnxruntime"}, default None
            Runs the nodes that dmlops lacks, in as few subgraphs as possible.
            `PreparedModel.placement` lists them. With None, all operators must be among
            `OPERATORS`.
        **kwargs
            Ignored, for compatibility with other backends.

        Returns
        -------
        PreparedModel
            Its ``run(inputs)`` returns the outputs.

        Raises
        ------
        UnsupportedError
            If dmlops lacks an operator, or a data type, rank or mode of it, and there is no
            fallback. The message names all of these nodes.
        ModelError
            If the model is not valid. It is an onnx.checker.ValidationError and a ValueError.
        ImportError
            If the fallback is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> import onnx.parser
        >>> import dmlops.onnx
        >>> model = onnx.parser.parse_model('''
        ...     <ir_version: 8, opset_import: ["": 17]>
        ...     example (float[N, 3] x) => (float[N, 3] y) { y = HardSigmoid <alpha = 0.5> (x) }
        ... ''')
        >>> dmlops.onnx.prepare(model).run([np.array([[-2, 0, 0.5]], np.float32)]).y
        array([[0.  , 0.5 , 0.75]], dtype=float32)
        """
        _require_cpu(device)
        if fallback is not None and fallback != FALLBACK:
            raise ValueError(f"prepare: fallback must be None or {FALLBACK!r}, not {fallback!r}")
        if fallback:
            _onnxruntime.require()
        model = _load(model)
        _opset(model)  # before the checker, which would treat an unknown opset as the newest
        with model_errors():
            super().prepare(without_weights(model), device, **kwargs)  # onnx.checker
        return PreparedModel(model, fallback)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Run a single node on its inputs, as ``opset_version`` (the newest) defines it."""
        _require_cpu(device)
        opset = _require_known(kwargs.get("opset_version", onnx.defs.onnx_opset_version()))
        arrays = [value if isinstance(value, list) else np.asarray(value) for value in inputs]
        names = [name for name in node.input if name]
        if len(arrays) != len(names):
            raise ValueError(
                f"{label_of(node)}: inputs must have length {len(names)}, for "
                f"{', '.join(names)}, not {len(arrays)}"
            )
        known = {name: of_array(name, array) for name, array in zip(names, arrays, strict=True)}
        with model_errors():
            # onnx.checker
            super().run_node(node, inputs, device, outputs_info, opset_version=opset)
        step = prepare_node(node, opset, known)
        given = iter(arrays)
        result = step(*(next(given) if name else None for name in node.input))
        named = outputs_of(node)
        results = dict(zip(named, [result] if len(named) == 1 else result, strict=True))
        results.pop("", None)
        return namedtupledict("Outputs", list(results))(*results.values())

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return True if the device is the CPU."""
        try:
            return bool(Device(device).type == DeviceType.CPU)
        except (AttributeError, ValueError):
            return False


def _require_cpu(device: str) -> None:
    if not DmlopsBackend.supports_device(device):
        raise UnsupportedError(f"device {device!r}; dmlops runs on the CPU")
