"""Named memory layouts: the same values as views of other strides, guarded by canary bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Strides = tuple[int, ...]

GUARD = 64  # canary bytes on either side: the widest vector
CANARY = 0xA5


def once(view: Array) -> tuple[slice, ...]:
    """Return the indices of each element once: the first ones along axes of stride 0."""
    return tuple(slice(0, 1) if stride == 0 else slice(None) for stride in view.strides)


class Placed:
    """A view inside a buffer of canary bytes, which must stay as they are outside its elements."""

    def __init__(
        self,
        shape: Sequence[int],
        dtype: npt.DTypeLike,
        strides: Sequence[int],
        misalignment: int = 0,
    ) -> None:
        dtype = np.dtype(dtype)
        steps = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
        empty = 0 in shape
        before = 0 if empty else -sum(step for step in steps if step < 0)
        after = dtype.itemsize + (0 if empty else sum(step for step in steps if step > 0))
        room = GUARD + before + after + GUARD + dtype.itemsize
        raw = np.full(room + GUARD, CANARY, np.uint8)
        aligned = -raw.ctypes.data % GUARD
        self.bytes: npt.NDArray[np.uint8] = raw[aligned : aligned + room]
        self._start = GUARD + before + misalignment
        self.view: Array = self._strided(self.bytes, dtype, tuple(shape), tuple(strides))

    @cached_property
    def _outside(self) -> npt.NDArray[np.bool_]:
        """The mask of the bytes outside the elements."""
        outside = np.ones(self.bytes.shape, bool)
        shape = (*self.view.shape, self.view.itemsize)
        self._strided(outside, bool, shape, (*self.view.strides, 1))[...] = False
        return outside

    @cached_property
    def _canaries(self) -> bytes:
        """The expected bytes outside the elements."""
        return bytes([CANARY]) * int(np.count_nonzero(self._outside))

    def _strided(
        self, buffer: Array, dtype: npt.DTypeLike, shape: Strides, strides: Strides
    ) -> Array:
        """Return a view of a buffer that has the size of `bytes`; as_strided is much slower."""
        return np.ndarray(shape, dtype, buffer, self._start, strides)

    def fill(self, values: npt.ArrayLike) -> Placed:
        """Store the values in the view; where elements share memory, the first of them stays."""
        first = once(self.view)
        whole = np.broadcast_to(np.asarray(values, self.view.dtype), self.view.shape)
        self.view[first] = whole[first]
        return self

    def clear(self) -> None:
        """Store canaries in the elements too, so that a missing write is seen."""
        self.bytes[...] = CANARY

    def assert_canaries(self, context: object = "") -> None:
        """Fail if a byte before, between or behind the view's elements has changed."""
        if self.bytes[self._outside].tobytes() == self._canaries:
            return
        touched = np.flatnonzero(self._outside & (self.bytes != CANARY))
        assert not touched.size, (
            f"{context}: {touched.size} bytes outside the view were written, the first one "
            f"{int(touched[0]) - GUARD:+d} bytes from the lowest element"
        )


def dense_strides(
    shape: Sequence[int], itemsize: int, order: Sequence[int] | None = None
) -> Strides:
    """Return packed strides; `order` lists the axes, slowest first (default: C)."""
    return padded_strides(shape, itemsize, order, lambda axis: 0)


def padded_strides(
    shape: Sequence[int], itemsize: int, order: Sequence[int] | None, gap: Callable[[int], int]
) -> Strides:
    """Return strides with `gap(position)` bytes after each run; position 0 is the fastest axis."""
    strides = [0] * len(shape)
    run = itemsize
    for position, axis in enumerate(reversed(range(len(shape)) if order is None else order)):
        run += gap(position)
        strides[axis] = run
        run *= max(shape[axis], 1)
    return tuple(strides)


@dataclass(frozen=True)
class Layout:
    """A rule that maps each shape to strides; `overlaps` if elements share memory."""

    name: str
    strides: Callable[[Strides, int], Strides]
    misalignment: int = 0
    read_only: bool = False
    overlaps: bool = False

    def place(self, shape: Sequence[int], dtype: npt.DTypeLike) -> Placed:
        """Return an unfilled view of this layout, canaries around and between its elements."""
        shape = tuple(shape)
        return Placed(
            shape, dtype, self.strides(shape, np.dtype(dtype).itemsize), self.misalignment
        )

    def view(self, values: Array) -> Array:
        """Return a view of the values (the first ones along an axis of stride 0) in this layout."""
        view = self.place(values.shape, values.dtype).fill(values).view
        if self.read_only:
            view.flags.writeable = False
        return view

    def __str__(self) -> str:
        return self.name


def _transposed(shape: Strides, itemsize: int) -> Strides:
    order = [*range(len(shape) - 2), *reversed(range(max(len(shape) - 2, 0), len(shape)))]
    return dense_strides(shape, itemsize, order)


def _rotated(shape: Strides, itemsize: int) -> Strides:
    return dense_strides(shape, itemsize, [*range(1, len(shape)), 0] if shape else [])


