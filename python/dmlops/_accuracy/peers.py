"""dmlops and the peers as functions of an operator's tensors and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

import dmlops
from dmlops._accuracy.exact import ELEMENTWISE, Array
from dmlops._bench.peers.onnxruntime import Graph
from dmlops._bench.problem import View
from dmlops._table import ACTIVATIONS, ROWS

OURS = "dmlops"
Numbers = Mapping[str, float]


class Dmlops:
    """The functions of dmlops."""

    def __init__(self) -> None:
        self.version = dmlops.__version__

    def __call__(self, operator: str, inputs: Sequence[Array], parameters: Numbers) -> Array:
        """Call the function of that name."""
        numbers = dict(parameters)
        if "scale" in numbers:
            pair = dmlops.ScaleBias(numbers.pop("scale"), numbers.pop("bias"))
            x = inputs[0]
            return dmlops.clip(x, numbers["min"], numbers["max"], scale_bias=pair)
        result: Array = getattr(dmlops, operator)(*inputs, **numbers)
        return result


def _numpy_log_softmax(x: Array) -> Array:
    difference = x - x.max(axis=-1, keepdims=True)
    return np.asarray(difference - np.log(np.exp(difference).sum(axis=-1, keepdims=True)))


NUMPY: dict[str, Callable[..., Any]] = {
    **{name: formula for name, formula in ELEMENTWISE.items() if name != "gelu"},
    "batch_normalization": lambda x, m, v, s, b, epsilon: (x - m) / np.sqrt(v + epsilon) * s + b,
    "log_softmax": _numpy_log_softmax,
    "parametric_softplus": lambda x, alpha, beta: alpha * np.logaddexp(0, beta * x),
    "softplus": lambda x, steepness: np.logaddexp(0, steepness * x) / steepness,
}


class NumPy:
    """The formulas as users write them in float32; float16 is converted to float32 and back."""

    def __init__(self) -> None:
        self.version = np.__version__

    def __call__(self, operator: str, inputs: Sequence[Array], parameters: Numbers) -> Array:
        """Compute the formula; it has no error function for gelu."""
        numbers = {name: np.float32(value) for name, value in parameters.items()}
        with np.errstate(all="ignore"):
            result = NUMPY[operator](*(x.astype(np.float32) for x in inputs), **numbers)
            return np.asarray(result).astype(inputs[0].dtype)


class Torch:
    """The operators of PyTorch on one thread."""

    def __init__(self) -> None:
        self.torch: Any = import_module("torch")
        self.version = str(self.torch.__version__).partition("+")[0]

    def __call__(self, operator: str, inputs: Sequence[Array], parameters: Numbers) -> Array:
        """Call the function of PyTorch that has these parameters, or KeyError."""
        tensors = [self.torch.from_numpy(x) for x in inputs]
        with self.torch.no_grad():
            result: Array = self.functions()[operator](*tensors, **parameters).numpy()
        return result

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions by DirectML's names."""
        torch, nn = self.torch, import_module("torch.nn.functional")

        def clip(x: Any, min: float, max: float, scale: float = 1, bias: float = 0) -> Any:
            if scale == 1 and bias == 0:
                return torch.clamp(x, min, max)
            scaled = torch.add(torch.tensor(bias, dtype=x.dtype), x, alpha=scale)
            return torch.clamp(scaled, min, max)

        def normalization(x: Any, *tensors: Any, epsilon: float) -> Any:
            return nn.batch_norm(x, *(t.flatten() for t in tensors), eps=epsilon)

        def scaled_elu(x: Any, alpha: float, gamma: float) -> Any:
            return known(nn.selu, round(alpha, 4) == 1.6733)(x)

        def shrink(x: Any, bias: float, threshold: float) -> Any:
            return known(nn.softshrink, bias == threshold)(x, bias)

        def hard_swish(x: Any, alpha: float, beta: float) -> Any:
            return known(nn.hardswish, (round(alpha, 4), beta) == (0.1667, 0.5))(x)

        def swish(x: Any, sigmoid_input_scale: float) -> Any:
            return known(nn.silu, sigmoid_input_scale == 1)(x)

        return {
            "batch_normalization": normalization,
            "celu": nn.celu,
            "clip": clip,
            "elu": nn.elu,
            "gelu": nn.gelu,
            "hard_swish": hard_swish,
            "identity": lambda x: x,
            "leaky_relu": lambda x, alpha: nn.leaky_relu(x, negative_slope=alpha),
            "linear": lambda x, alpha, beta: torch.add(
                torch.tensor(beta, dtype=x.dtype), x, alpha=alpha
            ),
            "log_softmax": lambda x: nn.log_softmax(x, -1),
            "relu": nn.relu,
            "scaled_elu": scaled_elu,
            "scaled_tanh": lambda x, alpha, beta: alpha * torch.tanh(beta * x),
            "shrink": shrink,
            "sigmoid": torch.sigmoid,
            "softplus": lambda x, steepness: nn.softplus(x, beta=steepness),
            "softsign": nn.softsign,
            "swish": swish,
            "tanh": torch.tanh,
            "thresholded_relu": lambda x, alpha: nn.threshold(x, alpha, 0.0),
        }


