"""Operators on random layouts: the bits of the dense array, and no byte elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from layouts import Placed
from variants import ISAS, POLICIES, small_shards

import dmlops

Array = npt.NDArray[Any]
Call = Callable[..., Array]
FLOATS = (np.float32, np.float16)
TYPES = (*FLOATS, np.int8, np.uint8, np.int16, np.uint32, np.int64)
DRAWS = 60


@dataclass(frozen=True)
class Draw:
    """The random choices of one layout after another."""

    random: np.random.Generator

    def sizes(self) -> list[int]:
        """Return 1 to 6 sizes with a product of up to 8,192."""
        rank = int(self.random.integers(1, 7))
        left = 2 ** self.random.uniform(3, 13)
        sizes = [1] * rank
        for d in self.random.permutation(rank)[:-1]:
            sizes[d] = max(1, round(left ** self.random.uniform(0, 0.9)))
            left /= sizes[d]
        sizes[int(np.argmin(sizes))] *= max(1, int(left))
        return sizes

    def strides(self, sizes: list[int], item: int) -> list[int]:
        """Return strides of elements that do not overlap: permuted, stepped, reversed, padded."""
        strides, step = [0] * len(sizes), item
        for d in self.random.permutation(len(sizes)):
            step *= int(self.random.choice([1, 1, 1, 2, 3, 4, 5]))
            strides[d] = step if self.random.random() < 0.8 else -step
            step = step * sizes[d] + item * int(self.random.choice([0, 0, 0, 1, 16]))
        return strides

    def placed(self, sizes: list[int], dtype: Any, *, broadcast: bool) -> Placed:
        """Return memory for elements of these sizes."""
        strides = self.strides(sizes, np.dtype(dtype).itemsize)
        if broadcast:
            strides = [0 if self.random.random() < 0.15 else stride for stride in strides]
        return Placed(sizes, dtype, strides, int(self.random.integers(64)))

    def values(self, sizes: list[int], dtype: Any) -> Array:
        """Return elements that operators treat in different ways."""
        if np.dtype(dtype).kind == "f":
            return (3 * self.random.standard_normal(sizes)).astype(dtype)
        return self.random.integers(-100, 100, sizes).astype(dtype)

    def operator(self, sizes: list[int]) -> tuple[Any, str, Call]:
        """Return a data type, a description and an operator."""
        rank = len(sizes)
        dtype = TYPES[self.random.integers(len(TYPES))]
        name = str(self.random.choice(["clip", "hard_sigmoid", "gelu", "normalize", "softmax"]))
        if name == "clip":
            return dtype, name, lambda x, **out: dmlops.clip(x, 2, 50, **out)
        dtype = FLOATS[self.random.integers(2)]
        if name in ("hard_sigmoid", "gelu"):
            return dtype, name, getattr(dmlops, name)
        axes = tuple(int(d) for d in self.random.permutation(rank)[: self.random.integers(1, 4)])
        if name == "softmax":
            return dtype, f"log_softmax {axes}", lambda x, **out: dmlops.log_softmax(x, axes, **out)
        shape = [size if d in axes else 1 for d, size in enumerate(sizes)]
        column_major = bool(self.random.integers(2))
        parameters = [self.random.uniform(0.5, 2, shape).astype(dtype) for _ in range(4)]
        if column_major:
            parameters = [np.asfortranarray(parameter) for parameter in parameters]
        fused = (None, dmlops.ActivationReluOperatorDesc(), dmlops.ActivationTanhOperatorDesc())
        chosen = fused[self.random.integers(3)]
        return (
            dtype,
            f"batch_normalization {axes} {column_major} {chosen}",
            lambda x, **out: dmlops.batch_normalization(
                x, *parameters, fused_activation=chosen, **out
            ),
        )


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Run the test with one thread, and with three that share calls on small arrays."""
    with small_shards(request.param):
        yield request.param


@pytest.mark.parametrize("isa", ISAS, indirect=True)
@pytest.mark.parametrize("policy", POLICIES, indirect=True)
def test_bits_and_canaries(isa: str, policy: str, threads: int) -> None:
    """Each result has the bits of the dense array's, and nothing else is written."""
    draw = Draw(np.random.default_rng([ISAS.index(isa), len(policy), threads]))
    for number in range(DRAWS):
        sizes = draw.sizes()
        dtype, name, operator = draw.operator(sizes)
        source = draw.placed(sizes, dtype, broadcast=True).fill(draw.values(sizes, dtype))
        target = draw.placed(sizes, dtype, broadcast=False)
        x, y = source.view, target.view
        context = f"{number}: {name} {x.dtype} {x.shape} {x.strides} -> {y.strides}"
        assert math.prod(sizes) < 1 << 17, context
        expected = operator(np.ascontiguousarray(x))
        assert operator(x, out=y) is y
        np.testing.assert_array_equal(
            np.ascontiguousarray(y).view(np.uint8), expected.view(np.uint8), context
        )
        target.assert_canaries(context)
        source.assert_canaries(context)


@pytest.mark.parametrize("isa", ISAS, indirect=True)
@pytest.mark.parametrize("policy", POLICIES, indirect=True)
@pytest.mark.parametrize("misalignment", [0, 4, 12])
def test_windows_that_overlap(isa: str, policy: str, misalignment: int) -> None:
    """Several axes of the input may have a stride of one element."""
    values = np.arange(2048, dtype=np.float32)
    shape = (100, 512, 2)
    x = np.lib.stride_tricks.as_strided(values, shape, (4, 4, 4), writeable=False)
    target = Placed(shape, np.float32, (4096, 8, 4), misalignment)
    dmlops.clip(x, 3, 400, out=target.view)
    np.testing.assert_array_equal(target.view, np.clip(x, 3, 400))
    target.assert_canaries()