def _channels_last(shape: Strides, itemsize: int) -> Strides:
    axes = range(len(shape))
    order = [0, *axes[2:], 1] if len(shape) > 2 else list(axes)
    return dense_strides(shape, itemsize, order)


def _reversed_axes(which: Callable[[int, int], bool]) -> Callable[[Strides, int], Strides]:
    def strides(shape: Strides, itemsize: int) -> Strides:
        dense = dense_strides(shape, itemsize)
        return tuple(-s if which(axis, len(shape)) else s for axis, s in enumerate(dense))

    return strides


def _zeroed_axes(which: Callable[[int, int], bool]) -> Callable[[Strides, int], Strides]:
    def strides(shape: Strides, itemsize: int) -> Strides:
        kept = tuple(1 if which(axis, len(shape)) else size for axis, size in enumerate(shape))
        dense = dense_strides(kept, itemsize)
        return tuple(0 if which(axis, len(shape)) else s for axis, s in enumerate(dense))

    return strides


def _every_axis_stepped(shape: Strides, itemsize: int) -> Strides:
    return padded_strides(shape, itemsize, None, lambda position: itemsize)


def _shuffled_gaps(shape: Strides, itemsize: int) -> Strides:
    rank = len(shape)
    order = sorted(
        range(rank), key=lambda axis: (axis * 5 + 3) % 8
    )  # fixed, and no two axes adjacent
    padded = padded_strides(shape, itemsize, order, lambda position: itemsize * (position % 3))
    return tuple(-s if axis % 3 == 1 else s for axis, s in enumerate(padded))


def _odd_size_one(shape: Strides, itemsize: int) -> Strides:
    """Return arbitrary strides along axes of one element, which must be ignored."""
    dense = dense_strides(shape, itemsize)
    wild = (12345677, -(2**62) + 1, -1, 0, 2**62 - 1, 3, -3, 1)
    return tuple(
        wild[axis] if size == 1 else s
        for axis, (size, s) in enumerate(zip(shape, dense, strict=True))
    )


LAYOUTS: tuple[Layout, ...] = (
    Layout("c", dense_strides),
    Layout("fortran", lambda shape, item: dense_strides(shape, item, range(len(shape))[::-1])),
    Layout("transposed", _transposed),
    Layout("rotated", _rotated),
    Layout("channels-last", _channels_last),
    Layout("negative", _reversed_axes(lambda axis, rank: True)),
    Layout("negative-last", _reversed_axes(lambda axis, rank: axis == rank - 1)),
    Layout("negative-first", _reversed_axes(lambda axis, rank: axis == 0)),
    Layout(
        "every-second",
        lambda shape, item: padded_strides(shape, item, None, lambda p: item if p == 0 else 0),
    ),
    Layout(
        "every-fifth",
        lambda shape, item: padded_strides(shape, item, None, lambda p: 4 * item if p == 0 else 0),
    ),
    Layout("every-axis-stepped", _every_axis_stepped),
    Layout(
        "padded-rows",
        lambda shape, item: padded_strides(shape, item, None, lambda p: 3 * item if p == 1 else 0),
    ),
    Layout("shuffled-gaps", _shuffled_gaps),
    Layout("unaligned", dense_strides, misalignment=1),
    Layout(
        "unaligned-steps",
        lambda shape, item: padded_strides(shape, item, None, lambda p: 1 if p == 0 else 0),
        misalignment=1,
    ),
    Layout("odd-size-1", _odd_size_one),
    Layout("read-only", dense_strides, read_only=True),
    Layout("zero-first", _zeroed_axes(lambda axis, rank: axis == 0), overlaps=True),
    Layout("zero-last", _zeroed_axes(lambda axis, rank: axis == rank - 1), overlaps=True),
    Layout("zero-alternate", _zeroed_axes(lambda axis, rank: axis % 2 == 1), overlaps=True),
    Layout("zero-all", _zeroed_axes(lambda axis, rank: True), overlaps=True),
)
BY_NAME = {layout.name: layout for layout in LAYOUTS}
OUT_LAYOUTS = tuple(lay for lay in LAYOUTS if not (lay.overlaps or lay.read_only))

# Ranks 0 to 8; sizes of 1 and 0 among them; the larger ones keep a vector's tail in every axis.
SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (0,),
    (1,),
    (37,),
    (5, 19),
    (17, 4),
    (3, 0, 2),
    (2, 3, 35),
    (1, 9, 1),
    (2, 3, 5, 7),
    (2, 1, 4, 3, 5),
    (2, 2, 1, 3, 2, 3),
    (2, 1, 2, 3, 1, 2, 4),
    (2, 1, 2, 1, 2, 3, 2, 2),
)

# Around register widths, unrolled loops and chunks, with every remainder up to the widest register.
SIZES: tuple[int, ...] = (
    *range(71),
    *(127, 128, 129, 255, 256, 257, 511, 512, 513),
    *(1023, 1024, 1025, 4095, 4096, 4097),
)
LARGE = 1_048_583  # a prime above a mebi-element: enough work to start threads, no even split


def elements(shape: Sequence[int]) -> int:
    """Return the number of elements of the shape."""
    return math.prod(shape)
