"""Arrays of PyTorch and JAX as inputs and results; pandas, xarray, and other arrays."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from reference import assert_same_bits

import dmlops as _dmlops

dmlops: Any = _dmlops  # its types are those of NumPy arrays
Array = npt.NDArray[Any]

X = samples.uniform((6, 8), np.float32)
LARGE = (1024, 4096)  # 16 MiB: large enough to detect a copy


def assert_no_copy(call: Callable[[], object], allowed: int = 0) -> None:
    """Expect that NumPy allocates no array beyond the allowed number."""
    tracemalloc.start()
    try:
        call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < allowed + (1 << 20), f"{peak} bytes allocated"


# PyTorch


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "uint8"])
def test_torch_in_and_out(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = samples.any_bits((6, 8), dtype)
    expected = dmlops.clip(x, 2, 9)
    tensor = torch.from_numpy(x.copy())
    result = dmlops.clip(tensor, 2, 9)
    assert type(result) is torch.Tensor
    assert result.dtype == tensor.dtype
    assert_same_bits(result.numpy(), expected)
    out = torch.empty_like(tensor)
    assert dmlops.clip(tensor, 2, 9, out=out) is out
    assert_same_bits(out.numpy(), expected)
    strided = torch.zeros((8, 12), dtype=tensor.dtype).T[::2]
    assert dmlops.clip(tensor, 2, 9, out=strided) is strided
    assert_same_bits(strided.numpy(), expected)
    assert dmlops.clip(tensor, 2, 9, out=tensor) is tensor
    assert_same_bits(tensor.numpy(), expected)


def test_torch_layouts_and_every_operator() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(X)
    for view in (tensor.T, tensor[::2, 1:], tensor[0, 0], tensor[:0], tensor.expand(3, 6, 8)):
        result = dmlops.gelu(view)
        assert type(result) is torch.Tensor
        assert_same_bits(result.numpy(), dmlops.gelu(view.numpy()))
    assert dmlops.gelu(tensor.T).stride() == tensor.T.stride()
    assert_same_bits(dmlops.log_softmax(tensor, 0).numpy(), dmlops.log_softmax(X, 0))
    assert type(dmlops.gelu(tensor, out=np.empty_like(X))) is np.ndarray
    assert type(dmlops.gelu(X, out=torch.empty_like(tensor))) is torch.Tensor
    parameters = [torch.full((1, 8), float(i)) for i in range(1, 5)]
    out = torch.empty_like(tensor)
    dmlops.batch_normalization(tensor, *parameters, out=out)
    arrays = [parameter.numpy() for parameter in parameters]
    expected = dmlops.batch_normalization(X, *arrays)
    assert_same_bits(out.numpy(), expected)
    assert_same_bits(dmlops.batch_normalization(tensor, *parameters).numpy(), expected)
    assert type(dmlops.batch_normalization(X, *parameters)) is np.ndarray


def test_torch_subclasses() -> None:
    torch = pytest.importorskip("torch")
    labels = type("Labels", (torch.Tensor,), {})
    result = dmlops.relu(torch.from_numpy(X).as_subclass(labels))
    assert type(result) is torch.Tensor
    assert_same_bits(result.numpy(), dmlops.relu(X))


def test_torch_without_a_copy() -> None:
    torch = pytest.importorskip("torch")
    tensor, out = torch.ones(LARGE), torch.empty(LARGE)
    assert_no_copy(lambda: dmlops.gelu(tensor, out=out))
    assert_no_copy(lambda: dmlops.log_softmax(tensor.T, out=out.T))
    assert_no_copy(lambda: dmlops.gelu(tensor), 1 << 24)  # the result itself
    array = out.numpy()
    assert np.shares_memory(torch.from_dlpack(dmlops.relu(array, out=array)).numpy(), array)


def test_torch_refusals() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(BufferError, match=r"clip: input .*detach"):
        dmlops.clip(torch.zeros(3, requires_grad=True))
    with pytest.raises(TypeError, match=r"gelu: input has dtype bfloat16.*; .*input\.float\(\)$"):
        dmlops.gelu(torch.zeros(3, dtype=torch.bfloat16))
    with pytest.raises(BufferError, match="clip: input cannot be shared from the CPU's memory"):
        dmlops.clip(torch.zeros(3, device="meta"))
    with pytest.raises(TypeError, match=r"gelu: input has dtype float64.*; .*input\.float\(\)$"):
        dmlops.gelu(torch.zeros(3, dtype=torch.float64))
    with pytest.raises(ValueError, match="clip: out has shape"):
        dmlops.clip(torch.zeros(3), out=torch.zeros(4))


# JAX


def test_jax_in_and_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    pytest.importorskip("jax")
    jnp = pytest.importorskip("jax.numpy")
    for dtype in ("float32", "float16", "int8"):
        x = samples.uniform((6, 8), dtype)
        for array in (x, x.T, x[:0], x[0, 0]):
            value = jnp.asarray(array)
            result = dmlops.clip(value, -1, 2)
            assert type(result) is type(value)
            assert_same_bits(np.asarray(result), dmlops.clip(np.asarray(array), -1, 2))
    large, out = jnp.ones(LARGE, "float32"), np.empty(LARGE, np.float32)
    assert_no_copy(lambda: dmlops.gelu(large, out=out))
    with pytest.raises(ValueError, match="clip: out is read-only"):  # as JAX's arrays are
        dmlops.clip(out, out=large)
    words = r"gelu: input has dtype bfloat16.*; .*input\.astype\(numpy\.float32\)$"
    with pytest.raises(TypeError, match=words):
        dmlops.gelu(jnp.zeros(3, "bfloat16"))


def test_jax_results_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    jnp = pytest.importorskip("jax.numpy")
    given: list[Any] = []
    from_dlpack = jnp.from_dlpack

    def take(array: Any) -> Any:
        given.append(array)
        return from_dlpack(array)

    monkeypatch.setattr(jnp, "from_dlpack", take)
    for shape in [(3,), (5, 7), (63, 65), (1000,), LARGE]:
        result = dmlops.relu(jnp.ones(shape, "float32"))
        assert result.unsafe_buffer_pointer() == given.pop().ctypes.data
        assert (np.asarray(result) == 1).all()


# pandas and xarray: examples are in docs/ecosystem.md


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    assert_same_bits(frame.apply(dmlops.gelu, raw=True).to_numpy(), dmlops.gelu(X))
    assert_same_bits(frame["b"].to_frame().apply(dmlops.relu, raw=True)["b"].to_numpy(), relu_b())
    with pytest.raises(
        TypeError, match=r"clip: input must be .*not pandas.DataFrame; .*input\.to_numpy\(\)"
    ):
        dmlops.clip(frame)


def test_pandas_series_keep_their_index() -> None:
    pandas = pytest.importorskip("pandas")
    x = pandas.Series(X[0], index=list("abcdefgh"), name="x")
    x.attrs["unit"] = "m"
    for result in (dmlops.gelu(x), dmlops.gelu(input=x), dmlops.clip(x, max=9)):
        assert type(result) is pandas.Series
        assert result.index.equals(x.index)
        assert (result.name, result.attrs) == ("x", {"unit": "m"})
    assert_same_bits(dmlops.linear(x, 2, beta=1).to_numpy(), dmlops.linear(X[0], 2, 1))
    assert_same_bits(dmlops.log_softmax(x).to_numpy(), dmlops.log_softmax(X[0]))
    one = [np.ones(1, np.float32)] * 4
    normalized = dmlops.batch_normalization(x, *one, fused_activation="relu")
    expected = dmlops.batch_normalization(X[0], *one, fused_activation="relu")
    assert_same_bits(normalized.to_numpy(), expected)
    words = r"has dtype float64.*input\.astype\(numpy\.float32\)"
    with pytest.raises(TypeError, match=words):
        dmlops.gelu(x.astype("float64"))
    words = r"pandas' dtype Float32.*input\.astype\(numpy\.float32\)"
    with pytest.raises(TypeError, match=words):
        dmlops.gelu(x.astype("Float32"))
    with pytest.raises(TypeError, match="gelu: out cannot be given with a Series"):
        dmlops.gelu(x, out=np.empty_like(X[0]))
    with pytest.raises(TypeError, match=r"mean must be .*not pandas.*Series.*mean\.to_numpy\(\)"):
        dmlops.batch_normalization(X[0], x, *one[1:])
    with pytest.raises(TypeError, match="alpha must be a number, not str"):
        dmlops.elu(x, "a")


def relu_b() -> Array:
    return np.asarray(dmlops.relu(X[:, 1]))


def test_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(X, dims=("row", "column"), coords={"row": range(6)}, name="x")
    y = xarray.apply_ufunc(dmlops.hard_sigmoid, x, 0.3, kwargs={"beta": 0.4}, keep_attrs=True)
    assert y.dims == x.dims
    assert (y.row == x.row).all()
    assert_same_bits(y.to_numpy(), dmlops.hard_sigmoid(X, 0.3, 0.4))
    dims = {"input_core_dims": [["row"]], "output_core_dims": [["row"]]}
    z = xarray.apply_ufunc(dmlops.log_softmax, x, **dims).transpose(*x.dims)
    assert_same_bits(z.to_numpy(), dmlops.log_softmax(X, 0))


def test_xarray_objects_keep_their_coordinates() -> None:
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(
        X, dims=("row", "column"), coords={"row": range(6)}, name="x", attrs={"unit": "m"}
    )
    for axes in (0, (0, 1)):
        result = dmlops.log_softmax(x, axes)
        xarray.testing.assert_identical(result, x.copy(data=dmlops.log_softmax(X, axes)))
    variable = dmlops.clip(x.variable, 0, max=1)
    assert variable.identical(x.variable.copy(data=dmlops.clip(X, 0, 1)))
    dataset = xarray.Dataset({"x": x, "y": x[:, 0] * 2}, attrs={"title": "t"})
    result = dmlops.relu(dataset)
    assert result.attrs == dataset.attrs
    xarray.testing.assert_identical(result["x"], dmlops.relu(x))
    xarray.testing.assert_identical(result["y"], dmlops.relu(dataset["y"]))
    with pytest.raises(TypeError, match="relu: out cannot be given with a DataArray"):
        dmlops.relu(x, out=np.empty_like(X))
    with pytest.raises(TypeError, match=r"has dtype float64.*input\.astype\(numpy\.float32\)"):
        dmlops.gelu(x.astype("float64"))


def test_xarray_of_dask() -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("dask.array")
    x = xarray.DataArray(X, dims=("row", "column")).chunk(row=2, column=3)
    lazy = xarray.apply_ufunc(dmlops.log_softmax, x, kwargs={"axes": (0, 1)}, dask="allowed")
    for result in (lazy, dmlops.log_softmax(x, axes=(0, 1))):
        assert result.chunks == x.chunks
        assert_same_bits(result.compute().to_numpy(), dmlops.log_softmax(X, (0, 1)))


# Arrays of other libraries


class Duck:
    """An array by the Array API standard that shares nothing."""

    shape, dtype = (2,), np.dtype(np.float32)

    def __array_namespace__(self, **_: object) -> Any:
        return np


@pytest.mark.parametrize("argument", ["input", "out"])
def test_duck_arrays_get_a_clear_error(argument: str) -> None:
    arguments: dict[str, Any] = {"input": np.zeros(2, np.float32), argument: Duck()}
    words = rf"clip: {argument} must be a numpy.ndarray, .* not .*\.Duck; "
    with pytest.raises(TypeError, match=words):
        dmlops.clip(**arguments)


def test_array_api_strict() -> None:
    strict = pytest.importorskip("array_api_strict")
    result = dmlops.gelu(strict.asarray(X))
    assert type(result) is type(strict.asarray(X))
    assert_same_bits(np.from_dlpack(result), dmlops.gelu(X))
