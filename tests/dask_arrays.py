"""Dask arrays for tests: the expected blocks, and the intermediate ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from reference import assert_same_bits

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

Array = npt.NDArray[Any]


def expect(lazy: Any, x: Any, expected: Array, context: object = "") -> None:
    """Expect a lazy array like `x`, with these bits in each of its blocks."""
    assert isinstance(lazy, da.Array), context
    assert lazy.dtype == expected.dtype
    assert lazy.shape == expected.shape
    assert lazy.chunks == x.chunks
    assert type(lazy._meta) is np.ndarray
    assert lazy._meta.dtype == expected.dtype
    assert lazy._meta.ndim == expected.ndim
    result = lazy.compute()
    # Dask indexes blocks, so that those without dimensions are NumPy scalars.
    assert isinstance(result, np.ndarray if expected.ndim else (np.ndarray, np.generic))
    assert_same_bits(np.asarray(result), expected, context)


def intermediate_blocks(lazy: Any) -> list[Array]:
    seen: list[Array] = []

    class Recorder(dask.callbacks.Callback):  # type: ignore[misc, name-defined]
        def _posttask(self, key: Any, result: Any, *_: Any) -> None:
            if isinstance(result, np.ndarray) and not str(key[0]).startswith("zeros"):
                seen.append(result)

    with Recorder():
        lazy.blocks[(0,) * lazy.ndim].compute(optimize_graph=False)
    return seen
