"""OpenVINO: a compiled model of the operator, whose tensors are NumPy's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from dmlops._bench.peers.base import Candidate, axis_second, channel_axis
from dmlops._bench.peers.graph_peer import GraphPeer
from dmlops._bench.problem import PARAMETERS, Array, Problem, View

Formula = Callable[[Any, Mapping[str, Any]], Any]  # from the graph's input nodes to its result


class OpenVino(GraphPeer):
    """The CPU plugin."""

    module = "openvino"

    def set_up(self) -> None:
        """Find the operators, and make the options of all models."""
        self.ops = import_module("openvino.opset13")
        self.core = self.library.Core()
        self.options = {"INFERENCE_NUM_THREADS": self.threads, "PERFORMANCE_HINT": "LATENCY"}
        self.options |= {"NUM_STREAMS": 1, "ENABLE_CPU_PINNING": False}

    def clip(self, problem: Problem) -> Iterator[Candidate]:
        """Yield clamp, after multiply and add if there is a scale."""
        p, ops, dtype = problem.arguments, self.ops, problem.base.dtype

        def formula(x: Any, _: Mapping[str, Any]) -> Any:
            if "scale" not in p:
                return ops.clamp(x, float(p["min"]), float(p["max"]))
            number = dtype if dtype.kind == "f" else np.dtype(np.float32)
            scale, bias = (np.array(p[name], number) for name in ("scale", "bias"))
            x = x if number == dtype else ops.convert(x, "f32")
            y = ops.clamp(ops.add(ops.multiply(x, scale), bias), float(p["min"]), float(p["max"]))
            return y if number == dtype else ops.convert(y, f"{dtype.kind}{8 * dtype.itemsize}")

        yield from self.run(problem, formula)

    def hard_sigmoid(self, problem: Problem) -> Iterator[Candidate]:
        """Yield hard_sigmoid."""
        dtype = problem.base.dtype
        alpha, beta = (np.array(problem.arguments[name], dtype) for name in ("alpha", "beta"))
        yield from self.run(problem, lambda x, _: self.ops.hard_sigmoid(x, alpha, beta))

    def batch_normalization(self, problem: Problem) -> Iterator[Candidate]:
        """Yield batch_norm_inference for parameters of one axis, put second; else the formula."""
        dense, ops = problem.in_memory_order(), self.ops
        p, axis = dense.arguments, channel_axis(dense.arguments)
        shape = axis_second(dense.output_base.shape, axis or 0)

        def operator(x: Any, _: Mapping[str, Any]) -> Any:
            x = x if axis == 1 else ops.reshape(x, np.array(shape), False)
            m, v, s, b = (ops.constant(p[name].ravel()) for name in PARAMETERS)
            y = ops.batch_norm_inference(x, s, b, m, v, p["epsilon"])
            return ops.relu(y) if p["relu"] else y

        def formula(x: Any, nodes: Mapping[str, Any]) -> Any:
            epsilon = np.array(p["epsilon"], problem.base.dtype)
            deviation = ops.sqrt(ops.add(nodes["variance"], epsilon))
            y = ops.multiply(ops.subtract(x, nodes["mean"]), ops.divide(nodes["scale"], deviation))
            y = ops.add(y, nodes["bias"])
            return ops.relu(y) if p["relu"] else y

        if axis is not None:
            yield from self.run(problem, operator, shape=shape)
        else:
            yield from self.run(problem, formula, {name: p[name] for name in PARAMETERS})

    def formulas(self, p: Mapping[str, Any], dtype: np.dtype[Any]) -> dict[str, Formula]:
        """Return formulas of the input and of the nodes of a problem's arrays."""
        ops, axes = self.ops, p.get("axes", (0,))

        def normalization(x: Any, nodes: Mapping[str, Any]) -> Any:
            if p["use_mean"]:
                y = ops.mvn(x, np.array(axes), True, p["epsilon"], "inside_sqrt")
            else:
                square = ops.reduce_mean(ops.multiply(x, x), np.array(axes), True)
                y = ops.divide(x, ops.sqrt(ops.add(square, np.array(p["epsilon"], dtype))))
            return ops.add(ops.multiply(y, nodes["scale"]), nodes["bias"])

        def gradient_where(condition: Any, nodes: Mapping[str, Any]) -> Any:
            return ops.select(condition, nodes["gradient"], np.array(0, dtype))

        def clip_grad(x: Any, nodes: Mapping[str, Any]) -> Any:
            above = ops.greater(x, np.array(p["min"], dtype))
            below = ops.less(x, np.array(p["max"], dtype))
            return gradient_where(ops.logical_and(above, below), nodes)

        return {
            "softmax": lambda x, _: ops.softmax(x, axes[-1]),
            "mean_variance_normalization": normalization,
            "parameterized_relu": lambda x, nodes: ops.prelu(x, nodes["slope"]),
            "relu_grad": lambda x, nodes: gradient_where(ops.greater(x, np.array(0, dtype)), nodes),
            "clip_grad": clip_grad,
            "swish": lambda x, _: ops.swish(x),
            "hard_swish": lambda x, _: ops.hswish(x),
        }

    def log_softmax(self, problem: Problem) -> Iterator[Candidate]:
        """Yield log_softmax for one axis; else the formula."""
        axes, ops = problem.in_memory_order().arguments["axes"], self.ops

        def formula(x: Any, _: Mapping[str, Any]) -> Any:
            if len(axes) == 1:
                return ops.log_softmax(x, axes[0])
            x = ops.subtract(x, ops.reduce_max(x, np.array(axes), keep_dims=True))
            sums = ops.reduce_sum(ops.exp(x), np.array(axes), keep_dims=True)
            return ops.subtract(x, ops.log(sums))

        yield from self.run(problem, formula)

    def prepare(
        self, formula: Formula, view: View, inputs: Mapping[str, Array], y: Array
    ) -> tuple[str, dict[str, Any]]:
        """Compile a model, and set the tensors of a request."""
        nodes = {
            name: self.ops.parameter(array.shape, array.dtype, name)
            for name, array in inputs.items()
        }
        result = formula(self.view(view, nodes["x"], inputs["x"].shape), nodes)
        model = self.library.Model([result], list(nodes.values()), "cell")
        # By default the plugin may compute in a lower precision than the model's.
        precision = {"INFERENCE_PRECISION_HINT": "f16" if y.dtype == np.float16 else "f32"}
        try:
            compiled = self.core.compile_model(model, "CPU", self.options | precision)
        except RuntimeError:  # no float16 arithmetic on this processor
            precision = {"INFERENCE_PRECISION_HINT": "f32"}
            compiled = self.core.compile_model(model, "CPU", self.options | precision)
        request = compiled.create_infer_request()
        for index, array in enumerate(inputs.values()):
            request.set_input_tensor(index, self.library.Tensor(array, shared_memory=True))
        request.set_output_tensor(0, self.library.Tensor(y, shared_memory=True))
        return "request.infer(share_outputs=True)", {"request": request}

    def view(self, view: View, x: Any, shape: tuple[int, ...]) -> Any:
        """Add the nodes of a view."""
        if view.slices:
            starts, ends, steps = view.ranges(shape)
            x = self.ops.slice(x, starts, ends, steps, np.arange(len(shape)))
        x = self.ops.transpose(x, np.array(view.axes)) if view.axes else x
        return self.ops.broadcast(x, np.array(view.shape)) if view.shape else x
