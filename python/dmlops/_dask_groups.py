"""Reductions over chunked axes of a dask array, bit-identical to the unchunked computation.

Each lane of a sum adds its elements of a block of 1,024; the blocks are added in float64, in order
(docs/reproducibility.md). So the group is laid out along one axis whose chunks end where blocks do.
Each chunk becomes the lanes of its blocks, on its own; these are added in order, chunk after chunk,
and the sum goes back to the chunks as they were. A group no longer than a block is merged into one
chunk instead.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.utils import parse_bytes

from dmlops import _core
from dmlops._foreign import require_unmasked, type_name

Array = npt.NDArray[Any]
BLOCK: int = _core.SUM_BLOCK


def normalized_axes(x: Any, axes: Any) -> tuple[int, ...]:
    """Return valid axes, one or a tuple, in ascending order and counted from the first."""
    items = axes if isinstance(axes, tuple) else (axes,)
    return tuple(sorted(operator.index(axis) % max(x.ndim, 1) for axis in items))


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


def fits_block(x: Any, reduced: tuple[int, ...]) -> bool:
    """Return True if groups are to be merged into one chunk: up to a block, or of no elements."""
    return 0 in x.shape or math.prod(x.shape[axis] for axis in reduced) <= BLOCK


def kept_axes(x: Any, reduced: Sequence[int]) -> tuple[int, ...]:
    """Return the axes that count groups."""
    return tuple(axis for axis in range(x.ndim) if axis not in reduced)


def as_rows(x: Any, reduced: tuple[int, ...]) -> Any:
    """Lay groups out along the last axis, whose chunks end where blocks do."""
    kept = kept_axes(x, reduced)
    elements = math.prod(x.shape[axis] for axis in reduced)
    rows = x.transpose(kept + reduced).reshape((*(x.shape[axis] for axis in kept), elements))
    return rechunk(rows, {len(kept): _whole_blocks(rows.chunks[-1])})


def _whole_blocks(chunks: tuple[int, ...]) -> tuple[int, ...]:
    """Round the ends of chunks to multiples of a block."""
    *ends, elements = (int(end) for end in np.cumsum(chunks))
    nearest = {(end + BLOCK // 2) // BLOCK * BLOCK for end in ends}
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


def add_blocks(
    function: Callable[[list[Array], list[Array]], Array],
    rows: Sequence[Any],
    of_groups: Sequence[Any],
    width: int,
) -> Any:
    """Return the sums of the lanes of all blocks of each group: `width` numbers, the last axis.

    `function` computes those of each block from a chunk of each of `rows`, and from the parts of
    `of_groups`, whose axes are those of groups, and perhaps a further one of one chunk.
    """
    token = tokenize(function, *rows, *of_groups)
    chunk, sums = (f"{name}-{token}" for name in ("lanes-of-blocks", "sums-of-groups"))
    graph: dict[Any, Any] = {}
    *kept, chunks = rows[0].numblocks
    for index in itertools.product(*map(range, kept)):
        known = [(x.name, *index, *(0 for _ in range(x.ndim - len(kept)))) for x in of_groups]
        before: Any = None
        for i in range(chunks):
            graph[(chunk, *index, i)] = (function, [(x.name, *index, i) for x in rows], known)
            key = (sums, *index, 0) if i == chunks - 1 else (f"{sums}-part", *index, i)
            graph[key] = (_add, (chunk, *index, i), before)
            before = key
    layers = HighLevelGraph.from_collections(sums, graph, dependencies=[*rows, *of_groups])
    meta = np.empty((0,) * rows[0].ndim, np.float64)
    return da.Array(layers, sums, (*rows[0].chunks[:-1], (width,)), meta=meta)


def finish(
    function: Callable[..., Any],
    x: Any,
    others: Sequence[Any],
    of_groups: Sequence[Any],
    *,
    reduced: tuple[int, ...],
    dtype: Any,
) -> Any:
    """Apply a function to each chunk of the input, with the numbers of its groups."""
    kept = kept_axes(x, reduced)
    pairs = [(array, range(x.ndim)) for array in others]
    chunks = tuple(x.chunks[axis] for axis in kept)
    for array in of_groups:
        axes = (*kept, *range(x.ndim, x.ndim + array.ndim - len(kept)))
        pairs.append((array.rechunk((*chunks, *array.chunks[len(kept) :])), axes))  # type: ignore[arg-type]
    return da.blockwise(
        function,
        range(x.ndim),
        x,
        range(x.ndim),
        *itertools.chain(*pairs),
        concatenate=True,  # the last axis of sums, which is one chunk
        align_arrays=False,
        dtype=dtype,
        meta=np.empty((0,) * x.ndim, dtype),
        token=f"finish-{tokenize(function, x, *others, *of_groups)}",
    )


# softmax, log_softmax and hardmax


def softmax(name: str, x: Any, reduced: tuple[int, ...]) -> Any:
    """Return the lazy result of softmax or log_softmax."""
    top = _top(np.fmax, x, reduced)
    rows = as_rows(x, reduced)
    width = _core.SUM_LANES * (2 if name == "log_softmax" else 1) + 1
    known = [top.rechunk(rows.chunks[:-1])]
    sums = add_blocks(partial(_softmax_lanes, name), [rows], known, width)
    return finish(
        partial(_softmax, name, reduced), x, [], [top, sums], reduced=reduced, dtype=x.dtype
    )


def hardmax(x: Any, reduced: tuple[int, ...]) -> Any:
    """Return the lazy result: 1 at the first maximum, or at the first NaN."""
    position: Any = 0
    for axis in reduced:
        along = tuple(slice(None) if d == axis else None for d in range(x.ndim))
        indices = da.arange(x.shape[axis], chunks=(x.chunks[axis],))[along]
        position = position * x.shape[axis] + indices
    top = _top(np.maximum, x, reduced, keepdims=True)
    is_top = (x == top) | da.isnan(x)
    first = da.where(is_top, position, np.iinfo(np.int64).max).min(axis=reduced, keepdims=True)
    return (position == first).astype(x.dtype)


def _top(maximum: Any, x: Any, reduced: tuple[int, ...], keepdims: bool = False) -> Any:
    function = partial(_max, maximum)
    meta = np.empty((0,) * (x.ndim if keepdims else x.ndim - len(reduced)), x.dtype)
    return da.reduction(
        x, function, function, axis=reduced, keepdims=keepdims, dtype=x.dtype, meta=meta
    )


# Functions that run in the workers


def _add(chunk: Array, before: Array | None) -> Array:
    """Add the blocks of a chunk to those before, in their order."""
    blocks = [chunk[..., i, :] for i in range(chunk.shape[-2])]
    # Infinite sums of exp(x) are replaced by those of exp(x - max).
    with np.errstate(all="ignore"):
        total = blocks[0] if before is None else before + blocks[0]
        for block in blocks[1:]:
            total = total + block
    return np.asarray(total)


def require_block(name: str, argument: str, block: Any, dtype: np.dtype[Any]) -> Array:
    """Return a block; raise TypeError if it is not what its dask.array declares."""
    require_unmasked(name, argument, block)
    if not isinstance(block, np.ndarray) or block.dtype != dtype:
        given = block.dtype if isinstance(block, np.ndarray) else type_name(block)
        raise TypeError(
            f"{name}: {argument} is a dask.array of {dtype.name}, but has a block of {given}; "
            "convert the blocks where they are made"
        )
    return block


def _max(maximum: Any, x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Return the maximum; numpy.fmax ignores NaN, which the last step brings back."""
    with np.errstate(invalid="ignore"):
        return np.asarray(maximum.reduce(x, axis=axis, keepdims=keepdims))


