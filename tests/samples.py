"""Deterministic input values, from integer arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

EVERY_FLOAT16: Array = np.arange(65536, dtype=np.uint16).view(np.float16)
EVERY_FLOAT16.flags.writeable = False


def finalized(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return each integer well mixed (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)), np.uint64)


def counter(count: int, seed: int = 0) -> npt.NDArray[np.uint64]:
    """Return (1, ..., count) + seed * 2^32, each times an odd constant."""
    with np.errstate(over="ignore"):
        steps = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)
        return np.asarray(steps * np.uint64(0x9E3779B97F4A7C15), np.uint64)


def hashed(count: int, seed: int = 0) -> npt.NDArray[np.uint64]:
    """Return `count` well-mixed 64-bit integers (splitmix64)."""
    return finalized(counter(count, seed))


def any_bits(shape: Sequence[int], dtype: npt.DTypeLike, seed: int = 0) -> Array:
    """Return values of any bit pattern: for floats NaN, infinities and subnormals among them."""
    dtype = np.dtype(dtype)
    wide = hashed(math.prod(shape), seed) >> np.uint64(64 - 8 * dtype.itemsize)
    return wide.astype(f"u{dtype.itemsize}").view(dtype).reshape(tuple(shape))


def uniform(
    shape: Sequence[int], dtype: npt.DTypeLike, low: float = -4.0, high: float = 4.0, seed: int = 0
) -> Array:
    """Return values spread evenly over [low, high); integers are wrapped into their range."""
    steps = (hashed(math.prod(shape), seed) >> np.uint64(40)).astype(np.float64)
    values = low + (high - low) * (steps * 2.0**-24)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return values.astype(dtype).reshape(tuple(shape))
    return np.floor(values).astype(np.int64).astype(dtype).reshape(tuple(shape))


def specials(dtype: npt.DTypeLike) -> Array:
    """Return the values at which an operator on this type may go wrong."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        info = np.finfo(dtype)
        ordinary = [0.0, 0.5, 1.0, 2.5, 3.0, 6.0, 1 + float(info.eps), 1 - float(info.epsneg)]
        edges = [
            float(info.smallest_subnormal),
            3 * float(info.smallest_subnormal),
            float(info.tiny),
        ]
        edges += [float(info.tiny) - float(info.smallest_subnormal), float(info.max), math.inf]
        one_sign = np.array([*ordinary, *edges, math.nan], np.float64)
        return np.concatenate([one_sign, -one_sign]).astype(dtype)
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    near = [low, low + 1, low // 2, -2, -1, 0, 1, 2, 3, high // 2, high // 2 + 1, high - 1, high]
    near += [2**24, 2**24 + 1, 2**53 - 1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 1024]
    return np.array(sorted({v for v in near if low <= v <= high}), dtype)
