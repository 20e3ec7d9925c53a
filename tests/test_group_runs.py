"""Groups in runs, across memory, reversed or at any address: the bits are those of dense groups."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from layouts import Placed, dense_strides
from variants import small_shards

import dmlops

Array = npt.NDArray[Any]

pytestmark = pytest.mark.usefixtures("isa")

# Batch, channels, height and width: runs that are packed through a table, packed, read in place as
# whole steps of lanes and otherwise; tiles of whole groups, of whole runs, and within runs; several
# groups in place, shorter and longer than a tile.
SIZES = [
    (40, 3, 7, 7),
    (30, 17, 7, 7),
    (9, 70, 2, 2),
    (100, 5, 4, 4),
    (300, 6, 4, 4),
    (25, 3, 14, 6),
    (3, 2, 9, 8),
    (40, 3, 14, 14),
    (5, 3, 23, 23),
    (3, 2, 55, 55),
    (2, 2, 64, 64),
    (2, 1, 91, 97),
    (4, 40, 14, 14),
    (16, 20, 10, 15),
    (3, 19, 41, 50),
]


def dense(array: Array) -> Array:
    """Return a copy of a tensor in whose memory each channel's elements are contiguous."""
    return np.ascontiguousarray(array.swapaxes(0, 1)).swapaxes(0, 1)


def results(x: Array, g: Array, parameters: list[Array]) -> Iterator[Array]:
    mean, variance, scale, bias = parameters
    axes = (0, 2, 3)
    yield from dmlops.batch_normalization_grad(x, g, mean, variance, scale)
    yield from dmlops.batch_normalization_training_grad(x, g, mean, variance, scale)
    yield from dmlops.batch_normalization_training(x, scale, bias, g, fused_activation="relu")
    yield dmlops.mean_variance_normalization(x, axes=axes)
    yield dmlops.mean_variance_normalization(x, g, x[:1], axes=axes)
    yield dmlops.hardmax(x, axes=axes)
    yield dmlops.softmax(x, axes=axes)


@pytest.mark.parametrize("offset", [0, 300], ids=["near-zero", "far-from-zero"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "x".join(map(str, sizes)))
def test_runs(sizes: tuple[int, ...], dtype: type[np.floating[Any]], offset: int) -> None:
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(sizes) + offset).astype(dtype)
    g = rng.standard_normal(sizes).astype(dtype)
    x[0, 0, 0, 0] = -0.0
    parameters = [(rng.random((1, sizes[1], 1, 1)) + 0.5).astype(dtype) for _ in range(4)]
    for threads in (1, 2):
        with dmlops.num_threads(threads):
            pairs = zip(
                results(x, g, parameters), results(dense(x), dense(g), parameters), strict=True
            )
            for result, expected in pairs:
                assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_short_runs_beyond_the_caches(dtype: type[np.floating[Any]]) -> None:
    """Runs of 256 bytes, read in the order of memory in place, and of 128 bytes, packed."""
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((2, 530, 64, 8, 8), np.float32).astype(dtype)
    one = np.ones((1, 64, 1, 1), dtype)
    with dmlops.num_threads(1):
        for function, operands in (
            (dmlops.batch_normalization_training, (x, one, one)),
            (dmlops.batch_normalization_training_grad, (x, g, one, one, one)),
        ):
            expected = function(*map(dense, operands))
            for result, of_dense in zip(function(*operands), expected, strict=True):
                assert result.tobytes() == of_dense.tobytes()


@pytest.mark.parametrize("threads", [1, 8])
def test_runs_of_one_operand(threads: int) -> None:
    """Padded rows in the input, none in the output, and the reverse; several tiles."""
    x = np.random.default_rng(1).standard_normal((2, 128, 300)).astype(np.float32)
    padded, packed = x[:, :, :256], x[:, :, :256].copy()
    with dmlops.num_threads(threads):
        expected = dmlops.mean_variance_normalization(packed, axes=(1, 2))
        result = dmlops.mean_variance_normalization(padded, axes=(1, 2), out=np.empty_like(packed))
        assert result.tobytes() == expected.tobytes()
        out = np.empty_like(x)[:, :, :256]
        dmlops.mean_variance_normalization(packed, axes=(1, 2), out=out)
        assert out.tobytes() == expected.tobytes()


