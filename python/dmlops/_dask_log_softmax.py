"""log_softmax over chunked axes of a dask array, bit-identical to the unchunked computation.

The maximum is a tree reduction. The sum has one fixed shape, that of `log_softmax_group.hpp`:
16 lanes take up a group's elements in turn and add them for a block of 1024 elements; the blocks
are added in float64, in their order. So the group is laid out along one axis whose chunks end where
blocks do. Each chunk becomes the lanes of its blocks, two numbers for 64 elements, on its own;
these are added in order, chunk after chunk, and the sum goes back to the chunks as they were. A
group no longer than a block is brought into one chunk instead.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.utils import parse_bytes

from dmlops import _core
from dmlops._foreign import require_unmasked

Array = npt.NDArray[Any]
_BLOCK: int = _core.LOG_SOFTMAX_BLOCK
_Lanes = tuple[Array, Array]  # of some groups, and their numbers of maxima


def log_softmax(x: Any, axes: Any) -> Any:
    """Return the lazy result; the axes, one or several, have been checked."""
    reduced = normalized_axes(x, axes)
    if has_whole_groups(x, reduced):
        return _by_blocks(x, reduced)
    require_known_sizes("log_softmax", x, reduced)
    if x.size == 0:
        return x
    elements = math.prod(x.shape[axis] for axis in reduced)
    if elements <= _BLOCK:
        whole = rechunk(x, {axis: (x.shape[axis],) for axis in reduced})
        return _by_blocks(whole, reduced).rechunk(x.chunks)
    kept = tuple(axis for axis in range(x.ndim) if axis not in reduced)
    top = da.reduction(
        x, _max, _max, axis=reduced, dtype=x.dtype, meta=np.empty((0,) * len(kept), x.dtype)
    )
    groups = x.transpose(kept + reduced).reshape((*(x.shape[axis] for axis in kept), elements))
    groups = rechunk(groups, {len(kept): _whole_blocks(groups.chunks[-1])})
    sums = _sums(groups, top.rechunk(groups.chunks[:-1]))
    return da.blockwise(
        _finish,
        range(x.ndim),
        x,
        range(x.ndim),
        top,
        kept,
        sums.rechunk((*top.chunks, -1)),
        (*kept, x.ndim),
        reduced=reduced,
        concatenate=True,  # the last axis of `sums`, which is one chunk
        align_arrays=False,
        dtype=x.dtype,
        meta=np.empty((0,) * x.ndim, x.dtype),
        name=f"log_softmax-{tokenize(x, reduced)}",
    )


def normalized_axes(x: Any, axes: Any) -> tuple[int, ...]:
    """Return the axes, one or several, in ascending order and counted from the first."""
    return tuple(sorted(operator.index(axis) % max(x.ndim, 1) for axis in np.ravel(axes)))


def has_whole_groups(x: Any, reduced: Sequence[int]) -> bool:
    """Return True if each group lies in one chunk."""
    return x.ndim == 0 or all(len(x.chunks[axis]) == 1 for axis in reduced)


def require_known_sizes(name: str, x: Any, reduced: tuple[int, ...]) -> None:
    """Raise ValueError for chunks of unknown size."""
    if any(math.isnan(size) for size in x.shape):
        raise ValueError(
            f"{name}: input has chunks of unknown size, shape {x.shape}, and is chunked along "
            f"the axes {reduced}; call compute_chunk_sizes() on it first"
        )


def _by_blocks(x: Any, reduced: tuple[int, ...]) -> Any:
    meta = np.empty((0,) * x.ndim, x.dtype)
    return da.map_blocks(_core.log_softmax, x, axes=reduced, dtype=x.dtype, meta=meta)


def _whole_blocks(chunks: tuple[int, ...]) -> tuple[int, ...]:
    """Round the ends of chunks to multiples of a block."""
    *ends, elements = (int(end) for end in np.cumsum(chunks))
    nearest = {(end + _BLOCK // 2) // _BLOCK * _BLOCK for end in ends}
    bounds = sorted({0, *(end for end in nearest if end < elements), elements})
    return tuple(after - before for before, after in itertools.pairwise(bounds))


def rechunk(x: Any, chunks: dict[int, tuple[int, ...]]) -> Any:
    """Rechunk these axes; split the others if the chunks would become too large."""
    limit = max(_bytes(x, x.chunks), parse_bytes(dask.config.get("array.chunk-size")))
    new: list[Any] = [chunks.get(axis, before) for axis, before in enumerate(x.chunks)]
    if _bytes(x, new) > limit:
        new = [chunks.get(axis, "auto") for axis in range(x.ndim)]
    return x.rechunk(tuple(new), block_size_limit=limit, method="tasks")


def _bytes(x: Any, chunks: Sequence[tuple[int, ...]]) -> int:
    """Return the size of the largest of these chunks."""
    size: int = x.dtype.itemsize * math.prod(max(sizes) for sizes in chunks)
    return size


def _sums(groups: Any, top: Any) -> Any:
    """Return the sums excluding and including the maximum, and the number of maxima.

    The three are entries of a new last axis.
    """
    token = tokenize(groups, top)
    chunk, lanes, sums = (f"log_softmax-{name}-{token}" for name in ("chunk", "lanes", "sum"))
    graph: dict[Any, Any] = {}
    *kept, chunks = groups.numblocks
    for index in itertools.product(*map(range, kept)):
        maxima = (top.name, *index)
        before: Any = None
        for i in range(chunks):
            key = (*index, i)
            graph[(chunk, *key)] = (_chunk_lanes, (groups.name, *key), maxima)
            graph[(lanes, *key)] = (_add, (chunk, *key), before)
            before = (lanes, *key)
        graph[(sums, *index, 0)] = (_sum, before, maxima)
    layers = HighLevelGraph.from_collections(sums, graph, dependencies=[groups, top])
    meta = np.empty((0,) * groups.ndim, np.float64)
    return da.Array(layers, sums, (*groups.chunks[:-1], (3,)), meta=meta)


# Functions that run in the workers


def _max(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Return the maximum, ignoring NaN, which x - max brings back later."""
    require_unmasked("log_softmax", "input", x)
    with np.errstate(invalid="ignore"):
        maximum: Any = np.fmax
        return np.asarray(maximum.reduce(x, axis=axis, keepdims=keepdims))


