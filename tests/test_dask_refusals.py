"""Refusals of dask arrays: by the call where it is known, not in a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import samples
from dask_arrays import expect

import dmlops as _dmlops
from dmlops import _core

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

dmlops: Any = _dmlops  # its types are those of NumPy arrays

X = da.zeros((4, 6), chunks=3, dtype=np.float32)
P = np.ones((1, 6), np.float32)
U = X[X[:, 0] > 0]  # of unknown size


@pytest.mark.parametrize(
    ("error", "words", "refused"),
    [
        (TypeError, "clip: out .*dask.array", lambda: dmlops.clip(X, out=np.zeros((4, 6), "f4"))),
        (TypeError, "gelu: out .*dask.array", lambda: dmlops.gelu(np.zeros(3, "f4"), out=X)),
        (
            TypeError,
            "training: out .*lazy",
            lambda: dmlops.batch_normalization_training(X, P, P, out=X),
        ),
        (TypeError, "log_softmax: out .*lazy", lambda: dmlops.log_softmax(X, out=X)),
        (TypeError, "clip: input has dtype float64; it takes", lambda: dmlops.clip(X.astype("f8"))),
        (TypeError, "gelu: input has dtype int32", lambda: dmlops.gelu(X.astype("i4"))),
        (TypeError, "log_softmax: .*float64", lambda: dmlops.log_softmax(X.astype("f8"), 0)),
        (TypeError, "clip: min must be a number", lambda: dmlops.clip(X, "low")),
        (TypeError, "clip: max is a dask.array.*compute", lambda: dmlops.clip(X, 0, X.max())),
        (ValueError, "clip: .*whole", lambda: dmlops.clip(X.astype("i4"), 0.5)),
        (ValueError, "log_softmax: axis 2 is .*shape .4, 6.", lambda: dmlops.log_softmax(X, 2)),
        (ValueError, "log_softmax: axes names .*twice", lambda: dmlops.log_softmax(X, (0, -2))),
        (TypeError, "softmax: axes must be .*, not str", lambda: dmlops.softmax(X, "01")),
        (TypeError, "softmax: axes must be .*, not str", lambda: dmlops.softmax(X, iter("01"))),
        (ValueError, "softmax: axes is empty", lambda: dmlops.softmax(X, iter(()))),
        (ValueError, "axis 2 .* chunks have unknown sizes", lambda: dmlops.softmax(U, 2)),
        (ValueError, "relu: input has 9 dim", lambda: dmlops.relu(X.reshape((4, 6, *[1] * 7)))),
        (TypeError, "relu.*unexpected", lambda: dmlops.relu(X, slope=1)),
        (TypeError, "normalization: mean .*list", lambda: normalize(X, [1])),
        (TypeError, "normalization: mean has dtype float16", lambda: normalize(X, P.astype("f2"))),
        (
            ValueError,
            r"relu_grad: input_gradient has shape \(4, 1\), but input has shape \(4, 6\)",
            lambda: dmlops.relu_grad(X, X[:, :1]),
        ),
        (
            ValueError,
            r"relu: slope has shape \(3, 6\)",
            lambda: dmlops.parameterized_relu(X, X[:3]),
        ),
        (
            ValueError,
            r"mean_variance_normalization: bias has shape \(1, 5\)",
            lambda: dmlops.mean_variance_normalization(X, bias=P[:, :5]),
        ),
        (
            ValueError,
            r"training: bias has shape \(4, 6\), but scale has shape \(1, 6\)",
            lambda: dmlops.batch_normalization_training(X, P, X),
        ),
        (
            ValueError,
            r"training: fused_add has shape \(1, 6\)",
            lambda: dmlops.batch_normalization_training(X, P, P, P),
        ),
        (
            ValueError,
            r"grad: input_gradient has shape \(1, 6\)",
            lambda: dmlops.batch_normalization_grad(X, P, P, P, P),
        ),
        (
            ValueError,
            r"mean has shape \(1, 5\), but input has shape \(4, 6\); on axis 1",
            lambda: normalize(X, P[:, :5]),
        ),
        (
            ValueError,
            r"mean has shape \(6,\).*mean.reshape\(1, 6\)",
            lambda: normalize(X, P[0]),
        ),
    ],
)
def test_refused_at_once(error: type[Exception], words: str, refused: Callable[[], Any]) -> None:
    with pytest.raises(error, match=words):
        refused()


def normalize(x: Any, mean: Any) -> Any:
    return dmlops.batch_normalization(x, mean, P, P, P)


def test_blocks_that_are_no_numpy_arrays() -> None:
    class Foreign:
        """An array of another library, with the attributes that dask requires."""

        ndim, shape, dtype = 1, (0,), np.dtype("float32")

        def __array_function__(self, *_: object) -> Any:
            return NotImplemented

        def __array_ufunc__(self, *_: object) -> Any:
            return NotImplemented

    x = da.ones(4, chunks=2, dtype=np.float32)
    x._meta = Foreign()
    with pytest.raises(TypeError, match=r"clip: input is a dask.array of Foreign"):
        dmlops.clip(x)


def test_the_advice_for_a_delayed_object_works() -> None:
    delayed = dask.delayed(np.negative)(P)
    with pytest.raises(TypeError, match=r"not dask\.delayed\.Delayed; compute it.*\.compute\(\)$"):
        dmlops.relu(delayed)
    assert dmlops.relu(delayed.compute()).tolist() == [[0] * 6]


# Masked arrays


def test_masked_chunks_are_refused() -> None:
    masked = np.ma.masked_greater(samples.uniform((2, 3000), np.float32), 0.5)
    lazy = da.from_array(masked, chunks=(1, 100), asarray=False)
    assert isinstance(lazy._meta, np.ma.MaskedArray)
    words = r"{}: input is a dask.array of masked arrays.*dask\.array\.ma\.filled\(input, value\)$"
    with pytest.raises(TypeError, match=words.format("gelu")):
        dmlops.gelu(lazy)
    with pytest.raises(TypeError, match=words.format("log_softmax")):
        dmlops.log_softmax(lazy)
    filled = da.ma.filled(lazy, 7)
    expect(dmlops.log_softmax(filled), lazy, dmlops.log_softmax(masked.filled(7)))
    one = da.from_array(np.ones((1, 1), np.float32))
    for argument in ("mean", "variance", "scale", "bias"):
        values = dict.fromkeys(("input", "mean", "variance", "scale", "bias"), one)
        with pytest.raises(TypeError, match=f"{argument} is a dask.array of masked arrays"):
            dmlops.batch_normalization(**(values | {argument: lazy[:1, :1]}))
        with pytest.raises(TypeError, match=f"{argument} is a masked array"):
            dmlops.batch_normalization(**(values | {argument: masked[:1, :1]}))


@pytest.mark.parametrize("length", [300, 3000])
@pytest.mark.parametrize("name", ["gelu", "log_softmax", "mean_variance_normalization"])
def test_masked_chunks_that_dask_does_not_know_of(name: str, length: int) -> None:
    x = samples.uniform((2, length), np.float32)
    lazy = da.from_array(x, chunks=(1, min(length, 1000))).map_blocks(
        np.ma.masked_greater, 0.5, meta=np.empty((0, 0), np.float32)
    )
    with pytest.raises(TypeError, match=rf"{name}: input is a masked array.*input\.filled"):
        getattr(dmlops, name)(lazy).compute()


@pytest.mark.parametrize("kind", ["f8", "f2", "i4", "c8"])
@pytest.mark.parametrize(
    "name", ["log_softmax", "softmax", "hardmax", "mean_variance_normalization"]
)
def test_blocks_of_another_dtype_than_declared(name: str, kind: str) -> None:
    x = da.ones((3000, 2), chunks=(1000, 2), dtype=np.float32)
    other = x.map_blocks(lambda block: block.astype(kind), dtype=np.float32)
    words = f"{name}: input is a dask.array of float32, but has a block of {np.dtype(kind).name}"
    with pytest.raises(TypeError, match=words):
        getattr(dmlops, name)(other, axes=0).compute()


@pytest.mark.parametrize("argument", ["input_gradient", "mean", "scale"])
def test_gradients_of_other_dtypes_than_declared(argument: str) -> None:
    x = da.ones((3000, 2), chunks=(1000, 2), dtype=np.float32)
    arrays = {"input": x, "input_gradient": x} | {
        key: da.ones((1, 2), dtype=np.float32) for key in ("mean", "variance", "scale")
    }
    arrays[argument] = arrays[argument].map_blocks(lambda b: b.astype("f2"), dtype=np.float32)
    gradients = dmlops.batch_normalization_grad(**arrays)
    with pytest.raises(TypeError, match=f"batch_normalization_grad: {argument} is .*float16"):
        dask.compute(gradients)


def test_a_stage_of_too_many_dimensions() -> None:
    x = np.zeros((1,) * 9, np.float32)
    normalization = int(_dmlops.OperatorType.MEAN_VARIANCE_NORMALIZATION1)
    flags = [True, True, False]
    with pytest.raises(ValueError, match="float16, of at most 8 dimensions"):
        _core.run_stage(normalization, 0, 1, {"input_tensor": x}, [], 1, 1e-5, flags, None)


@pytest.mark.parametrize(
    ("kind", "shape", "of_sum"), [("f2", (4, 6), "f8"), ("f4", (4, 5), "f8"), ("f4", (4, 6), "f4")]
)
def test_operands_of_a_stage_that_do_not_fit(kind: str, shape: Any, of_sum: str) -> None:
    normalization = int(_dmlops.OperatorType.MEAN_VARIANCE_NORMALIZATION1)
    tensors = {"input_tensor": np.zeros((4, 6), np.float32), "scale_tensor": np.zeros(shape, kind)}
    sums = [np.zeros((4, 1, 64), of_sum)]
    flags = [True, True, False]
    with pytest.raises(ValueError, match="does not fit its input"):
        _core.run_stage(normalization, 0, 6, tensors, sums, 2, 1e-5, flags, None)