def known(function: Callable[..., Any], fits: bool) -> Callable[..., Any]:
    """Return the function if it has these parameters."""
    if not fits:
        raise KeyError("other parameters")
    return function


class OnnxRuntime:
    """Models of one operator for the CPU execution provider."""

    # ONNX's operator, and its attributes for our parameters.
    OPERATORS: Mapping[str, tuple[str, Mapping[str, str]]] = {
        "gelu": ("Gelu", {}),
        "identity": ("Identity", {}),
        "log_softmax": ("LogSoftmax", {}),
        **{row.function: (row.onnx, row.onnx_attributes) for row in ACTIVATIONS if row.onnx},
    }

    def __init__(self) -> None:
        self.onnx: Any = import_module("onnx")
        self.runtime: Any = import_module("onnxruntime")
        self.version = str(self.runtime.__version__)
        self.options = self.runtime.SessionOptions()
        self.options.log_severity_level = 4

    def __call__(self, operator: str, inputs: Sequence[Array], parameters: Numbers) -> Array:
        """Build a model and run it; KeyError, or the runtime's error, where it has none."""
        graph = Graph(self.onnx)
        model = graph.model(
            lambda graph, x: self.node(graph, x, operator, inputs, parameters),
            View(),
            {"x": inputs[0]},
            inputs[0],
        )
        session = self.runtime.InferenceSession(
            model, self.options, providers=["CPUExecutionProvider"]
        )
        result: Array = session.run(None, {"x": inputs[0]})[0]
        return result

    def node(self, graph: Graph, x: str, operator: str, inputs: Sequence[Array], p: Numbers) -> str:
        """Add the operator."""
        dtype = inputs[0].dtype
        if operator == "batch_normalization":
            m, v, s, b = (graph.constant(t.ravel()) for t in inputs[1:])
            return graph.add("BatchNormalization", x, s, b, m, v, epsilon=p["epsilon"])
        if operator in ("clip", "linear"):
            scale, bias = (p.get(name) for name in ("scale", "bias"))
            scale, bias = (p["alpha"], p["beta"]) if operator == "linear" else (scale, bias)
            if scale is not None and bias is not None:
                x = graph.add("Mul", x, graph.number(scale, dtype))
                x = graph.add("Add", x, graph.number(bias, dtype))
            if operator == "linear":
                return x
            return graph.add("Clip", x, *(graph.number(p[name], dtype) for name in ("min", "max")))
        kind, names = self.OPERATORS[operator]
        if any(ROWS[operator].defaults[name] != p[name] for name in p.keys() - names.keys()):
            raise KeyError("other parameters")
        attributes: dict[str, Any] = {names[name]: float(p[name]) for name in names}
        if operator == "log_softmax":
            attributes["axis"] = -1
        return graph.add(kind, x, **attributes)


Peer = Callable[[str, Sequence[Array], Numbers], Array]
PEERS: Mapping[str, Callable[[], Any]] = {
    "numpy": NumPy,
    "torch": Torch,
    "onnxruntime": OnnxRuntime,
}


def load(names: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return dmlops and the installed peers, and for each missing one the reason."""
    loaded: dict[str, Any] = {OURS: Dmlops()}
    missing: dict[str, str] = {}
    for name in names:
        try:
            loaded[name] = PEERS[name]()
        except ImportError as error:
            missing[name] = f"not installed ({error.name})"
    return loaded, missing
