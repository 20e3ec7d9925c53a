"""A problem: an operator's arguments and the memory of its input and result."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

PARAMETERS = ("mean", "variance", "scale", "bias")  # of batch normalization

# The error that a peer may have, in units of the type's epsilon.
TOLERANCE = {"float32": 64, "float16": 8}
# Peers add up float32 one after another, with an error of 160 epsilon in a sum of 18,645 elements:
# one more epsilon is allowed per this number of elements of a sum.
NAIVE_SUM = 64


@dataclass(frozen=True)
class View:
    """A view of a dense array: slices, then a permutation, then a broadcast.

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
        """Return the first index, the end and the step of each slice of a dense array.

        The end of a reversed slice counts from the end, as in ONNX: -1 would be the last element.
        """
        limits = np.array([part.indices(n) for part, n in zip(self.slices, shape, strict=True)])
        starts, ends, steps = limits.T
        return starts, np.where(ends < 0, -1 - np.array(shape), ends), steps

    def forward(self, shape: tuple[int, ...]) -> tuple[View, tuple[int, ...]]:
        """Return the view without negative steps, and the axes to flip after it."""
        slices = list(self.slices)
        for d, (part, n) in enumerate(zip(self.slices, shape, strict=bool(slices))):
            indices = range(n)[part]
            if indices.step < 0:
                slices[d] = slice(indices[-1], indices[0] + 1, -indices.step)
        axes = self.axes or tuple(range(len(shape)))
        flipped = tuple(i for i, d in enumerate(axes) if slices and slices[d] != self.slices[d])
        return replace(self, slices=tuple(slices)), flipped

    def permuted(self, axes: tuple[int, ...]) -> View:
        """Return the view whose result has its axes permuted. The broadcast must keep the rank."""
        shape = tuple(self.shape[d] for d in axes) if self.shape else ()
        return View(self.slices, permutation(self.axes, axes), shape)


@dataclass(frozen=True)
class Problem:
    """One cell's work. ``input`` and ``output`` are views of dense arrays."""

    operator: str
    arguments: dict[str, Any]
    base: Array
    view: View
    output_base: Array
    output_axes: tuple[int, ...] = ()  # of `output_base`, for the output in the input's order
    copied: int | None = None  # bytes that the roofline copies; by default half of the traffic

    @property
    def input(self) -> Array:
        """The operator's input."""
        return self.view.of(self.base)

    @property
    def output(self) -> Array:
        """The array for the result."""
        return View(axes=self.output_axes).of(self.output_base)

    @property
    def group(self) -> int:
        """The number of elements that are added up."""
        return math.prod(self.input.shape[axis] for axis in self.arguments.get("axes", ()))

    @property
    def traffic(self) -> int:
        """The bytes read from and written to memory; broadcast operands count as cached."""
        arrays = [value for value in self.arguments.values() if isinstance(value, np.ndarray)]
        source = self.base[self.view.slices] if self.view.slices else self.base
        skipped = abs(source.strides[-1]) // source.itemsize  # memory comes in whole cache lines
        written_and_parameters = self.output_base.nbytes + sum(array.nbytes for array in arrays)
        return int(skipped * source.nbytes + written_and_parameters)

    def in_memory_order(self) -> Problem:
        """Return the same work with its axes permuted so that the output is dense.

        If input and output share one memory order, peers for dense arrays then need no
        transposition, and no copy if the view is no more than a permutation.
        """
        if not self.output_axes:
            return self
        return self.permuted(tuple(int(axis) for axis in np.argsort(self.output_axes)))

    def permuted(self, order: tuple[int, ...]) -> Problem:
        """Return the same work, in the same memory, with the axes of all arrays permuted."""
        arguments = {
            name: value.transpose(order) if isinstance(value, np.ndarray) else value
            for name, value in self.arguments.items()
        }
        if "axes" in arguments:
            arguments["axes"] = tuple(order.index(axis) for axis in arguments["axes"])
        return replace(
            self,
            arguments=arguments,
            view=self.view.permuted(order),
            output_axes=permutation(self.output_axes, order),
        )

    @property
    def described(self) -> str:
        """The input as an expression, the strides of both arrays, and the axis of a reduction."""
        steps = [
            f"{part.start or ''}:{part.stop or ''}" + (f":{part.step}" if part.step else "")
            for part in self.view.slices
        ]
        x, y = self.input, self.output
        words = [f"empty({self.base.shape})"]
        words += [f"[{', '.join(steps)}]"] if steps else []
        words += [f".transpose{self.view.axes}"] if self.view.axes else []
        words += [f" broadcast to {x.shape}"] if self.view.shape else []
        words += [f", strides {x.strides} to {y.strides}"]
        if "axes" in self.arguments:
            words.append(f", axes {self.arguments['axes']}")
        if "scale" in self.arguments and isinstance(self.arguments["scale"], np.ndarray):
            words.append(f", parameters of shape {self.arguments['scale'].shape}")
        return "".join(words)

    def error(self, result: Array, expected: Array) -> str:
        """Return the reason why a result is wrong, or an empty string."""
        dtype = self.base.dtype
        if result.dtype != dtype or result.shape != expected.shape:
            return f"gives {result.dtype} of shape {result.shape}"
        tolerance = 0.0
        if dtype.kind == "f":
            epsilons = TOLERANCE[dtype.name] + (self.group // NAIVE_SUM) * (dtype == np.float32)
            tolerance = epsilons * float(np.finfo(dtype).eps)
        # The integers of the cells and their differences fit int64.
        wide = np.float64 if dtype.kind == "f" else np.int64
        distance = np.abs(result.astype(wide) - expected.astype(wide))
        wrong = ~(distance <= tolerance * (1 + np.abs(expected)))
        if not wrong.any():
            return ""
        place = int(wrong.argmax())
        got, right = result.flat[place], expected.flat[place]
        return f"wrong: {got:.7g} instead of {right:.7g}"


def permutation(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """Return the composition of two permutations of axes; none is the identity."""
    as_they_are = tuple(range(len(second)))
    both = tuple((first or as_they_are)[d] for d in second)
    return () if both == as_they_are else both


def parameters(arguments: dict[str, Any], dtype: Any = None) -> list[Array]:
    """Return batch normalization's mean, variance, scale and bias."""
    arrays = (arguments[name] for name in PARAMETERS)
    return [array if dtype is None else array.astype(dtype) for array in arrays]
