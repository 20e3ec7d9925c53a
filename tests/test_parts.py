"""Few long groups, which threads compute in parts: the bits of one thread."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from reference import FLOATS, as_tuple, assert_same_bits
from variants import small_shards

import dmlops
from dmlops import BufferTensorDesc, Device

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


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "hardmax"])
def test_rows_of_the_softmax_family(name: str, kind: str, dtype: str) -> None:
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


def moment_operands(
    random: Random, sizes: tuple[int, ...], axes: tuple[int, ...], dtype: str
) -> tuple[list[Array], list[Array]]:
    """Return operands with an element for each element, and those with one for each group."""
    full = []
    for seed in (1, 2):
        order = list(range(len(sizes)))
        if random.random() < 0.5:
            random.shuffle(order)
        padding = [random.choice((0, 0, 3)) for _ in sizes]
        shape = [sizes[axis] + more for axis, more in zip(order, padding, strict=True)]
        memory = samples.uniform(shape, dtype, -3, 4, seed=seed)
        view = memory[tuple(slice(sizes[axis]) for axis in order)]
        full.append(view.transpose(np.argsort(order)))
    own = tuple(1 if axis in axes else size for axis, size in enumerate(sizes))
    odd = (np.arange(np.prod(own)).reshape(own) + random.randint(0, 1)) % 2 == 1
    full[0] += np.where(odd, 40, 0).astype(dtype)  # whose means are far from 0
    return full, [samples.uniform(own, dtype, 0.5, 2, seed=seed) for seed in (3, 4, 5)]


# The sizes of the array, and the axes of a group.
LONG_GROUPS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2048,), (0,)),
    ((70_003,), (0,)),
    ((3, 20_000), (1,)),
    ((2, 5, 3001), (0, 2)),  # several runs
    ((3, 1, 64, 70), (0, 2, 3)),
    ((300, 2, 49), (0, 2)),  # short runs
    ((2, 900, 2, 3), (0, 1, 3)),
    ((9001, 5), (0,)),  # groups side by side
    ((3, 4000, 2), (1,)),
    ((4000, 20), (0,)),
)


@pytest.mark.usefixtures("isa", "policy")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("sizes", "axes"), LONG_GROUPS, ids=str)
def test_normalizations(sizes: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    random = Random(str((sizes, dtype)))
    for count in (2, 3, 7, 16, 100):
        (x, other), (a, b, c) = moment_operands(random, sizes, axes, dtype)
        for name, operands, options in (
            ("mean_variance_normalization", (x, a, b), {"axes": axes}),
            ("mean_variance_normalization", (x, other, b), {"axes": axes, "use_mean": False}),
            ("batch_normalization_training", (x, a, b, other), {"fused_activation": "relu"}),
            ("batch_normalization_grad", (x, other, a, b, c), {}),
            ("batch_normalization_training_grad", (x, other, a, b, c), {}),
        ):
            function: Any = getattr(dmlops, name)
            with dmlops.num_threads(1):
                expected = function(*operands, **options)
            in_place = x.copy("K")
            out = (in_place, None, None) if isinstance(expected, tuple) else in_place
            with small_shards(count):
                results = function(*operands, **options)
                function(in_place, *operands[1:], out=out, **options)
            expected = as_tuple(expected)
            for result, of_one_thread in zip(as_tuple(results), expected, strict=True):
                assert_same_bits(result, of_one_thread, f"{name}, {count} threads")
            assert_same_bits(in_place, expected[0], f"{name} in place, {count} threads")


@pytest.mark.usefixtures("isa", "policy")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes", [(9, 4000), (33, 4000), (40, 3000), (5, 20_000)])
def test_scale_and_bias_that_groups_share(sizes: tuple[int, int], dtype: str) -> None:
    x = samples.uniform(sizes, dtype, -3, 5, seed=1)
    scale, bias = (samples.uniform((1, sizes[1]), dtype, 0.5, 2, seed=seed) for seed in (2, 3))
    with dmlops.num_threads(1):
        expected = dmlops.mean_variance_normalization(x, scale, bias, axes=[1])
    for count in (2, 7, 16, 64):
        with small_shards(count):
            result = dmlops.mean_variance_normalization(x, scale, bias, axes=[1])
        assert_same_bits(result, expected, f"{count} threads")


def test_order_of_blocks() -> None:
    """The exact sum is 0, so that the mean is the rounding errors, which depend on the order."""
    random = np.random.default_rng(1)
    values = np.ldexp(random.uniform(1, 2, 40_000), random.integers(-40, 41, 40_000))
    values = values.astype(np.float32)
    x = random.permutation(np.concatenate([values, -values])).reshape(1, -1)
    one = np.ones((1, 1), np.float32)
    with dmlops.num_threads(1):
        expected = dmlops.batch_normalization_training(x, one, one)[1]
    assert expected != 0
    for count in (2, 3, 7, 16):
        with small_shards(count):
            mean = dmlops.batch_normalization_training(x, one, one)[1]
        assert_same_bits(mean, expected, f"{count} threads")


@pytest.mark.parametrize("dtype", FLOATS)
def test_compiled_operators(dtype: str) -> None:
    sizes, axes = (2, 3, 4001), (0, 2)
    (x, other), (a, b, c) = moment_operands(Random(dtype), sizes, axes, dtype)
    x, other = map(np.ascontiguousarray, (x, other))
    with dmlops.num_threads(1):
        expected = dmlops.batch_normalization_training_grad(x, other, a, b, c)
    outputs = [np.empty_like(array) for array in expected]
    inputs = [x, other, a, b, c]
    names = ["input", "input_gradient", "mean", "variance", "scale"]
    names += ["output_gradient", "output_scale_gradient", "output_bias_gradient"]
    tensors: Any = {
        f"{name}_tensor": BufferTensorDesc.from_array(array)
        for name, array in zip(names, [*inputs, *outputs], strict=True)
    }
    compiled = Device().compile(dmlops.BatchNormalizationTrainingGradOperatorDesc(**tensors))
    for count in (2, 7, 16):
        with small_shards(count):
            compiled.dispatch(inputs, outputs)
        for result, of_one_thread in zip(outputs, expected, strict=True):
            assert_same_bits(result, of_one_thread, f"{count} threads")
