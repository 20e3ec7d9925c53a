"""dmlops and the peers as functions of an operator's tensors and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
Results = Array | tuple[Array, ...]


class Dmlops:
    """The functions of dmlops."""

    def __init__(self) -> None:
        self.version = dmlops.__version__

    def __call__(self, operator: str, inputs: Sequence[Array], parameters: Numbers) -> Results:
        """Call the function of that name."""
        numbers = dict(parameters)
        if "scale" in numbers:
            pair = dmlops.ScaleBias(numbers.pop("scale"), numbers.pop("bias"))
            x = inputs[0]
            return dmlops.clip(x, numbers["min"], numbers["max"], scale_bias=pair)
        result: Results = getattr(dmlops, operator)(*inputs, **numbers)
        return result


def _numpy_log_softmax(x: Array) -> Array:
    difference = x - x.max(axis=-1, keepdims=True)
    return np.asarray(difference - np.log(np.exp(difference).sum(axis=-1, keepdims=True)))


def _numpy_softmax(x: Array) -> Array:
    terms = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(terms / terms.sum(axis=-1, keepdims=True))


def _numpy_hardmax(x: Array) -> Array:
    return np.asarray(np.arange(x.shape[-1]) == x.argmax(axis=-1)[..., None])


def _numpy_mvn(x: Array, scale: Array, bias: Array, epsilon: Any, use_mean: Any = True) -> Array:
    centered = x - x.mean(axis=-1, keepdims=True) if use_mean else x
    variance = np.square(centered).mean(axis=-1, keepdims=True)
    return np.asarray(centered / np.sqrt(variance + epsilon) * scale + bias)


def _numpy_training(x: Array, scale: Array, bias: Array, epsilon: Any) -> tuple[Array, ...]:
    mean, variance = x.mean(axis=0, keepdims=True), x.var(axis=0, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * scale + bias, mean, variance


def _numpy_grad(
    x: Array, dy: Array, mean: Array, variance: Array, scale: Array, *, epsilon: Any
) -> tuple[Array, ...]:
    inverse = 1 / np.sqrt(variance + epsilon)
    of_scale = (dy * (x - mean) * inverse).sum(axis=0, keepdims=True)
    return dy * scale * inverse, of_scale, dy.sum(axis=0, keepdims=True)


def _numpy_training_grad(
    x: Array, dy: Array, mean: Array, variance: Array, scale: Array, *, epsilon: Any
) -> tuple[Array, ...]:
    _, of_scale, of_bias = _numpy_grad(x, dy, mean, variance, scale, epsilon=epsilon)
    inverse = 1 / np.sqrt(variance + epsilon)
    normalized, count = (x - mean) * inverse, np.float32(len(x))
    return (
        scale * inverse * (dy - of_bias / count - normalized * of_scale / count),
        of_scale,
        of_bias,
    )


NUMPY: dict[str, Callable[..., Any]] = {
    **{name: formula for name, formula in ELEMENTWISE.items() if name != "gelu"},
    "batch_normalization": lambda x, m, v, s, b, epsilon: (x - m) / np.sqrt(v + epsilon) * s + b,
    "batch_normalization_grad": _numpy_grad,
    "batch_normalization_training": _numpy_training,
    "batch_normalization_training_grad": _numpy_training_grad,
    "hardmax": _numpy_hardmax,
    "log_softmax": _numpy_log_softmax,
    "mean_variance_normalization": _numpy_mvn,
    "softmax": _numpy_softmax,
    "parametric_softplus": lambda x, alpha, beta: alpha * np.logaddexp(0, beta * x),
    "softplus": lambda x, steepness: np.logaddexp(0, steepness * x) / steepness,
}


class NumPy:
    """The formulas as users write them in float32; float16 is converted to float32 and back."""

    def __init__(self) -> None:
        self.version = np.__version__

    def __call__(self, operator: str, inputs: Sequence[Array], parameters: Numbers) -> Results:
        """Compute the formula; it has no error function for gelu."""
        numbers = {name: np.float32(value) for name, value in parameters.items()}
        with np.errstate(all="ignore"):
            result = NUMPY[operator](*(x.astype(np.float32) for x in inputs), **numbers)
            dtype = inputs[0].dtype
            if isinstance(result, tuple):
                return tuple(each.astype(dtype) for each in result)
            return np.asarray(result).astype(dtype)


class Torch:
    """The operators of PyTorch on one thread."""

    def __init__(self) -> None:
        self.torch: Any = import_module("torch")
        self.version = str(self.torch.__version__).partition("+")[0]

    def __call__(self, operator: str, inputs: Sequence[Array], parameters: Numbers) -> Results:
        """Call the function of PyTorch that has these parameters, or KeyError."""
        tensors = [self.torch.from_numpy(x) for x in inputs]
        with self.torch.no_grad():
            result = self.functions()[operator](*tensors, **parameters)
            if not isinstance(result, tuple):
                array: Array = result.numpy()
                return array
            return tuple(
                each.numpy().reshape(1, -1) if i else each.numpy() for i, each in enumerate(result)
            )

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

        def mvn(x: Any, scale: Any, bias: Any, epsilon: float, use_mean: bool = True) -> Any:
            scale, bias = scale.flatten(), bias.flatten()
            if not use_mean:
                return nn.rms_norm(x, scale.shape, scale, epsilon) + bias
            return nn.layer_norm(x, scale.shape, scale, bias, epsilon)

        def training(x: Any, scale: Any, bias: Any, epsilon: float) -> Any:
            y, mean, inverse = torch.native_batch_norm(
                x, scale.flatten(), bias.flatten(), None, None, True, 0.0, epsilon
            )
            return y, mean, 1 / inverse**2 - epsilon

        def differentiate(is_training: bool, *tensors: Any, epsilon: float) -> Any:
            x, dy, mean, variance, scale = tensors
            mean, variance, scale = (each.flatten() for each in (mean, variance, scale))
            saved = (mean, 1 / torch.sqrt(variance + epsilon))
            return torch.ops.aten.native_batch_norm_backward(
                dy, x, scale, mean, variance, *saved, is_training, epsilon, [True] * 3
            )

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
            "batch_normalization_grad": partial(differentiate, False),
            "batch_normalization_training": training,
            "batch_normalization_training_grad": partial(differentiate, True),
            "celu": nn.celu,
            "clip": clip,
            "clip_grad": lambda x, dy, min, max: torch.ops.aten.hardtanh_backward(dy, x, min, max),
            "elu": nn.elu,
            "gelu": nn.gelu,
            "hard_swish": hard_swish,
            "identity": lambda x: x,
            "leaky_relu": lambda x, alpha: nn.leaky_relu(x, negative_slope=alpha),
            "linear": lambda x, alpha, beta: torch.add(
                torch.tensor(beta, dtype=x.dtype), x, alpha=alpha
            ),
            "log_softmax": lambda x: nn.log_softmax(x, -1),
            "mean_variance_normalization": mvn,
            "relu": nn.relu,
            "relu_grad": lambda x, dy: torch.ops.aten.threshold_backward(dy, x, 0),
            "scaled_elu": scaled_elu,
            "scaled_tanh": lambda x, alpha, beta: alpha * torch.tanh(beta * x),
            "shrink": shrink,
            "sigmoid": torch.sigmoid,
            "softmax": lambda x: nn.softmax(x, -1),
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
        "hardmax": ("Hardmax", {}),
        "log_softmax": ("LogSoftmax", {}),
        "softmax": ("Softmax", {}),
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
        if operator == "mean_variance_normalization":
            if not p.get("use_mean", True):
                raise KeyError("no bias")
            s, b = (graph.constant(t.ravel()) for t in inputs[1:])
            return graph.add("LayerNormalization", x, s, b, epsilon=p["epsilon"])
        if operator == "parameterized_relu":
            return graph.add("PRelu", x, graph.constant(inputs[1]))
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
        if operator.endswith("max"):
            attributes["axis"] = -1
        return graph.add(kind, x, **attributes)


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