def _table(x: Array, top: Array) -> tuple[Array, Array]:
    """Return the groups of a chunk as rows, and their maxima."""
    return np.ascontiguousarray(x).reshape(top.size, -1), top.astype(np.float32).ravel()


def _softmax_lanes(name: str, rows: list[Array], known: list[Array]) -> Array:
    """Return the lanes of each block of a chunk, and behind them the number of maxima."""
    (top,) = known
    lanes, maxima = _core.softmax_sums(name, *_table(rows[0], top))
    counts = np.zeros((*lanes.shape[:2], 1))
    counts[:, 0, 0] = maxima
    all_lanes = np.concatenate([lanes.reshape(*lanes.shape[:2], -1), counts], axis=2)
    return all_lanes.reshape(*top.shape, *all_lanes.shape[1:])


def _softmax(name: str, reduced: tuple[int, ...], x: Array, top: Array, sums: Array) -> Array:
    """Return the results of a chunk of any shape."""
    order = [*kept_axes(x, reduced), *reduced]
    moved = x.transpose(order)
    lanes = sums[..., :-1].reshape(top.size, _core.SUM_LANES, -1)
    with np.errstate(all="ignore"):  # as in _add
        while lanes.shape[1] > 1:  # adds lane j + 8 to lane j, then j + 4, ...
            half = lanes.shape[1] // 2
            lanes = lanes[:, :half] + lanes[:, half:]
    maxima = np.ascontiguousarray(sums[..., -1]).ravel()
    result = _core.softmax_finish(name, *_table(moved, top), lanes[:, 0], maxima)
    return np.transpose(result.reshape(moved.shape), np.argsort(order))
