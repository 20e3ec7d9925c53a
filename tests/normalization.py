"""Parameters of batch normalization, and a comparison with the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import reference
import samples
from operators import normalize
from reference import assert_within

Array = npt.NDArray[Any]
NAMES = ("mean", "variance", "scale", "bias")
RANGES = {"mean": (-1, 1), "variance": (0.25, 4), "scale": (-2, 2), "bias": (-1, 1)}


def parameter(name: str, shape: Sequence[int], dtype: str) -> Array:
    low, high = RANGES[name]
    return samples.uniform(shape, dtype, low, high, seed=NAMES.index(name) + 1)


def parameters(shape: Sequence[int], dtype: str) -> list[Array]:
    return [parameter(name, shape, dtype) for name in NAMES]


def per_channel(shape: Sequence[int], dtype: str) -> list[Array]:
    return parameters([s if axis == 1 else 1 for axis, s in enumerate(shape)], dtype)


def check(x: Array, values: Sequence[Array], context: object = "", epsilon: float = 1e-5) -> Array:
    """Expect the reference's values within its bound; return the result."""
    result = normalize(x, values, epsilon)
    assert result.dtype == x.dtype
    assert_within(result, *reference.batch_normalization(x, *values, epsilon=epsilon), context)
    return result
