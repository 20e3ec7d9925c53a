"""The elementwise operators with two inputs against NumPy, over dtypes and layouts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from descriptors import data_types
from reference import FLOATS, INTEGERS, assert_same_values
from two_inputs import clip_grad, parameterized_relu, relu_grad

import dmlops

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]
SHAPES = ((), (0, 3), (1,), (7,), (1031,), (3, 1, 129), (70, 83), (5, 3, 4, 2, 3))


OPERATORS: dict[str, tuple[Callable[..., Array], Callable[..., Array], tuple[str, ...]]] = {
    "parameterized_relu": (
        dmlops.parameterized_relu,
        parameterized_relu,
        data_types("parameterized_relu"),
    ),
    "relu_grad": (dmlops.relu_grad, relu_grad, data_types("relu_grad")),
    "clip_grad": (
        lambda x, g, **more: dmlops.clip_grad(x, g, -1, 2, **more) if x.dtype.kind != "u"
        else dmlops.clip_grad(x, g, 3, 200, **more),
        lambda x, g: clip_grad(x, g, *((-1, 2) if x.dtype.kind != "u" else (3, 200))),
        FLOATS + INTEGERS,
    ),
}  # fmt: skip


def pair(shape: tuple[int, ...], dtype: str) -> tuple[Array, Array]:
    x, other = (samples.any_bits(shape, dtype, seed=seed) for seed in (1, 2))
    if dtype in FLOATS:
        near = samples.uniform(shape, dtype, -3, 3)
        x = np.where(samples.hashed(math.prod(shape), 3).reshape(shape) % 4 > 0, near, x)
    return x, other


def in_layout(a: Array, layout: str) -> Array:
    """Return the values in another layout."""
    if a.ndim == 0:
        return a
    if layout == "reversed":
        return np.ascontiguousarray(a[::-1])[::-1]
    if layout == "transposed":
        return np.ascontiguousarray(a.T).T
    if layout == "stepped":
        wide = np.zeros((*a.shape, 2), a.dtype)
        wide[..., 0] = a
        return wide[..., 0]
    return a


@pytest.mark.parametrize("name", OPERATORS)
def test_layouts(name: str) -> None:
    function, reference, dtypes = OPERATORS[name]
    layouts = ("dense", "transposed", "reversed", "stepped")
    for dtype, shape in itertools.product(dtypes, SHAPES):
        x, other = pair(shape, dtype)
        expected = reference(x, other)
        for first, second in itertools.product(layouts, repeat=2):
            context = f"{name} {dtype} {shape} {first} {second}"
            a, b = in_layout(x, first), in_layout(other, second)
            assert_same_values(function(a, b), expected, context)
            for shared in (0, 1):
                operands = [
                    in_layout(v.copy(), layout) for v, layout in ((x, first), (other, second))
                ]
                out = operands[shared]
                assert function(*operands, out=out) is out
                assert_same_values(out, expected, f"{context} in place of {shared}")


@pytest.mark.parametrize("name", OPERATORS)
def test_broadcast(name: str) -> None:
    """Operands that are constant along rows, or repeat in all rows, short and long ones."""
    function, reference, dtypes = OPERATORS[name]
    axes = [(first, second) for first in (None, 0, 1, 2) for second in (None, 0, 1, 2)]
    for dtype, length in itertools.product(dtypes, (3, 16, 31, 64, 200, 300)):
        for shape in ((6, 5, length), (2, 1, length)):
            x, other = pair(shape, dtype)
            for first, second in axes:
                a, b = (
                    v if axis is None else np.broadcast_to(v.take([1 % v.shape[axis]], axis), shape)
                    for v, axis in ((x, first), (other, second))
                )
                wide = np.zeros((*shape[:2], 2, length), x.dtype)
                for out in (np.empty_like(x), wide[:, :, 0], np.zeros(shape[::-1], x.dtype).T):
                    function(a, b, out=out)
                    context = f"{name} {dtype} {shape} {first} {second} {out.strides}"
                    assert_same_values(out, reference(a, b), context)


def test_slopes_of_channels() -> None:
    x = samples.uniform((3, 5, 7, 11), np.float32, -3, 3)
    slope = samples.uniform((1, 5, 1, 1), np.float32)
    expected = parameterized_relu(x, np.broadcast_to(slope, x.shape))
    assert_same_values(dmlops.parameterized_relu(x, slope), expected)
    for v in (x, x.T):
        with pytest.raises(ValueError, match=r"slope has shape \(5,\).*reshape"):
            dmlops.parameterized_relu(v, slope.ravel())


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_every_pair_of_bounds(dtype: str) -> None:
    x = np.concatenate([samples.specials(dtype), samples.any_bits((61,), dtype)])
    gradient = samples.any_bits(x.shape, dtype, seed=5)
    if dtype in FLOATS:
        info = np.finfo(dtype)
        tiny = float(info.smallest_subnormal)
        bounds: list[float | None] = [
            None,
            0.0,
            -0.0,
            -1.0,
            6,
            -tiny,
            tiny,
            float(info.max),
            math.inf,
            -math.inf,
        ]
    else:
        limits = np.iinfo(dtype)
        least, most = int(limits.min), int(limits.max)
        bounds = [None, least, least + 1, 0, 3, most - 1, most, least - 1, most + 1, -1e30, 1e30]
    for low, high in itertools.product([*bounds, math.nan], repeat=2):
        expected = clip_grad(x, gradient, low, high)
        context = f"{dtype} in ({low}, {high})"
        assert_same_values(dmlops.clip_grad(x, gradient, low, high), expected, context)
