"""A problem: an operator's arguments, memory for its result, and the result in float64."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# What a peer's error may be, in units of the type's epsilon: sums of many float32 are often naive.
TOLERANCE = {"float32": 64, "float16": 8}


@dataclass(frozen=True)
class View:
    """How an array is cut out of a dense one: slices, then a permutation, then a broadcast.

    Peers without strides do the same steps in their own graph.
    """

    slices: tuple[slice, ...] = ()
    axes: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()

    def of(self, base: Array) -> Array:
        """Return the view of a dense array."""
        array = base[self.slices] if self.slices else base
        array = array.transpose(self.axes) if self.axes else array
        return np.broadcast_to(array, self.shape) if self.shape else array

    def ranges(self, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
        """Return the first index, the end and the step of each slice of a dense array."""
        limits = np.array([part.indices(n) for part, n in zip(self.slices, shape, strict=True)])
        return limits[:, 0], limits[:, 1], limits[:, 2]


@dataclass(frozen=True)
class Problem:
    """One cell's work. ``input`` and ``output`` are views of dense arrays."""

    operator: str
    arguments: dict[str, Any]
    base: Array
    view: View
    output_base: Array
    output_axes: tuple[int, ...] = ()  # as the input's: both have the same order in memory

    @property
    def input(self) -> Array:
        """The array that the operator is given."""
        return self.view.of(self.base)

    @property
    def output(self) -> Array:
        """The array that the result goes to."""
        return View(axes=self.output_axes).of(self.output_base)

    @property
    def traffic(self) -> int:
        """How many bytes must be read and written; what is broadcast comes from a cache."""
        arrays = [value for value in self.arguments.values() if isinstance(value, np.ndarray)]
        source = self.base[self.view.slices] if self.view.slices else self.base
        skipped = source.strides[-1] // source.itemsize  # memory comes in whole cache lines
        written_and_parameters = self.output_base.nbytes + sum(array.nbytes for array in arrays)
        return int(skipped * source.nbytes + written_and_parameters)

    def in_memory_order(self) -> Problem:
        """Return the same work on dense arrays, where input and output have one order in memory.

        Peers that know only dense arrays then need neither a copy nor a transposition.
        """
        if not self.output_axes:
            return self
        back = tuple(int(axis) for axis in np.argsort(self.output_axes))
        arguments = {
            name: value.transpose(back) if isinstance(value, np.ndarray) else value
            for name, value in self.arguments.items()
        }
        return replace(self, arguments=arguments, view=View(), output_axes=())

    def expected(self) -> Array:
        """Return the result in float64, or exactly where the elements are integers."""
        x, p = self.input, self.arguments
        if x.dtype.kind != "f" and "scale" not in p:
            exact: Array = np.clip(x, x.dtype.type(p["min"]), x.dtype.type(p["max"]))
            return exact
        y: Array
        x = x.astype(np.float64)
        if self.operator == "clip":
            y = np.clip(x * p.get("scale", 1) + p.get("bias", 0), p["min"], p["max"])
            return y if self.base.dtype.kind == "f" else np.trunc(y)
        if self.operator == "hard_sigmoid":
            y = np.clip(p["alpha"] * x + p["beta"], 0, 1)
            return y
        if self.operator == "batch_normalization":
            mean, variance, scale, bias = parameters(p, np.float64)
            y = (x - mean) / np.sqrt(variance + p["epsilon"]) * scale + bias
            y = np.maximum(y, 0) if p["relu"] else y
            return y
        x -= x.max(p["axes"], keepdims=True)
        x -= np.log(np.exp(x).sum(p["axes"], keepdims=True))
        return x

    def error(self, result: Array, expected: Array) -> str:
        """Return what is wrong with a result, or nothing."""
        dtype = self.base.dtype
        if result.dtype != dtype or result.shape != expected.shape:
            return f"gives {result.dtype} of shape {result.shape}"
        tolerance = TOLERANCE[dtype.name] * float(np.finfo(dtype).eps) if dtype.kind == "f" else 0
        # Each as int64 is exact for every integer here, and their difference is small.
        wide = np.float64 if dtype.kind == "f" else np.int64
        distance = np.abs(result.astype(wide) - expected.astype(wide))
        wrong = ~(distance <= tolerance * (1 + np.abs(expected)))
        if not wrong.any():
            return ""
        place = int(wrong.argmax())
        got, right = result.flat[place], expected.flat[place]
        return f"wrong: {got:.7g} instead of {right:.7g}"


def parameters(arguments: dict[str, Any], dtype: Any = None) -> list[Array]:
    """Return batch normalization's mean, variance, scale and bias."""
    arrays = (arguments[name] for name in ("mean", "variance", "scale", "bias"))
    return [array if dtype is None else array.astype(dtype) for array in arrays]
