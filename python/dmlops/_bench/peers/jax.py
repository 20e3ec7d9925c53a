"""JAX: a compiled function, also with an output buffer that it may overwrite."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from dmlops._bench.peers.base import PARAMETERS, Array, Peer, Way
from dmlops._bench.problem import Problem

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

    def clip(self, problem: Problem) -> Iterator[Way]:
        """Yield jnp.clip; with a scale, in float32 for integers."""
        p, jnp, dtype = problem.arguments, self.numpy, problem.base.dtype

        def formula(x: Any) -> Any:
            if "scale" not in p:
                return jnp.clip(x, p["min"], p["max"])
            x = x if dtype.kind == "f" else x.astype(np.float32)
            return jnp.clip(x * p["scale"] + p["bias"], p["min"], p["max"]).astype(dtype)

        yield from self.run(problem, formula)

    def hard_sigmoid(self, problem: Problem) -> Iterator[Way]:
        """Yield the formula, which the compiler fuses."""
        p, jnp = problem.arguments, self.numpy
        yield from self.run(problem, lambda x: jnp.clip(p["alpha"] * x + p["beta"], 0, 1))

    def batch_normalization(self, problem: Problem) -> Iterator[Way]:
        """Yield the formula, which the compiler fuses."""
        p, jnp = problem.in_memory_order().arguments, self.numpy

        def formula(x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
            y = (x - mean) * (scale * self.library.lax.rsqrt(variance + p["epsilon"])) + bias
            return jnp.maximum(y, 0) if p["relu"] else y

        yield from self.run(problem, formula, *(p[name] for name in PARAMETERS))

    def log_softmax(self, problem: Problem) -> Iterator[Way]:
        """Yield jax.nn.log_softmax."""
        axes, nn = problem.in_memory_order().arguments["axes"], import_module("jax.nn")
        yield from self.run(problem, lambda x: nn.log_softmax(x, axes))

    def run(self, problem: Problem, formula: Formula, *parameters: Array) -> Iterator[Way]:
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
            array = np.asarray(y)
            return array.transpose(axes) if axes else array

        names = {f"x{i}": array for i, array in enumerate(inputs)}
        arguments = ", ".join(names)
        names["f"] = f = self.library.jit(whole)
        yield Way(f"f({arguments}).block_until_ready()", names, lambda: result(f(*inputs)))

        g = self.library.jit(lambda _, *rest: whole(*rest), donate_argnums=0, keep_unused=True)
        last = [jnp.asarray(dense.output_base)]
        statement = f"last[0] = g(last[0], {arguments}).block_until_ready()"
        yield Way(statement, names | {"g": g, "last": last}, lambda: result(last[0]))
