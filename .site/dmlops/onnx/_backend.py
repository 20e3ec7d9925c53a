"""The backend: a model becomes a list of steps, once; a run goes through them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from dmlops.onnx._operators import (
    OPERATORS,
    Step,
    UnsupportedError,
    read_node,
    require_data_type,
)


class PreparedModel(BackendRep):  # type: ignore[misc]
    """A model that is ready to run, as often as wanted, from several threads at once.

    `prepare` makes it.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        if graph.sparse_initializer:
            raise UnsupportedError("sparse initializers; dmlops has dense tensors")
        self._constants = {
            tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer
        }
        self._declared = {value.name: value.type for value in graph.input}
        self._inputs = [name for name in self._declared if name not in self._constants]
        self._outputs = [value.name for value in graph.output]
        self._steps = _steps(model)

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """Run the model.

        Parameters
        ----------
        inputs : sequence of numpy.ndarray, or mapping of str to numpy.ndarray
            In the order of the graph's inputs without initializers, or by name.
        **kwargs
            None are known.

        Returns
        -------
        namedtuple of numpy.ndarray
            The graph's outputs, by position or by name.

        Raises
        ------
        TypeError
            If an input has another data type than the model declares.
        ValueError
            If the number of inputs, or the shape of one, is another than the model declares.
        """
        if kwargs:
            raise TypeError(f"run: unknown options {', '.join(kwargs)}")
        values = self._constants | self._named(inputs)
        for step, sources, target, last in self._steps:
            values[target] = step(*(values[name] if name else None for name in sources))
            for name in last:
                del values[name]
        results = [values[name] for name in self._outputs]
        return namedtupledict("Outputs", self._outputs)(*results)

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
            _require_declared(name, value, self._declared[name])
        return named


def _steps(model: onnx.ModelProto) -> list[tuple[Step, list[str], str, list[str]]]:
    """Return for each node what runs it, its inputs, its output, and what nobody needs any more."""
    opset = next(
        (entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1
    )
    inferred = onnx.shape_inference.infer_shapes(model).graph
    types = {value.name: value.type for value in (*inferred.input, *inferred.value_info)}
    constant_types = {tensor.name: tensor.data_type for tensor in inferred.initializer}
    kept = {value.name for value in model.graph.output}
    kept |= {""} | {value.name for value in model.graph.input} | set(constant_types)
    steps = []
    for proto in model.graph.node:
        node = read_node(proto, opset)
        step = OPERATORS[node.operator](node)
        for name in proto.input[:1]:
            known = constant_types.get(name) or (
                types[name].tensor_type.elem_type if name in types else 0
            )
            if known:
                require_data_type(node, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(known)))
        steps.append((step, list(proto.input), proto.output[0]))
    finished: list[tuple[Step, list[str], str, list[str]]] = []
    for step, sources, target in reversed(steps):
        last = [name for name in dict.fromkeys((*sources, target)) if name not in kept]
        kept.update(last)
        finished.append((step, sources, target, last))
    return finished[::-1]


def _require_declared(name: str, value: Any, declared: onnx.TypeProto) -> None:
    """Compare data type and fixed dimensions; only tensors are known that well."""
    if not declared.HasField("tensor_type"):
        return
    tensor = declared.tensor_type
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"run: input {name!r} must be a numpy.ndarray, not {type(value).__name__}; "
            "numpy.asarray converts"
        )
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    if value.dtype != dtype:
        raise TypeError(
            f"run: input {name!r} has dtype {value.dtype.name}, but the model declares {dtype.name}"
        )
    if not tensor.HasField("shape"):
        return
    sizes = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    fits = len(sizes) == value.ndim and all(
        size in (None, actual) for size, actual in zip(sizes, value.shape, strict=True)
    )
    if not fits:
        text = ", ".join("?" if size is None else str(size) for size in sizes)
        raise ValueError(
            f"run: input {name!r} has shape {value.shape}, but the model declares ({text})"
        )


class DmlopsBackend(Backend):  # type: ignore[misc]
    """`onnx.backend.base.Backend` on dmlops; the module has its methods as functions."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Say whether `prepare` would take the model."""
        try:
            cls.prepare(model, device, **kwargs)
        except UnsupportedError:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Check a model and make it ready to run.

        Parameters
        ----------
        model : onnx.ModelProto, or the path of a file
            Any opset; its operators are among `OPERATORS`.
        device : str, default "CPU"
            There is no other.
        **kwargs
            Ignored, as other backends know more.

        Returns
        -------
        PreparedModel
            Its ``run(inputs)`` returns the outputs.

        Raises
        ------
        UnsupportedError
            If dmlops lacks an operator, or a data type or mode of it; the message names the node.
        onnx.checker.ValidationError
            If the model is not valid.

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
        if isinstance(model, str | os.PathLike):
            model = onnx.load(model)
        _require_cpu(device)
        super().prepare(model, device, **kwargs)  # onnx.checker
        return PreparedModel(model)

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
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        read = read_node(node, opset)
        super().run_node(node, inputs, device, outputs_info, opset_version=opset)  # onnx.checker
        arrays = [value if isinstance(value, list) else np.asarray(value) for value in inputs]
        if arrays and isinstance(arrays[0], np.ndarray):
            require_data_type(read, arrays[0].dtype)
        given = iter(arrays)
        result = OPERATORS[read.operator](read)(
            *(next(given) if name else None for name in node.input)
        )
        return namedtupledict("Outputs", [node.output[0]])(result)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Say whether the device is the CPU."""
        try:
            return bool(Device(device).type == DeviceType.CPU)
        except (AttributeError, ValueError):
            return False


def _require_cpu(device: str) -> None:
    if not DmlopsBackend.supports_device(device):
        raise UnsupportedError(f"device {device!r}; dmlops runs on the CPU")
