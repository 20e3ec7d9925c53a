"""The interface of a peer, which turns a problem into statements to time or gives a reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from dmlops._bench.problem import Array, Problem


class CannotDo(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a peer that cannot solve a problem; the message gives the reason."""


@dataclass(frozen=True)
class Candidate:
    """A statement that solves the problem, as a user would write it, and the names that it uses.

    The statement is compiled into the timed loop, so the figures contain no call of the benchmark.
    `result` returns the result after a run, for statements that do not write the problem's output.
    """

    statement: str
    names: dict[str, Any] = field(repr=False)
    result: Callable[[], Array] | None = field(default=None, repr=False)


class Peer:
    """A package to compare with. A method for each operator yields the candidate statements."""

    module: str  # the imported module
    checked = True  # its results are compared with float64

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.library: Any = import_module(self.module)
        self.set_up()

    def set_up(self) -> None:
        """Make the library use `self.threads` threads."""

    @property
    def version(self) -> str:
        """The library's version."""
        return str(self.library.__version__)

    def candidates(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the candidate statements for a problem."""
        operator = getattr(self, problem.operator, None)
        if operator is None:
            raise CannotDo(f"has no {problem.operator}")
        yield from operator(problem)


def channel_axis(arguments: dict[str, Any]) -> int | None:
    """Return the axis along which batch normalization's parameters vary, if it is a single one."""
    changing = [axis for axis, size in enumerate(arguments["scale"].shape) if size > 1]
    return changing[0] if len(changing) == 1 else None


def axis_second(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Return the shape, or one of three merged axes, so that the given axis is the second."""
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    return shape if axis == 1 else (before, shape[axis], after)


def float32_like(array: Array) -> Array:
    """Return a buffer for intermediate results in float32, with the array's memory order."""
    return np.empty_like(array, np.float32)
