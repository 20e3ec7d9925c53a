"""Short patterns of elements: small tiles, permuted, reversed, broadcast, or with gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dmlops

pytestmark = pytest.mark.usefixtures("isa")
Array = npt.NDArray[Any]


def tiles(rng: np.random.Generator, dtype: Any) -> Array:
    """Draw a view of many small tiles."""
    count, sizes = int(rng.integers(1, 400)), rng.integers(1, 9, 3)
    steps = rng.choice([-2, -1, 1, 1, 1, 2, 3], 4)
    padding = rng.choice([0, 0, 1, 5], 4)
    shape = (count, *sizes)
    whole = [n * abs(int(s)) + int(p) for n, s, p in zip(shape, steps, padding, strict=True)]
    memory = rng.integers(0, 127, whole).astype(dtype)
    x = memory[tuple(slice(int(p), None) for p in padding)]
    x = x[tuple(slice(None, None, int(s)) for s in steps)]
    for axis in range(1, 4):
        if rng.integers(5) == 0:
            x = np.broadcast_to(x[(slice(None),) * axis + (slice(1),)], x.shape)
    order = [0, *(1 + rng.permutation(3))]
    if rng.integers(3) == 0:
        order = list(rng.permutation(4))
    return x.transpose(order)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int16", "float32", "int64"])
@pytest.mark.parametrize("seed", range(60))
def test_tiles(seed: int, dtype: str) -> None:
    x = tiles(np.random.default_rng([seed, np.dtype(dtype).num]), dtype)
    out = np.empty(x.shape, dtype)
    dmlops.clip(x, 3, 120, out=out)
    assert np.array_equal(out, np.clip(x, 3, 120)), (x.shape, x.strides)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize("seed", range(100))
def test_tiles_of_two_inputs(seed: int, dtype: str) -> None:
    rng = np.random.default_rng([seed, np.dtype(dtype).num])
    x = tiles(rng, dtype)
    order = rng.permutation(x.ndim)  # of the gradient's dimensions, the outermost first
    gradient = np.ascontiguousarray(x.transpose(order)[::-1]).transpose(np.argsort(order))
    inside = (x > 3) & (x < 120)
    expected = np.where(inside, gradient, 0)
    assert np.array_equal(dmlops.clip_grad(x, gradient, 3, 120), expected), (x.shape, x.strides)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
@pytest.mark.parametrize("channels", [2, 3, 5])
def test_steps_that_are_no_multiples_of_the_element_size(channels: int, dtype: str) -> None:
    record = np.dtype([("tag", "u1"), ("values", dtype, channels)])
    records = np.zeros(600, record)
    records["values"] = np.random.default_rng(channels).integers(0, 127, (600, channels))
    for x in (records["values"], records["values"][:, ::-1], records["values"][::-1]):
        out = np.empty(x.shape, dtype)
        dmlops.clip(x, 3, 120, out=out)
        assert np.array_equal(out, np.clip(x, 3, 120)), x.strides


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_written_beyond_the_output(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    x = tiles(rng, dtype)
    if seed % 2:  # short broadcast runs
        x = np.broadcast_to(x.reshape(-1)[:, np.newaxis], (x.size, seed // 2 + 2))
    memory = np.full(x.size + 200, 99, dtype)
    dmlops.clip(x, 3, 98, out=memory[100:-100].reshape(x.shape))
    assert np.all(memory[:100] == 99)
    assert np.all(memory[-100:] == 99)
    assert np.array_equal(memory[100:-100].reshape(x.shape), np.clip(x, 3, 98))
