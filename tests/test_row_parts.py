"""Few long rows of the softmax family, which threads compute in parts: the bits of one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from reference import assert_same_bits

import dmlops

Array = npt.NDArray[Any]
SHAPES = ((1, 128_256), (2, 70_003), (1, 327_681), (1, 1_100_000), (3, 40_000))

KINDS = (
    *("plain", "wide", "far", "dominated", "tie", "infinite"),
    *("masked", "all masked", "small at the end", "NaN", "all NaN"),
)


def rows(kind: str, shape: tuple[int, ...], dtype: str) -> Array:
    """Return elements for which softmax and log_softmax take every pass."""
    x = samples.uniform(shape, dtype, -5, 5)
    middle = shape[-1] // 2
    if kind == "wide":
        x *= 20
    elif kind == "far":
        x += 1000
    elif kind == "dominated":
        x[..., middle] = 60
        x[..., -1] = 60
    elif kind == "tie":
        x[...] = np.round(x)
    elif kind == "infinite":
        x[..., middle] = np.inf
    elif kind == "masked":
        x[..., : middle + 7] = -np.inf
    elif kind == "all masked":
        x[...] = -np.inf
    elif kind == "small at the end":
        x[..., -3] = -200
    elif kind == "NaN":
        x[..., middle] = np.nan
        x[..., middle + 5000] = np.nan
        x[..., -1] = 100
    elif kind == "all NaN":
        x[...] = np.nan
    return x


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "hardmax"])
def test_bits_of_one_thread(name: str, kind: str, dtype: str) -> None:
    function = getattr(dmlops, name)
    for shape in SHAPES:
        x = rows(kind, shape, dtype)
        dmlops.set_num_threads(1)
        expected = function(x)
        for count in (2, 3, 16, 100):
            dmlops.set_num_threads(count)
            assert_same_bits(function(x), expected, f"{shape}, {count} threads")
        in_place = x.copy()
        function(in_place, out=in_place)
        assert_same_bits(in_place, expected, f"{shape}, in place")
        padded = np.zeros((shape[0], shape[1] + 5), dtype)
        function(x, out=padded[:, 2:-3])
        assert_same_bits(padded[:, 2:-3], expected, f"{shape}, in padded rows")
