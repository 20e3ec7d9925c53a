"""NumPy: ufuncs with ``out=``, and for float16 also through float32, whose loops are vectorized."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dmlops._bench.peers.base import Candidate, Peer, float32_like
from dmlops._bench.problem import Array, Problem, parameters

LIMIT = "np.minimum(w, hi, out=w); np.maximum(w, lo, out=w)"

CENTERED = "np.mean(x, axis=axes, keepdims=True, dtype=t, out=m); np.subtract(x, m, out=w)"
VARIANCE = "np.multiply(w, w, out=u); np.mean(u, axis=axes, keepdims=True, out=l)"
SCALED = (
    "np.add(l, epsilon, out=l); np.sqrt(l, out=l); np.divide(w, l, out=w); "
    "np.multiply(w, scale, out=w); np.add(w, bias, out=w)"
)
# w is the result, u of its size; m and l have an element for each group; k and j are boolean.
FORMULAS = {
    "softmax": (
        "np.max(x, axis=axes, keepdims=True, out=m); np.subtract(x, m, out=w); np.exp(w, out=w); "
        "np.sum(w, axis=axes, keepdims=True, out=l); np.divide(w, l, out=w)"
    ),
    "hardmax": (
        "i = np.argmax(x, axis=axes[0], keepdims=True); w.fill(0); "
        "np.put_along_axis(w, i, 1, axes[0])"
    ),
    "mean_variance_normalization": f"{CENTERED}; {VARIANCE}; {SCALED}",
    "batch_normalization_training": f"{CENTERED}; {VARIANCE}; {SCALED}",
    "batch_normalization_grad": (
        "np.add(variance, epsilon, out=l); np.sqrt(l, out=l); "
        "np.subtract(x, mean, out=u); np.divide(u, l, out=u); np.multiply(u, gradient, out=u); "
        "np.sum(u, axis=axes, keepdims=True); np.sum(gradient, axis=axes, keepdims=True, dtype=t); "
        "np.divide(scale, l, out=l); np.multiply(gradient, l, out=w)"
    ),
    "batch_normalization_training_grad": (
        "np.add(variance, epsilon, out=l); np.sqrt(l, out=l); "
        "np.subtract(x, mean, out=u); np.divide(u, l, out=u); np.multiply(u, gradient, out=w); "
        "np.mean(w, axis=axes, keepdims=True, out=m); np.multiply(u, m, out=u); "
        "np.mean(gradient, axis=axes, keepdims=True, dtype=t, out=m); "
        "np.subtract(gradient, m, out=w); np.subtract(w, u, out=w); "
        "np.divide(scale, l, out=l); np.multiply(w, l, out=w)"
    ),
    "parameterized_relu": (
        "np.minimum(x, 0, out=w); np.multiply(w, slope, out=w); np.maximum(x, 0, out=u); "
        "np.add(w, u, out=w)"
    ),
    "relu_grad": "np.greater(x, 0, out=k); np.multiply(gradient, k, out=w)",
    "clip_grad": (
        "np.greater(x, min, out=k); np.less(x, max, out=j); np.logical_and(k, j, out=k); "
        "np.multiply(gradient, k, out=w)"
    ),
    "swish": "np.negative(x, out=u); np.exp(u, out=u); np.add(u, 1, out=u); np.divide(x, u, out=w)",
    "hard_swish": (
        "np.multiply(x, alpha, out=u); np.add(u, beta, out=u); np.minimum(u, 1, out=u); "
        "np.maximum(u, 0, out=u); np.multiply(x, u, out=w)"
    ),
}


class NumPy(Peer):
    """Ufuncs that write the output, or a float32 array that is then converted."""

    module = "numpy"

    def set_up(self) -> None:
        """Nothing: NumPy's ufuncs have one thread."""

    def candidates(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the statements, by the methods below or from FORMULAS."""
        if problem.operator not in FORMULAS:
            yield from super().candidates(problem)
            return
        p, x = problem.arguments, problem.input
        formula = FORMULAS[problem.operator]
        if not p.get("use_mean", True):
            formula = formula.replace(CENTERED, "np.copyto(w, x)")
        for buffer in buffers(problem.output):
            number = buffer.dtype.type
            names: dict[str, Any] = {"np": np, "t": buffer.dtype, "x": x, "y": problem.output}
            names |= {"w": buffer, "u": np.empty_like(buffer)}
            names |= {"k": np.empty_like(buffer, bool), "j": np.empty_like(buffer, bool)}
            names |= {
                name: number(value) if isinstance(value, float) else value
                for name, value in p.items()
            }
            widen = ""
            if buffer is not problem.output:
                names |= {"x": float32_like(x), "x_": x}
                widen = "np.copyto(x, x_); "
            if "axes" in p:
                few = np.max(buffer, axis=p["axes"], keepdims=True)
                names |= {"m": few, "l": np.empty_like(few)}
            yield candidate(widen + formula, names)

    def clip(self, problem: Problem) -> Iterator[Candidate]:
        """Yield np.clip, and minimum and maximum, which cost less for small arrays."""
        p, x, y = problem.arguments, problem.input, problem.output
        if "scale" in p:
            yield from self.scaled_clip(problem)
            return
        for buffer in buffers(y):
            bounds = {"lo": buffer.dtype.type(p["min"]), "hi": buffer.dtype.type(p["max"])}
            names = {"np": np, "x": x, "y": y, "w": buffer, **bounds}
            widen = "" if buffer is y else "np.copyto(w, x); "
            source = "x" if buffer is y else "w"
            yield candidate(f"{widen}np.clip({source}, lo, hi, out=w)", names)
            yield candidate(
                f"{widen}np.minimum({source}, hi, out=w); np.maximum(w, lo, out=w)", names
            )

    def scaled_clip(self, problem: Problem) -> Iterator[Candidate]:
        """Yield multiply, add and clip; integers in float32, exact for the cells' values."""
        p, y = problem.arguments, problem.output
        for buffer in buffers(y) if y.dtype.kind == "f" else [float32_like(y)]:
            number = buffer.dtype.type
            names = {"np": np, "x": problem.input, "y": y, "w": buffer, "t": buffer.dtype}
            names |= {"s": number(p["scale"]), "b": number(p["bias"])}
            names |= {"lo": number(p["min"]), "hi": number(p["max"])}
            yield candidate(
                f"np.multiply(x, s, out=w, dtype=t); np.add(w, b, out=w); {LIMIT}", names
            )

    def hard_sigmoid(self, problem: Problem) -> Iterator[Candidate]:
        """Yield multiply, add and clip."""
        p, y = problem.arguments, problem.output
        for buffer in buffers(y):
            number = buffer.dtype.type
            names = {"np": np, "x": problem.input, "y": y, "w": buffer, "t": buffer.dtype}
            names |= {"a": number(p["alpha"]), "b": number(p["beta"])}
            names |= {"lo": number(0), "hi": number(1)}
            yield candidate(
                f"np.multiply(x, a, out=w, dtype=t); np.add(w, b, out=w); {LIMIT}", names
            )

    def batch_normalization(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the normalization folded into one multiplication and one addition."""
        p, y = problem.arguments, problem.output
        mean, variance, scale, bias = parameters(p)
        for buffer in buffers(y):
            factor = float32_like(mean)
            names = {"np": np, "x": problem.input, "y": y, "w": buffer, "t": buffer.dtype}
            names |= {"m": mean, "v": variance, "s": scale, "b": bias}
            names |= {"e": np.float32(p["epsilon"]), "f": factor, "o": np.empty_like(factor)}
            yield candidate(
                "np.add(v, e, out=f); np.sqrt(f, out=f); np.divide(s, f, out=f); "
                "np.multiply(m, f, out=o); np.subtract(b, o, out=o); "
                "np.multiply(x, f, out=w); np.add(w, o, out=w)"
                + ("; np.maximum(w, 0, out=w)" if p["relu"] else ""),
                names,
            )

    def log_softmax(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the formula step by step."""
        x, y, axes = problem.input, problem.output, problem.arguments["axes"]
        for buffer in buffers(y):
            few = np.max(buffer, axis=axes, keepdims=True)
            names = {
                "np": np,
                "x": x,
                "y": y,
                "w": buffer,
                "e": np.empty_like(buffer),
                "axes": axes,
            }
            names |= {"m": few, "l": np.empty_like(few)}
            widen, source = ("", "x") if buffer is y else ("np.copyto(w, x); ", "w")
            yield candidate(
                f"{widen}np.max({source}, axis=axes, keepdims=True, out=m); "
                f"np.subtract({source}, m, out=w); np.exp(w, out=e); "
                "np.sum(e, axis=axes, keepdims=True, out=l); np.log(l, out=l); "
                "np.subtract(w, l, out=w)",
                names,
            )


def buffers(output: Array) -> Iterator[Array]:
    """Yield the arrays for intermediate results: the output, and for float16 also float32."""
    yield output
    if output.dtype == np.float16:
        yield float32_like(output)


def candidate(statement: str, names: dict[str, Any]) -> Candidate:
    """Return the statement, with a final conversion unless it computes in the output."""
    if names["w"] is not names["y"]:
        statement += "; np.copyto(y, w, casting='unsafe')"
    return Candidate(statement, names)