def _rows(x: Array, top: Array) -> tuple[Array, Array]:
    """Return the groups of a chunk as rows, and their maxima."""
    return np.ascontiguousarray(x).reshape(top.size, -1), top.astype(np.float32).ravel()


def _chunk_lanes(x: Array, top: Array) -> _Lanes:
    """Return the lanes of each block of a chunk."""
    return _core.log_softmax_sums(*_rows(x, top))


def _add(chunk: _Lanes, before: _Lanes | None) -> _Lanes:
    """Add the blocks of a chunk to those before, in their order."""
    blocks, maxima = chunk
    lanes = np.zeros(blocks[:, 0].shape) if before is None else before[0]
    for i in range(blocks.shape[1]):
        lanes = lanes + blocks[:, i]
    return lanes, maxima if before is None else before[1] + maxima


def _sum(lanes: _Lanes, top: Array) -> Array:
    """Add lane j + 8 to lane j, then j + 4, ..."""
    sums, maxima = lanes
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    return np.column_stack([sums[:, 0], maxima]).reshape((*top.shape, 3))


def _finish(x: Array, top: Array, sums: Array, *, reduced: tuple[int, ...]) -> Array:
    """Return x - max - ln(1 + sum) for a chunk of any shape."""
    order = [axis for axis in range(x.ndim) if axis not in reduced] + list(reduced)
    moved = x.transpose(order)
    table = sums.reshape(-1, 3)
    result: Array = _core.log_softmax_finish(*_rows(moved, top), table[:, :2], table[:, 2])
    return np.transpose(result.reshape(moved.shape), np.argsort(order))
