"""ONNX Runtime: a model of the operator, run with I/O binding on NumPy's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from dmlops._bench.peers.base import Candidate, CannotDo, axis_second, channel_axis
from dmlops._bench.peers.graph_peer import GraphPeer
from dmlops._bench.problem import PARAMETERS, Array, Problem, View


class OnnxRuntime(GraphPeer):
    """The CPU execution provider."""

    module = "onnxruntime"

    def set_up(self) -> None:
        """Set the options of all sessions."""
        try:
            self.onnx = import_module("onnx")
        except ImportError as error:
            raise ImportError("needs the package onnx, which builds its models") from error
        self.options = self.library.SessionOptions()
        self.options.intra_op_num_threads = self.threads
        self.options.log_severity_level = 4
        # Threads may spin between calls, but not during the next competitor's turn.
        self.options.add_session_config_entry("session.force_spinning_stop", "1")

    def clip(self, problem: Problem) -> Iterator[Candidate]:
        """Yield Clip, after Mul and Add if there is a scale; these do not take small integers."""
        p, dtype = problem.arguments, problem.base.dtype

        def formula(graph: Graph, x: str) -> str:
            if "scale" not in p:
                return graph.add(
                    "Clip", x, *(graph.number(p[name], dtype) for name in ("min", "max"))
                )
            number = dtype if dtype.kind == "f" else np.dtype(np.float32)
            scale, bias, low, high = (
                graph.number(p[name], number) for name in ("scale", "bias", "min", "max")
            )
            x = x if number == dtype else graph.cast(x, number)
            y = graph.add("Clip", graph.add("Add", graph.add("Mul", x, scale), bias), low, high)
            return y if number == dtype else graph.cast(y, dtype)

        yield from self.run(problem, formula)

    def hard_sigmoid(self, problem: Problem) -> Iterator[Candidate]:
        """Yield HardSigmoid."""
        p = problem.arguments
        yield from self.run(
            problem, lambda graph, x: graph.add("HardSigmoid", x, alpha=p["alpha"], beta=p["beta"])
        )

    def batch_normalization(self, problem: Problem) -> Iterator[Candidate]:
        """Yield BatchNormalization for parameters of one axis, put second; else the formula."""
        dense = problem.in_memory_order()
        p, axis = dense.arguments, channel_axis(dense.arguments)
        shape = axis_second(dense.output_base.shape, axis or 0)

        def operator(graph: Graph, x: str) -> str:
            x = x if axis == 1 else graph.add("Reshape", x, graph.constant(np.array(shape)))
            m, v, s, b = (graph.constant(p[name].ravel()) for name in PARAMETERS)
            y = graph.add("BatchNormalization", x, s, b, m, v, epsilon=p["epsilon"])
            return graph.add("Relu", y) if p["relu"] else y

        def formula(graph: Graph, x: str) -> str:
            epsilon = graph.number(p["epsilon"], problem.base.dtype)
            deviation = graph.add("Sqrt", graph.add("Add", "variance", epsilon))
            y = graph.add("Mul", graph.add("Sub", x, "mean"), graph.add("Div", "scale", deviation))
            y = graph.add("Add", y, "bias")
            return graph.add("Relu", y) if p["relu"] else y

        if axis is not None:
            yield from self.run(problem, operator, shape=shape)
        else:
            yield from self.run(problem, formula, {name: p[name] for name in PARAMETERS})

    def formulas(self, p: Mapping[str, Any], dtype: np.dtype[Any]) -> dict[str, Formula]:
        """Return formulas of the graph's input ``x`` and of a problem's arrays, by their names."""
        axis = p.get("axes", (0,))[-1]

        def gradient_where(graph: Graph, condition: str) -> str:
            return graph.add("Where", condition, "gradient", graph.number(0, dtype))

        def clip_grad(graph: Graph, x: str) -> str:
            above = graph.add("Greater", x, graph.number(p["min"], dtype))
            below = graph.add("Less", x, graph.number(p["max"], dtype))
            return gradient_where(graph, graph.add("And", above, below))

        def layer(graph: Graph, x: str) -> str:
            last = graph.constant(np.array([-1]))
            scale, bias = (graph.add("Reshape", name, last) for name in ("scale", "bias"))
            if p["use_mean"]:
                options = {"axis": axis, "epsilon": p["epsilon"]}
                return graph.add("LayerNormalization", x, scale, bias, **options)
            square = graph.add("ReduceMean", graph.add("Mul", x, x), last, keepdims=1)
            epsilon = graph.number(p["epsilon"], dtype)
            root = graph.add("Sqrt", graph.add("Add", square, epsilon))
            return graph.add("Add", graph.add("Mul", graph.add("Div", x, root), "scale"), "bias")

        def swish(graph: Graph, x: str) -> str:
            return graph.add("Mul", x, graph.add("Sigmoid", x))

        return {
            "softmax": lambda graph, x: graph.add("Softmax", x, axis=axis),
            "hardmax": lambda graph, x: graph.add("Hardmax", x, axis=axis),
            "mean_variance_normalization": layer,
            "parameterized_relu": lambda graph, x: graph.add("PRelu", x, "slope"),
            "relu_grad": lambda graph, x: gradient_where(
                graph, graph.add("Greater", x, graph.number(0, dtype))
            ),
            "clip_grad": clip_grad,
            "swish": swish,
            "hard_swish": lambda graph, x: graph.add("HardSwish", x),
        }

    def log_softmax(self, problem: Problem) -> Iterator[Candidate]:
        """Yield LogSoftmax for one axis; else ReduceLogSumExp and Sub."""
        axes = problem.in_memory_order().arguments["axes"]

        def formula(graph: Graph, x: str) -> str:
            if len(axes) == 1:
                return graph.add("LogSoftmax", x, axis=axes[0])
            sums = graph.add("ReduceLogSumExp", x, graph.constant(np.array(axes)), keepdims=1)
            return graph.add("Sub", x, sums)

        yield from self.run(problem, formula)

    def prepare(
        self, formula: Formula, view: View, inputs: Mapping[str, Array], y: Array
    ) -> tuple[str, dict[str, Any]]:
        """Bind a model to NumPy's memory."""
        try:
            session = self.library.InferenceSession(
                Graph(self.onnx).model(formula, view, inputs, y),
                self.options,
                providers=["CPUExecutionProvider"],
            )
        except Exception as error:
            raise CannotDo(str(error).strip().splitlines()[0]) from error
        binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        binding.bind_output("y", "cpu", 0, y.dtype, y.shape, y.ctypes.data)
        binding.kept = (inputs, y)  # the binding holds addresses, not references
        return "run(binding)", {"run": session.run_with_iobinding, "binding": binding}


