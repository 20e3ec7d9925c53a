"""Prints inputs for which an operator takes longer than a copy and the operator in place.

python bench/orders.py [OPERATOR ...]

The inputs are tensors in every order of their dimensions, dense, padded, and with a step; the
operator reduces, or its parameters vary, along each axis in turn. A copy to the output, by clip,
and the operator in place are two passes, so a ratio well above 1 means that the traversal lacks
something, without a peer to compare with. The last columns are nanoseconds per element of both
ways. One thread; some minutes for all operators.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from timeit import Timer
from typing import Any

import numpy as np
import numpy.typing as npt

import dmlops

Array = npt.NDArray[Any]
Call = Callable[[Array], object]  # of an input

SHAPES = [(3, 50, 40, 60), (200, 4, 8, 50), (20, 3, 700, 8)]
ROUNDS, SECONDS = 3, 1e-3  # repetitions, and the time of each
PRINTED, LEAST = 40, 1.15  # lines, and the smallest ratio


def softmax(y: Array, _: list[Array], axis: int) -> Call:
    """Return softmax along an axis."""
    return lambda x: dmlops.softmax(x, axis, out=y)


def layer(y: Array, _: list[Array], axis: int) -> Call:
    """Return the normalization of each group along an axis."""
    return lambda x: dmlops.mean_variance_normalization(x, axes=axis, out=y)


def batch(y: Array, parameters: list[Array], _: int) -> Call:
    """Return batch normalization with parameters along an axis."""
    mean, variance, scale, bias = parameters
    return lambda x: dmlops.batch_normalization(x, mean, variance, scale, bias, out=y)


def training(y: Array, parameters: list[Array], _: int) -> Call:
    """Return the training pass of batch normalization over all other axes."""
    scale, bias, mean, variance = parameters
    out = (y, mean, variance)
    return lambda x: dmlops.batch_normalization_training(x, scale, bias, out=out)


def prelu(y: Array, parameters: list[Array], _: int) -> Call:
    """Return parameterized_relu with a slope along an axis."""
    return lambda x: dmlops.parameterized_relu(x, parameters[0], out=y)


OPERATORS = {f.__name__: f for f in (softmax, layer, batch, training, prelu)}


def inputs(shape: tuple[int, ...], dtype: type) -> Iterator[tuple[str, Array]]:
    """Yield tensors of a shape in every order, with their descriptions."""
    rng, last = np.random.default_rng(1), shape[-1]
    whole: Array = rng.standard_normal((*shape[:-1], 3 * last)).astype(dtype)
    layouts = {
        "dense": np.ascontiguousarray(whole[..., :last]),
        "padded": np.ascontiguousarray(whole[..., : last + 5])[..., :last],
        "step 3": whole[..., ::3],
    }
    for order in itertools.permutations(range(len(shape))):
        for name, x in layouts.items():
            yield f"{np.dtype(dtype).name} {shape} {order} {name}", x.transpose(order)


def seconds(call: Callable[[], object]) -> float:
    """Return the shortest time of a call."""
    timer = Timer(call)
    timer.timeit(1)
    number = max(1, round(SECONDS / timer.timeit(1)))
    return min(timer.repeat(ROUNDS, number)) / number


def compare(x: Array, call: Call, y: Array) -> tuple[float, float]:
    """Return the times of an operator, and of a copy and the operator in place."""

    def twice() -> None:
        dmlops.clip(x, -9, 9, out=y)
        call(y)

    return seconds(lambda: call(x)), seconds(twice)


def main(names: list[str]) -> None:
    """Print the slowest inputs of each operator."""
    dmlops.set_num_threads(1)
    for name in names:
        rows = []
        for shape, dtype in itertools.product(SHAPES, (np.float32, np.float16)):
            for described, x in inputs(shape, dtype):
                y = np.empty(x.shape, dtype)
                for axis in range(x.ndim):
                    sizes = [n if d == axis else 1 for d, n in enumerate(x.shape)]
                    parameters = [np.ones(sizes, dtype) for _ in range(4)]
                    times = compare(x, OPERATORS[name](y, parameters, axis), y)
                    nanoseconds = [f"{1e9 * time / x.size:8.3f}" for time in times]
                    rows.append((times[0] / times[1], f"{described} axis {axis}", nanoseconds))
        slow = sorted((row for row in rows if row[0] > LEAST), reverse=True)
        mean = np.exp(np.mean([np.log(row[0]) for row in rows]))
        print(f"{name}: geometric mean {mean:.2f}, {len(slow)} of {len(rows)} above {LEAST}")
        for ratio, described, nanoseconds in slow[:PRINTED]:
            print(f"{ratio:8.2f}  {described:62}", *nanoseconds)
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:] or list(OPERATORS))
