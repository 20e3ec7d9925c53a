"""Normalization by own moments, and gradients, on dask arrays: bit-identical results."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from dask_arrays import expect, intermediate_blocks
from descriptors import NORMALIZATION_GRADIENTS
from reference import FLOATS, assert_same_bits

import dmlops as _dmlops

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

dmlops: Any = _dmlops  # its types are those of NumPy arrays
Array = npt.NDArray[Any]

RMS = {"use_mean": False}
CENTERED = {"use_variance": False}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("values", [{}, RMS, CENTERED, RMS | CENTERED], ids=str)
def test_mean_variance_normalization_over_chunked_axes(dtype: str, values: dict[str, Any]) -> None:
    x = samples.uniform((3, 12, 6, 70), dtype, -2, 8)  # all: 15120 elements
    parameters = [samples.uniform((1, 12, 1, 70), dtype, 0.5, 2, seed=i) for i in range(2)]
    for axes in ((3,), (1, 3), (2, 3), (0, 1, 2, 3), ()):
        for chunks in ((3, 5, 6, 70), (2, 8, 4, 33), (3, 6, 6, 1)):
            lazy = da.from_array(x, chunks=chunks)
            for given in ([], parameters):
                result = dmlops.mean_variance_normalization(lazy, *given, axes=axes, **values)
                expected = dmlops.mean_variance_normalization(x, *given, axes=axes, **values)
                expect(result, lazy, expected, (axes, chunks, len(given)))


@pytest.mark.parametrize("name", ["elu", "identity", "leaky_relu"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_fused_activations_over_chunked_axes(name: str, dtype: str) -> None:
    x = samples.uniform((4, 3000), dtype, 900, 1000)
    lazy = da.from_array(x, chunks=(4, 1000))
    desc = getattr(dmlops, f"Activation{name.title().replace('_', '')}OperatorDesc")
    for each in (name, desc, desc() if name == "identity" else desc(alpha=0.3)):
        result = dmlops.mean_variance_normalization(lazy, axes=1, fused_activation=each)
        expected = dmlops.mean_variance_normalization(x, axes=1, fused_activation=each)
        expect(result, lazy, expected, each)


def normalized_shapes() -> list[tuple[Any, ...]]:
    """Return shapes of the input and of its statistics, and chunks."""
    return [
        ((8, 5, 12, 20), (1, 5, 1, 1), (3, 5, 12, 20)),  # 1920 elements, in parts
        ((8, 5, 12, 20), (1, 5, 1, 1), (3, 2, 5, 20)),
        ((4, 6, 50), (1, 6, 1), (2, 4, 25)),  # 200, which are merged
        ((4, 6, 50), (1, 6, 1), (4, 3, 50)),  # whole groups
        ((4, 6, 50), (4, 6, 50), (2, 4, 25)),  # a group for each element
        ((3000, 2), (1, 2), (1000, 1)),
        ((5000,), (1,), (1300,)),
        ((3000, 2), (1, 2), ((1000, 0, 2000), (1, 0, 1))),
        ((3000, 1), (1, 1), ((1000, 0, 2000), (0, 1, 0))),
        ((1, 6), (1, 6), ((1, 0), (3, 3))),
        ((1,), (1,), (1,)),
        ((), (), ()),
    ]


def in_other_chunks(array: Array) -> Any:
    """Return a Dask array whose chunks differ from those of normalized_shapes."""
    return da.from_array(array, chunks=tuple(size // 4 + 2 for size in array.shape))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "of_groups", "chunks"), normalized_shapes(), ids=str)
def test_batch_normalization_training(dtype: str, shape: Any, of_groups: Any, chunks: Any) -> None:
    x, added = (samples.uniform(shape, dtype, 0, 8, seed=i) for i in range(2))
    scale, bias = (samples.uniform(of_groups, dtype, 0.5, 2, seed=i) for i in (2, 3))
    lazy = da.from_array(x, chunks=chunks)
    for given in ((scale, bias), (scale, bias, added)):
        for values in ({}, {"epsilon": 0.1, "fused_activation": "relu"}):
            expected = dmlops.batch_normalization_training(x, *given, **values)
            others = given if values else [in_other_chunks(each) for each in given]
            results = dmlops.batch_normalization_training(lazy, *others, **values)
            expect_several(results, expected, lazy)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "of_groups", "chunks"), normalized_shapes(), ids=str)
@pytest.mark.parametrize("name", NORMALIZATION_GRADIENTS)
def test_gradients(name: str, dtype: str, shape: Any, of_groups: Any, chunks: Any) -> None:
    x, gradient = (samples.uniform(shape, dtype, -2, 8, seed=i) for i in range(2))
    others = [samples.uniform(of_groups, dtype, 0.5, 2, seed=i) for i in (2, 3, 4)]
    lazy = da.from_array(x, chunks=chunks)
    function = getattr(dmlops, name)
    for epsilon in (1e-5, 0.1):
        expected = function(x, gradient, *others, epsilon)
        results = function(lazy, in_other_chunks(gradient), *others, epsilon=epsilon)
        expect_several(results, expected, lazy)


def expect_several(results: Any, expected: Any, x: Any) -> None:
    """Expect a tuple of lazy arrays, which can also be computed together."""
    assert isinstance(results, tuple)
    expect(results[0], x, expected[0])
    for lazy, array in zip(results[1:], expected[1:], strict=True):
        sizes = zip(array.shape, x.shape, x.chunks, strict=True)
        chunks = tuple((1,) if size == 1 != whole else part for size, whole, part in sizes)
        expect(lazy, da.empty(array.shape, chunks=chunks), array)
    for result, array in zip(dask.compute(*results), expected, strict=True):
        assert_same_bits(np.asarray(result), array)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normalization_of_special_values(dtype: str) -> None:
    """NaN, infinities, large means, an overflowing variance, and a constant group."""
    x = samples.uniform((7, 3000), dtype)
    x[0, 5], x[1, 2999], x[2] = np.nan, np.inf, samples.any_bits((3000,), dtype)
    x[3], x[4], x[5] = x[3] + dtype_max(dtype) / 8, dtype_max(dtype), -0.0
    x[6] = np.where(x[6] > 0, dtype_max(dtype), -dtype_max(dtype))
    gradient = samples.uniform((7, 3000), dtype, seed=1)
    gradient[5] = -0.0
    ones = np.ones((7, 1), dtype)
    lazy = da.from_array(x, chunks=(2, 700))
    for epsilon in (0, 1e-5):
        expected = dmlops.batch_normalization_training(x, ones, -ones, epsilon=epsilon)
        results = dmlops.batch_normalization_training(lazy, ones, -ones, epsilon=epsilon)
        expect_several(results, expected, lazy)
        for training in ("_training", ""):
            function = getattr(dmlops, f"batch_normalization{training}_grad")
            given = (gradient, *expected[1:], ones, epsilon)
            expect_several(function(lazy, *given), function(x, *given), lazy)


def test_blocks_are_added_in_their_order() -> None:
    """The sum of large numbers that cancel depends on the order."""
    x = samples.uniform((6 * 1024,), np.float32)
    x[1024:2048], x[3072:4096] = 3e30, -3e30
    one = np.ones(1, np.float32)
    for chunk in (1024, 5 * 1024):
        lazy = da.from_array(x, chunks=chunk)
        expected = dmlops.batch_normalization_training(x, one, one)
        expect_several(dmlops.batch_normalization_training(lazy, one, one), expected, lazy)


def test_chunks_stay_small() -> None:
    """Merging along the axes splits the others."""
    x = da.zeros((64, 32, 1024), chunks=(1, 32, 1024), dtype=np.float32)
    ones = np.ones((1, 32, 1), np.float32)
    with dask.config.set({"array.chunk-size": "1MiB"}):
        y, *_ = dmlops.batch_normalization_training(x, ones, ones)
    assert max(block.nbytes for block in intermediate_blocks(y)) <= 1 << 20


def dtype_max(dtype: str) -> Any:
    return np.finfo(dtype).max


def test_empty() -> None:
    x = np.zeros((0, 3000), np.float32)
    for of_groups in ((1, 3000), (0, 1), (1, 1)):
        ones = np.ones(of_groups, np.float32)
        lazy = da.from_array(x, chunks=(2, 1000))
        expected = dmlops.batch_normalization_training(x, ones, ones)
        expect_several(dmlops.batch_normalization_training(lazy, ones, ones), expected, lazy)
        expected = dmlops.batch_normalization_grad(x, x, ones, ones, ones)
        expect_several(dmlops.batch_normalization_grad(lazy, x, ones, ones, ones), expected, lazy)


def test_chunks_of_unknown_size() -> None:
    x = samples.uniform((300, 4), np.float32)
    lazy = da.from_array(x, chunks=(100, 4))
    some, rows = lazy[lazy[:, 0] > 0], x[x[:, 0] > 0]
    one = np.ones((1, 4), np.float32)
    for name, given in (
        ("mean_variance_normalization", (one, one, 0)),
        ("batch_normalization_training", (one, one)),
        ("batch_normalization_grad", (some, one, one, one)),
    ):
        with pytest.raises(ValueError, match=rf"{name}: .*unknown size.*compute_chunk_sizes"):
            getattr(dmlops, name)(some, *given)
    assert_same_bits(
        dmlops.mean_variance_normalization(some).compute(), dmlops.mean_variance_normalization(rows)
    )


def test_masked_chunks_of_gradients_that_dask_does_not_know_of() -> None:
    x = samples.uniform((2, 3000), np.float32)
    masked = da.from_array(x, chunks=(1, 1000)).map_blocks(
        np.ma.masked_greater, 0.5, meta=np.empty((0, 0), np.float32)
    )
    ones = np.ones((2, 1), np.float32)
    words = "batch_normalization_grad: input_gradient is a masked array.*input_gradient.filled"
    with pytest.raises(TypeError, match=words):
        dmlops.batch_normalization_grad(x, masked, ones, ones, ones)[1].compute()