def forwards(array: Array) -> Array:
    """Return a copy of a tensor."""
    return array.copy()


def backwards(array: Array) -> Array:
    """Return a copy of a tensor in whose memory the channels have the reverse order."""
    return np.ascontiguousarray(array[:, ::-1])[:, ::-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("channels", [9, 64, 70, 200, 520])
def test_reversed_groups(channels: int, dtype: type[np.floating[Any]]) -> None:
    """Every combination of operands, and of the outputs with an element for each channel."""
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((2, 70, channels, 1, 1)).astype(dtype)
    x[:, 1] += 300  # far from 0
    parameters = [(rng.random((1, channels, 1, 1)) + 0.5).astype(dtype) for _ in range(4)]
    expected = [result.tobytes() for result in results(x, g, parameters)]
    for which in itertools.product((forwards, backwards), repeat=3):
        of_x, of_g, of_parameters = which
        given = of_x(x), of_g(g), [of_parameters(p) for p in parameters]
        assert [result.tobytes() for result in results(*given)] == expected, which
    for of_x, of_output, of_parameters in itertools.product((forwards, backwards), repeat=3):
        scale, bias, mean, variance = (of_parameters(p) for p in parameters)
        out = of_output(x), of_parameters(mean), of_parameters(variance)
        dmlops.batch_normalization_training(of_x(x), scale, bias, out=out)
        plain = dmlops.batch_normalization_training(x, scale, bias)
        assert [r.tobytes() for r in out] == [r.tobytes() for r in plain]
        in_place = of_x(x)
        dmlops.batch_normalization_training(in_place, scale, bias, out=(in_place, *out[1:]))
        assert in_place.tobytes() == plain[0].tobytes()


# Batch, channels, height and width: rows of several dimensions in whole tiles, cut by the ends of
# tiles, and too long for a table; few rows; rows in long tiles.
ACROSS_SIZES = [
    (40, 9, 5, 7),
    (20, 3, 12, 30),
    (100, 20, 4, 4),
    (17, 5, 31, 32),
    (3, 2, 40, 41),
    (20, 2, 40, 41),
    (70, 2, 24, 33),
]


def across(array: Array, gap: int = 1) -> Array:
    """Return a copy with the batch contiguous in memory, and gaps in height and width."""
    n, c, h, w = array.shape
    memory = np.full((c, h + gap, w + gap, n), 7, array.dtype)
    memory[:, :h, :w] = array.transpose(1, 2, 3, 0)
    return memory[:, :h, :w].transpose(3, 0, 1, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("sizes", ACROSS_SIZES, ids=lambda sizes: "x".join(map(str, sizes)))
def test_groups_across_memory(sizes: tuple[int, ...], dtype: type[np.floating[Any]]) -> None:
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((2, *sizes)).astype(dtype)
    parameters = [(rng.random((1, sizes[1], 1, 1)) + 0.5).astype(dtype) for _ in range(4)]
    expected = [result.tobytes() for result in results(dense(x), dense(g), parameters)]
    for threads in (1, 2, 5):
        with small_shards(threads, split_threshold=1000):
            found = [result.tobytes() for result in results(across(x), across(g), parameters)]
            assert found == expected
            found = [result.tobytes() for result in results(across(x), dense(g), parameters)]
            assert found == expected
            given = across(x, gap=0), across(g, gap=0)
            assert [result.tobytes() for result in results(*given, parameters)] == expected
    reductions = (dmlops.softmax, dmlops.log_softmax, dmlops.hardmax)
    for function in (*reductions, dmlops.mean_variance_normalization):
        of_dense = function(dense(x), axes=(0, 2, 3))
        layouts = (across(x), across(x, gap=0), x.copy())
        for given, out in itertools.product((across(x), across(x, gap=0), x), layouts):
            function(given, axes=(0, 2, 3), out=out)
            assert out.tobytes() == of_dense.tobytes(), function
            gaps = out.base
            if gaps is not None:
                out[...] = 7
                assert (gaps == 7).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("channels", [2, 4, 10, 33])
@pytest.mark.parametrize("pixels", [49, 400, 3000])
def test_groups_of_channels_last(pixels: int, channels: int, dtype: type[np.floating[Any]]) -> None:
    """Batch, groups, channels of a group, pixels: group normalization with channels last."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, pixels, 17, channels)).astype(dtype).transpose(0, 2, 3, 1)
    scale, bias = (rng.random((1, 17, channels, 1)).astype(dtype) for _ in range(2))
    packed = np.ascontiguousarray(x)
    cases: list[tuple[Array | None, Array | None]] = [(None, None), (scale, bias)]
    for a, b in cases:
        expected = dmlops.mean_variance_normalization(packed, a, b, axes=(2, 3))
        for threads in (1, 40):
            with small_shards(threads, split_threshold=1000):
                for out in (np.empty_like(x), np.empty_like(packed), x.copy(order="K")):
                    given = out if threads == 1 and out.strides == x.strides else x
                    given[...] = packed
                    dmlops.mean_variance_normalization(given, a, b, axes=(2, 3), out=out)
                    assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("channels", [3, 90])  # 90: several tiles
@pytest.mark.parametrize("pixels", [47, 48, 49, 56, 63, 64])
def test_parameters_of_runs(pixels: int, channels: int, dtype: type[np.floating[Any]]) -> None:
    """A scale and a bias for each channel of a group have the bits of those for each element."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 3, channels, pixels)).astype(dtype)
    scale, bias = (rng.standard_normal((1, 3, channels, 1)).astype(dtype) for _ in range(2))
    dense_scale, dense_bias = (
        np.ascontiguousarray(np.broadcast_to(p, x.shape)) for p in (scale, bias)
    )
    for options in ({}, {"fused_activation": "relu"}, {"use_mean": False}):
        for s, b, s_dense, b_dense in (
            (scale, bias, dense_scale, dense_bias),
            (scale, None, dense_scale, None),
        ):
            result = dmlops.mean_variance_normalization(x, s, b, axes=(2, 3), **options)
            expected = dmlops.mean_variance_normalization(
                x, s_dense, b_dense, axes=(2, 3), **options
            )
            assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("length", [256, 4080, 4096])  # 4096: too long to be copied
def test_shared_rows_at_any_address(length: int, dtype: type[np.floating[Any]]) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((16, length)).astype(dtype)
    scale, bias = (rng.random((1, length)).astype(dtype) for _ in range(2))
    # With fewer than 16 groups, scale and bias are not copied.
    parts = (
        dmlops.mean_variance_normalization(part, scale, bias, axes=1) for part in (x[:8], x[8:])
    )
    expected = np.concatenate(list(parts))

    def placed(values: Array, elements: int) -> Placed:
        strides = dense_strides(values.shape, values.itemsize)
        return Placed(values.shape, dtype, strides, elements * values.itemsize).fill(values)

    for shifts in itertools.product((0, 3, 15), repeat=3):
        a, b, out = map(placed, (scale, bias, x), shifts)
        with dmlops.num_threads(1):
            dmlops.mean_variance_normalization(x, a.view, b.view, axes=1, out=out.view)
        assert out.view.tobytes() == expected.tobytes(), shifts
        out.assert_canaries(shifts)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_tiles_of_many_runs(dtype: type[np.floating[Any]]) -> None:
    """Tiles of 64 runs, and of 65 where a part begins within a run."""
    x = np.random.default_rng(3).standard_normal((2, 200, 320)).astype(dtype)[..., :301]
    for function in (dmlops.mean_variance_normalization, dmlops.hardmax):
        expected = function(x.copy(), axes=(1, 2))
        for threads in (1, 5):
            with small_shards(threads):
                assert function(x, axes=(1, 2)).tobytes() == expected.tobytes()
