"""Compares batch normalization with a fused activation to two calls, and to the peers.

python bench/fused.py [threads]

Prints a table in Markdown: minima of interleaved rounds, in microseconds. Needs PyTorch and ONNX
Runtime (the extra `bench`). All competitors write preallocated memory: PyTorch by the operators'
`out` arguments, with the activation in place; ONNX Runtime runs a model with I/O binding.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnx import TensorProto, helper

import dmlops

SHAPE, CHANNELS, EPSILON, ROUNDS = (32, 64, 56, 56), 64, 1e-5, 15
ATEN = torch.ops.aten
# The name, the descriptor, PyTorch's function, called with (x, out=x), and ONNX's operator.
ACTIVATIONS: list[tuple[str, Any, Any, str]] = [
    ("relu", dmlops.ActivationReluOperatorDesc(), ATEN.relu.out, "Relu"),
    ("elu", dmlops.ActivationEluOperatorDesc(), ATEN.elu.out, "Elu"),
    ("sigmoid", dmlops.ActivationSigmoidOperatorDesc(), ATEN.sigmoid.out, "Sigmoid"),
    ("tanh", dmlops.ActivationTanhOperatorDesc(), ATEN.tanh.out, "Tanh"),
    ("gelu", dmlops.ActivationGeluOperatorDesc(), ATEN.gelu.out, "Gelu"),
    ("softplus", dmlops.ActivationSoftplusOperatorDesc(), ATEN.softplus.out, "Softplus"),
]


def onnx_session(activation: str, threads: int) -> ort.InferenceSession:
    """Return a session of batch normalization and the activation."""
    operands = {"x": SHAPE, **dict.fromkeys("sbmv", (CHANNELS,))}
    graph = helper.make_graph(
        [
            helper.make_node("BatchNormalization", list(operands), ["y"], epsilon=EPSILON),
            helper.make_node(activation, ["y"], ["z"]),
        ],
        "fused",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in operands.items()],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, SHAPE)],
    )
    opset = helper.make_opsetid("", 20)
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def make_competitors(
    name: str, desc: Any, of_torch: Any, of_onnx: str, threads: int
) -> dict[str, Any]:
    """Return the competitors as functions of the same input."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal(SHAPE).astype(np.float32)
    mean, variance, scale, bias = (
        generator.uniform(0.5, 1.5, (1, CHANNELS, 1, 1)).astype(np.float32) for _ in range(4)
    )
    y, function = np.empty_like(x), getattr(dmlops, name)

    def fused() -> None:
        dmlops.batch_normalization(
            x, mean, variance, scale, bias, EPSILON, fused_activation=desc, out=y
        )

    def two_steps() -> None:
        dmlops.batch_normalization(x, mean, variance, scale, bias, EPSILON, out=y)
        function(y, out=y)

    theirs = [x, *(p.ravel() for p in (scale, bias, mean, variance))]
    tensors = [torch.from_numpy(array) for array in theirs]
    result, none = torch.empty(SHAPE), [torch.empty(0), torch.empty(0)]

    def pytorch() -> None:
        with torch.inference_mode():
            ATEN.native_batch_norm.out(
                *tensors, False, 0.0, EPSILON, out=result, save_mean=none[0], save_invstd=none[1]
            )
            of_torch(result, out=result)

    session = onnx_session(of_onnx, threads)
    binding = session.io_binding()
    for key, array in zip("xsbmv", theirs, strict=True):
        binding.bind_cpu_input(key, array)
    binding.bind_ortvalue_output("z", ort.OrtValue.ortvalue_from_numpy(np.empty_like(x)))

    def onnxruntime() -> None:
        session.run_with_iobinding(binding)

    return {"fused": fused, "two": two_steps, "torch": pytorch, "ort": onnxruntime}


def minima(competitors: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Return the minimum times in microseconds, with a warm-up before each turn."""
    best = dict.fromkeys(competitors, float("inf"))
    for _ in range(ROUNDS):
        for name in random.sample(list(competitors), len(competitors)):
            competitors[name]()
            for _ in range(2):
                begin = time.perf_counter()
                competitors[name]()
                best[name] = min(best[name], 1e6 * (time.perf_counter() - begin))
            time.sleep(0.002)  # lets spinning threads go to sleep
    return best


def main() -> None:
    """Print the table."""
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    dmlops.set_num_threads(threads)
    torch.set_num_threads(threads)
    for name, desc, of_torch, of_onnx in ACTIVATIONS:
        t = minima(make_competitors(name, desc, of_torch, of_onnx, threads))
        ratios = t["two"] / t["fused"], min(t["torch"], t["ort"]) / t["fused"]
        cells = [f"{value:.0f}" for value in t.values()] + [f"{ratio:.2f}" for ratio in ratios]
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
