"""numexpr: expressions compiled in advance, on a few data types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dmlops._bench.peers.base import Candidate, CannotDo, Peer
from dmlops._bench.problem import PARAMETERS, Array, Problem

# NumExpr's names of the types.
TYPES = {"float32": float, "int32": np.int32, "int64": np.int64}

BOUNDS = {"min": "low", "max": "high"}  # its own min and max are functions
EXPRESSIONS: dict[str, tuple[str, dict[str, float]]] = {
    "parameterized_relu": ("where(x < zero, slope * x, x)", {"zero": 0.0}),
    "relu_grad": ("where(x > zero, gradient, zero)", {"zero": 0.0}),
    "clip_grad": ("where((x > low) & (x < high), gradient, zero)", {"zero": 0.0}),
    "swish": ("x / (one + exp(-x))", {"one": 1.0}),
    "hard_swish": (
        "x * where(alpha * x + beta < zero, zero, "
        "where(alpha * x + beta > one, one, alpha * x + beta))",
        {"zero": 0.0, "one": 1.0},
    ),
}


class NumExpr(Peer):
    """numexpr's virtual machine, called without the lookup of names in the caller's frame."""

    module = "numexpr"

    def set_up(self) -> None:
        """Set the number of threads."""
        self.library.set_num_threads(self.threads)

    def clip(self, problem: Problem) -> Iterator[Candidate]:
        """Yield comparisons, as it has no clip."""
        p = problem.arguments
        if "scale" in p and problem.base.dtype.kind != "f":
            raise CannotDo("does not convert its result to integers")
        x = "(x * scale + bias)" if "scale" in p else "x"
        numbers = {"lo": p["min"], "hi": p["max"]}
        numbers |= {"scale": p["scale"], "bias": p["bias"]} if "scale" in p else {}
        yield self.candidate(problem, f"where({x} < lo, lo, where({x} > hi, hi, {x}))", **numbers)

    def hard_sigmoid(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the formula."""
        p = problem.arguments
        y = "(a * x + b)"
        yield self.candidate(
            problem,
            f"where({y} < zero, zero, where({y} > one, one, {y}))",
            a=p["alpha"], b=p["beta"], zero=0.0, one=1.0,
        )  # fmt: skip

    def batch_normalization(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the formula."""
        p = problem.arguments
        y = "((x - mean) * (scale / sqrt(variance + e)) + bias)"
        y = f"where({y} < zero, zero, {y})" if p["relu"] else y
        zero = {"zero": 0.0} if p["relu"] else {}
        yield self.candidate(
            problem, y, e=p["epsilon"], **zero, **{name: p[name] for name in PARAMETERS}
        )

    def candidates(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the expression, by the methods above or from EXPRESSIONS."""
        if "axes" in problem.arguments:
            raise CannotDo("reduces only as the last step of an expression")
        if problem.operator in EXPRESSIONS:
            expression, numbers = EXPRESSIONS[problem.operator]
            arguments = {BOUNDS.get(name, name): p for name, p in problem.arguments.items()}
            yield self.candidate(problem, expression, **numbers, **arguments)
        else:
            yield from super().candidates(problem)

    def candidate(self, problem: Problem, expression: str, **arguments: Any) -> Candidate:
        """Return the call of the compiled expression."""
        dtype = problem.base.dtype
        if dtype.name not in TYPES:
            raise CannotDo(f"has no {dtype}")
        values: dict[str, Array] = {"x": problem.input}
        values |= {name: np.asarray(value, dtype) for name, value in arguments.items()}
        signature = [(name, TYPES[dtype.name]) for name in values]
        names: dict[str, Any] = {"f": self.library.NumExpr(expression, signature)}
        names |= values | {"y": problem.output}
        return Candidate(f"f({', '.join(values)}, out=y, ex_uses_vml=False)", names)
