"""JAX: a compiled function, also with an output buffer that it may overwrite."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from dmlops._bench.peers.base import Candidate, Peer
from dmlops._bench.problem import PARAMETERS, Array, Problem

Formula = Callable[..., Any]


class Jax(Peer):
    """Functions compiled just in time for the CPU; a strided view is part of the function."""

    module = "jax"

    def __init__(self, threads: int) -> None:
        # XLA reads the flags when it starts, and sizes its pool by the process's affinity.
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        if threads == 1:
            os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
        super().__init__(threads)

    def set_up(self) -> None:
        """Enable 64-bit integers."""
        self.numpy = import_module("jax.numpy")
        self.library.config.update("jax_enable_x64", True)

    def clip(self, problem: Problem) -> Iterator[Candidate]:
        """Yield jnp.clip; with a scale, in float32 for integers."""
        p, jnp, dtype = problem.arguments, self.numpy, problem.base.dtype

        def formula(x: Any) -> Any:
            if "scale" not in p:
                return jnp.clip(x, p["min"], p["max"])
            x = x if dtype.kind == "f" else x.astype(np.float32)
            return jnp.clip(x * p["scale"] + p["bias"], p["min"], p["max"]).astype(dtype)

        yield from self.run(problem, formula)

    def hard_sigmoid(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the formula, which the compiler fuses."""
        p, jnp = problem.arguments, self.numpy
        yield from self.run(problem, lambda x: jnp.clip(p["alpha"] * x + p["beta"], 0, 1))

    def batch_normalization(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the formula, which the compiler fuses."""
        p, jnp = problem.in_memory_order().arguments, self.numpy

        def formula(x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
            y = (x - mean) * (scale * self.library.lax.rsqrt(variance + p["epsilon"])) + bias
            return jnp.maximum(y, 0) if p["relu"] else y

        yield from self.run(problem, formula, *(p[name] for name in PARAMETERS))

    def log_softmax(self, problem: Problem) -> Iterator[Candidate]:
        """Yield jax.nn.log_softmax."""
        axes, nn = problem.in_memory_order().arguments["axes"], import_module("jax.nn")
        yield from self.run(problem, lambda x: nn.log_softmax(x, axes))

    def candidates(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the compiled formula, by the methods above or from `formulas`."""
        formulas = self.formulas(problem.arguments)
        if problem.operator in formulas:
            arrays = [each for each in problem.arguments.values() if isinstance(each, np.ndarray)]
            yield from self.run(problem, formulas[problem.operator], *arrays)
        else:
            yield from super().candidates(problem)

    def formulas(self, p: dict[str, Any]) -> dict[str, Formula]:
        """Return formulas of the input and the arrays of a problem, in its order."""
        jnp, lax, axes = self.numpy, self.library.lax, p.get("axes")

        def normalization(x: Any, scale: Any, bias: Any) -> Any:
            wide = x.astype(np.float32)
            mean = wide.mean(axes, keepdims=True) if p["use_mean"] else 0
            variance = jnp.square(wide - mean).mean(axes, keepdims=True)
            y = (wide - mean) * lax.rsqrt(variance + p["epsilon"]) * scale + bias
            return y.astype(x.dtype), mean, variance

        def gradients(x: Any, arrays: Any) -> Any:
            gradient, mean, variance, scale = arrays
            factor = lax.rsqrt(variance.astype(np.float32) + p["epsilon"])
            normalized, wide = (x - mean) * factor, gradient.astype(np.float32)
            sums = wide.sum(axes, keepdims=True), (wide * normalized).sum(axes, keepdims=True)
            return normalized, wide, factor * scale, *sums

        def gradient_alone(x: Any, *arrays: Any) -> Any:
            _, wide, factor, *sums = gradients(x, arrays)
            return (wide * factor).astype(x.dtype), *sums

        def training_gradient(x: Any, *arrays: Any) -> Any:
            normalized, wide, factor, bias, scale = gradients(x, arrays)
            count = x.size // bias.size
            y = factor * (wide - bias / count - normalized * (scale / count))
            return y.astype(x.dtype), scale, bias

        def hardmax(x: Any) -> Any:
            axis = p["axes"][0]
            nn = import_module("jax.nn")
            return nn.one_hot(x.argmax(axis), x.shape[axis], axis=axis, dtype=x.dtype)

        return {
            "softmax": lambda x: import_module("jax.nn").softmax(x, axes),
            "hardmax": hardmax,
            "mean_variance_normalization": lambda *arrays: normalization(*arrays)[0],
            "batch_normalization_training": normalization,
            "batch_normalization_grad": gradient_alone,
            "batch_normalization_training_grad": training_gradient,
            "parameterized_relu": lambda x, slope: jnp.where(x < 0, slope * x, x),
            "relu_grad": lambda x, gradient: jnp.where(x > 0, gradient, 0),
            "clip_grad": lambda x, gradient: jnp.where(
                (x > p["min"]) & (x < p["max"]), gradient, 0
            ),
            "swish": lambda x: import_module("jax.nn").silu(x),
            "hard_swish": lambda x: x * jnp.clip(p["alpha"] * x + p["beta"], 0, 1),
        }

    def run(self, problem: Problem, formula: Formula, *parameters: Array) -> Iterator[Candidate]:
        """Yield the compiled function, with a new output and with a donated buffer."""
        dense, jnp = problem.in_memory_order(), self.numpy
        view = dense.view

        def whole(x: Any, *rest: Any) -> Any:
            x = x[view.slices] if view.slices else x
            x = x.transpose(view.axes) if view.axes else x
            return formula(jnp.broadcast_to(x, view.shape) if view.shape else x, *rest)

        inputs = [jnp.asarray(array) for array in (dense.base, *parameters)]
        axes = problem.output_axes

        def result(y: Any) -> Array:
            array = np.asarray(y[0] if isinstance(y, tuple) else y)
            return array.transpose(axes) if axes else array

        names = {f"x{i}": array for i, array in enumerate(inputs)}
        arguments = ", ".join(names)
        names["f"] = f = self.library.jit(whole)
        names["wait"] = self.library.block_until_ready
        yield Candidate(f"wait(f({arguments}))", names, lambda: result(f(*inputs)))

        if isinstance(self.library.eval_shape(whole, *inputs), tuple):
            return
        g = self.library.jit(lambda _, *rest: whole(*rest), donate_argnums=0, keep_unused=True)
        last = [jnp.asarray(dense.output_base)]
        statement = f"last[0] = g(last[0], {arguments}).block_until_ready()"
        yield Candidate(statement, names | {"g": g, "last": last}, lambda: result(last[0]))
