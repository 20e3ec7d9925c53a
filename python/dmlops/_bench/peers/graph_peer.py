"""Peers that run a model, which is built from a formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dmlops._bench.peers.base import Candidate, Peer
from dmlops._bench.problem import Array, Problem, View

Formula = Callable[..., Any]  # of a library's graph, and its input x


class GraphPeer(Peer):
    """A peer for whose models a strided view is part of the model, or a copy before it."""

    def formulas(self, p: Mapping[str, Any], dtype: np.dtype[Any]) -> dict[str, Formula]:
        """Return formulas of a problem's arrays, by the operator."""
        raise NotImplementedError

    def prepare(
        self, formula: Formula, view: View, inputs: Mapping[str, Array], y: Array
    ) -> tuple[str, dict[str, Any]]:
        """Return the statement that runs a model, and the names that it uses."""
        raise NotImplementedError

    def candidates(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the model, by the methods of this class or from `formulas`."""
        formulas = self.formulas(problem.arguments, problem.base.dtype)
        if problem.operator not in formulas:
            yield from super().candidates(problem)
            return
        arguments = problem.arguments.items()
        arrays = {name: array for name, array in arguments if isinstance(array, np.ndarray)}
        yield from self.run(problem, formulas[problem.operator], arrays)

    def run(
        self,
        problem: Problem,
        formula: Formula,
        parameters: Mapping[str, Array] | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> Iterator[Candidate]:
        """Yield the model with the view inside, and with a copy of the view by NumPy before it.

        `shape` is the shape of the formula's result.
        """
        dense, parameters = problem.in_memory_order(), parameters or {}
        y = dense.output_base.reshape(shape or dense.output_base.shape)
        yield Candidate(*self.prepare(formula, dense.view, {"x": dense.base, **parameters}, y))
        if dense.view != View():
            buffer = np.empty(dense.input.shape, dense.base.dtype)
            statement, names = self.prepare(formula, View(), {"x": buffer, **parameters}, y)
            names |= {"copyto": np.copyto, "buffer": buffer, "x": dense.input}
            yield Candidate(f"copyto(buffer, x); {statement}", names)
