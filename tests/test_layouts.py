"""Every operator on every layout: the bits of the dense array, and no byte written elsewhere."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from activation_rows import ROWS
from crossing import Operator, cross_layouts
from descriptors import ACTIVATIONS, data_types
from layouts import LAYOUTS, OUT_LAYOUTS, SHAPES, Layout, Placed
from operators import OPERATORS, moderate, normalize
from reference import FLOATS
from variants import ISAS, POLICIES, pairwise

import dmlops

Array = npt.NDArray[Any]


def _per_channel(x: Array, *, out: Array | None = None) -> Array:
    """Normalize with parameters along the second axis, and a fused activation."""
    sizes = [size if axis == 1 else 1 for axis, size in enumerate(x.shape)]
    values = [moderate(tuple(sizes), x.dtype, seed) for seed in range(4)]
    fused = ACTIVATIONS["leaky_relu"](alpha=0.25)
    return dmlops.batch_normalization(x, *values, fused_activation=fused, out=out)


def _full(x: Array, *, out: Array | None = None) -> Array:
    """Normalize with parameters for each element."""
    return normalize(x, [moderate(x.shape, x.dtype, seed) for seed in range(4)], out=out)


def _middle(x: Array, *, out: Array | None = None) -> Array:
    return dmlops.log_softmax(x, x.ndim // 2, out=out)


CALLS: dict[str, tuple[Operator, str]] = {
    **OPERATORS,
    **{
        f"{row.name}-{dtype}": (getattr(dmlops, row.name), dtype)
        for row in ROWS
        for dtype in data_types(row.name)
        if row.name not in OPERATORS
    },
    **{
        f"{name}-{dtype}": (operator, dtype)
        for dtype in FLOATS
        for name, operator in (
            ("batch_normalization-per_channel", _per_channel),
            ("batch_normalization-full", _full),
            ("log_softmax-middle", _middle),
        )
    },
}


@functools.cache
def values_for(shape: tuple[int, ...], dtype: str) -> Array:
    """Return any bit patterns of integers, and moderate values of floats."""
    if np.dtype(dtype).kind in "iu":
        values = samples.any_bits(shape, dtype, seed=9)
    else:
        values = samples.uniform(shape, dtype, -8, 8, seed=9)
    values.flags.writeable = False
    return values


def shapes_for(name: str) -> list[tuple[int, ...]]:
    """Return the shapes that the call takes."""
    return [shape for shape in SHAPES if shape or ("softmax" not in name and "hardmax" not in name)]


@pairwise(name=CALLS, layout=LAYOUTS, isa=ISAS, policy=POLICIES, rest=False)
def test_layouts(name: str, layout: Layout, isa: str, policy: str) -> None:
    """Each shape into a new array and into another layout; all pairs of layouts in turn."""
    operator, dtype = CALLS[name]
    first = LAYOUTS.index(layout) + list(CALLS).index(name)
    for i, shape in enumerate(shapes_for(name)):
        out = OUT_LAYOUTS[(first + i) % len(OUT_LAYOUTS)]
        cross_layouts(operator, values_for(shape, dtype), f"{name}, {isa}", [layout], [out])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CALLS)
def test_every_pair_of_layouts(name: str, isa: str, policy: str) -> None:
    operator, dtype = CALLS[name]
    for shape in shapes_for(name):
        cross_layouts(operator, values_for(shape, dtype), f"{name}, {isa}, {policy}")


def _clip_within(x: Array, what: str) -> None:
    """Clip into a part of an array, whose other elements must not change."""
    guard = 80
    whole = np.full(x.size + 2 * guard, 77, x.dtype)
    out = whole[guard:-guard].reshape(x.shape)
    dmlops.clip(x, 3, 100, out=out)
    np.testing.assert_array_equal(out, np.clip(x, 3, 100), err_msg=what)
    assert (np.r_[whole[:guard], whole[-guard:]] == 77).all(), what


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_rows_of_a_broadcast_column(dtype: str, isa: str) -> None:
    """Rows of less than a vector, of several, and of more than share their vectors."""
    column = samples.any_bits((700, 1), "uint8", seed=3).astype(dtype)
    for count, width in itertools.product((1, 2, 3, 700), range(1, 290, 3)):
        _clip_within(np.broadcast_to(column[:count], (count, width)), f"{count} x {width}")


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_columns_with_a_step(dtype: str, isa: str) -> None:
    """Columns whose elements are a few elements apart, as dense rows."""
    for step, columns, rows in itertools.product((2, 3, 4), (3, 4, 7, 8, 15, 17), (31, 64, 130)):
        x = samples.any_bits((columns, rows * step), "uint8", seed=5).astype(dtype)
        _clip_within(x[:, ::step].T, f"{rows} x {columns}, step {step}")


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_rows_that_share_cache_lines(dtype: str, isa: str) -> None:
    """Rows along two dimensions, few and many, that share each cache line of the input."""
    width = 32 // np.dtype(dtype).itemsize  # elements from one row of lines to the next
    for length, far, near in itertools.product((255, 257, 1030), (2, 3, 70, 150), (1, 2, width)):
        x = samples.any_bits((length, far, width), "uint8", seed=6).astype(dtype)
        _clip_within(x[:, :, :near].T, f"{near} x {far} x {length}")
        _clip_within(x[:, :, :near].transpose(1, 2, 0), f"{far} x {near} x {length}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_short_rows_with_parameters_of_their_own(dtype: str, isa: str) -> None:
    """Results of a few adjacent elements, for which parameters change along the other axis."""
    size = np.dtype(dtype).itemsize
    for images, rows, length in itertools.product((1, 3, 5), (63, 64, 300, 1030), range(1, 8)):
        values = samples.uniform((images, rows, length), dtype, -8, 8, seed=7)
        parameters = [samples.uniform((1, rows, 1), dtype, 0.5, 2, seed=i) for i in range(4)]
        long_rows = np.ascontiguousarray(values.transpose(0, 2, 1))
        expected = normalize(long_rows, [p.transpose(0, 2, 1) for p in parameters])
        for step in (1, -1, 2, 5):  # elements from one row to the next in the input
            x = np.empty((images, length, rows * abs(step)), dtype)[:, :, ::step].transpose(0, 2, 1)
            x[...] = values
            out = Placed(x.shape, dtype, (rows * length * size, length * size, size))
            normalize(x, parameters, out=out.view)
            what = f"{images} x {rows} x {length}, step {step}"
            assert out.view.transpose(0, 2, 1).tobytes() == expected.tobytes(), what
            out.assert_canaries(what)


@pytest.mark.parametrize("dtype", FLOATS)
def test_equal_rows_of_a_second_input(dtype: str, isa: str) -> None:
    """A slope that all rows share, but not all iterations of an outer loop."""
    for shape, order in (((3, 3, 150, 8), (0, 3, 2, 1)), ((3, 3, 50, 20, 40), (0, 3, 4, 2, 1))):
        x = samples.uniform(shape, dtype, -8, 8, seed=8).transpose(order)
        for axes in ((0, -2), (0, -1), (0, -2, -1)):
            kept = {axis % x.ndim for axis in axes}
            sizes = [n if axis in kept else 1 for axis, n in enumerate(x.shape)]
            slope = samples.uniform(sizes, dtype, 0.5, 2, seed=9)
            out = np.empty(x.shape, dtype)
            dmlops.parameterized_relu(x, slope, out=out)
            expected = np.where(x < 0, (x.astype(np.float32) * slope).astype(dtype), x)
            np.testing.assert_array_equal(out, expected, err_msg=f"{order}, {axes}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_results_that_trail_an_input(dtype: str, isa: str) -> None:
    """Results up to 1 KiB past an input modulo 1 MiB, as of arrays of whole MiB."""
    rows, columns, near = 3, 333, 1 << 20
    memory = np.zeros(near + (1 << 16), np.uint8)
    bytes_used = rows * columns * np.dtype(dtype).itemsize

    def placed(offset: int) -> Array:
        return memory[offset : offset + bytes_used].view(dtype).reshape(rows, columns)

    x, gradient = (samples.uniform((rows, columns), dtype, -8, 8, seed=i) for i in range(2))
    one = np.ones((rows, 1), dtype)
    placed(0)[...] = x
    calls: dict[str, Callable[[Array, Array], object]] = {
        "clip": lambda x, out: dmlops.clip(x, -1, 2, out=out),
        "normalization": lambda x, out: dmlops.mean_variance_normalization(x, axes=1, out=out),
        "gradients": lambda x, out: dmlops.batch_normalization_training_grad(
            x, gradient, 0 * one, one, one, out=(out, one.copy(), one.copy())
        ),
        "gradients of it": lambda x, out: dmlops.batch_normalization_grad(
            gradient, x, 0 * one, one, one, out=(out, one.copy(), one.copy())
        ),
    }
    for distance, (name, call) in itertools.product((16, 64, 512), calls.items()):
        expected, out = np.empty_like(x), placed(near + distance)
        call(x.copy(), expected)
        call(placed(0), out)
        assert out.tobytes() == expected.tobytes(), f"{name}, {distance} bytes"


@pytest.mark.parametrize("misalignment", [0, 4, 12])
def test_windows_that_overlap(misalignment: int, isa: str, policy: str) -> None:
    """Several axes of the input may have a stride of one element."""
    values = np.arange(2048, dtype=np.float32)
    shape = (100, 512, 2)
    x = np.lib.stride_tricks.as_strided(values, shape, (4, 4, 4), writeable=False)
    target = Placed(shape, np.float32, (4096, 8, 4), misalignment)
    dmlops.clip(x, 3, 400, out=target.view)
    np.testing.assert_array_equal(target.view, np.clip(x, 3, 400))
    target.assert_canaries()
