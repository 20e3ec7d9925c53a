"""Pixels of a few channels in any order: elements whose offsets repeat after a few elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dmlops

pytestmark = pytest.mark.usefixtures("isa")
Array = npt.NDArray[Any]


def views(pixels: int, channels: int, dtype: str) -> Iterator[tuple[str, Array]]:
    """Yield views of about as many pixels, with their names."""
    rng = np.random.default_rng(pixels)
    memory = rng.integers(0, 127, pixels * channels * 8).astype(dtype)
    dense = memory[: pixels * channels].reshape(pixels, channels)
    wide = memory[: pixels * channels * 2].reshape(pixels, 2 * channels)
    yield "reversed", dense[:, ::-1]
    yield "reversed pixels", dense[::-1]
    yield "all reversed", dense[::-1, ::-1]
    yield "padded", wide[:, : channels + channels // 2]
    yield "padded, reversed", wide[::-1, channels - 1 :: -1]
    yield "every second", wide[:, ::2]
    yield "every second, reversed", wide[::-1, ::-2]
    yield "repeated", np.broadcast_to(dense[:, :1], dense.shape)
    yield "repeated, reversed", np.broadcast_to(dense[::-1, :1], dense.shape)
    yield "two repeated", np.broadcast_to(dense[:, None], (pixels, 2, channels)).swapaxes(1, 2)
    yield "exchanged", wide.reshape(pixels, 2, channels).swapaxes(1, 2)
    yield "exchanged, reversed", wide.reshape(pixels, channels, 2)[::-1].swapaxes(1, 2)
    yield "planes", memory[: pixels * channels].reshape(channels, pixels).T
    yield "planes with gaps", memory.reshape(channels, -1)[:, 1 : pixels + 1].T
    yield "images", memory.reshape(4, -1, channels)[:, ::2, ::-1]


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int16", "float32", "int64"])
@pytest.mark.parametrize("channels", range(2, 10))
def test_pixels(channels: int, dtype: str) -> None:
    for pixels in (7, 100, 1000):
        for name, x in views(pixels, channels, dtype):
            result = dmlops.clip(x, 3, 120)
            assert np.array_equal(result, np.clip(x, 3, 120)), (name, pixels)


@pytest.mark.parametrize("channels", range(2, 10))
def test_pixels_of_two_inputs(channels: int) -> None:
    for dtype in ("float16", "float32"):
        for name, x in views(1000, channels, dtype):
            gradient = np.ascontiguousarray(x[::-1])
            result = dmlops.clip_grad(x, gradient, 3, 120)
            inside = (x > 3) & (x < 120)
            assert np.array_equal(result, np.where(inside, gradient, 0)), (name, dtype)