class Graph:
    """Builds an ONNX graph, whose values are known by their names."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        name = f"value{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def cast(self, x: str, dtype: np.dtype[Any]) -> str:
        """Add a conversion."""
        return self.add("Cast", x, to=self.onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def constant(self, array: Array) -> str:
        """Add a constant."""
        name = f"constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def number(self, value: float, dtype: np.dtype[Any]) -> str:
        """Add a constant that is one number."""
        return self.constant(np.array(value, dtype))

    def view(self, view: View, x: str, shape: tuple[int, ...]) -> str:
        """Add the nodes of a view."""
        if view.slices:
            starts, ends, steps = view.ranges(shape)
            parts = (starts, ends, np.arange(len(shape)), steps)
            x = self.add("Slice", x, *map(self.constant, parts))
        if view.axes:
            x = self.add("Transpose", x, perm=view.axes)
        if view.shape:
            x = self.add("Expand", x, self.constant(np.array(view.shape)))
        return x

    def model(
        self, formula: Formula, view: View, inputs: Mapping[str, Array], output: Array
    ) -> bytes:
        """Return the model of a formula on a view of the input ``x``."""
        helper = self.onnx.helper
        result = formula(self, self.view(view, "x", inputs["x"].shape))
        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        described = [self.described(name, array) for name, array in inputs.items()]
        outputs = [self.described("y", output)]
        graph = helper.make_graph(self.nodes, "cell", described, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        model.ir_version = 9  # one that older versions of the runtime read, too
        serialized: bytes = model.SerializeToString()
        return serialized

    def described(self, name: str, array: Array) -> Any:
        """Return the type and shape of an input or output."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        return self.onnx.helper.make_tensor_value_info(name, kind, array.shape)


Formula = Callable[[Graph, str], str]
