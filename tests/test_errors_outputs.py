"""Errors of functions with several results name the element of `out`, and its shape."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from descriptors import NORMALIZATION_GRADIENTS

import dmlops

X = np.zeros((2, 3, 4), np.float32)
ONE = np.ones((1, 3, 1), np.float32)
RESULTS = {
    "batch_normalization_training": ("output", "mean", "variance"),
    **dict.fromkeys(NORMALIZATION_GRADIENTS, ("gradient", "scale_gradient", "bias_gradient")),
}
ELEMENTS = [(name, i) for name, results in RESULTS.items() for i in range(len(results))]

each_function = pytest.mark.parametrize("name", RESULTS)
each_element = pytest.mark.parametrize(("name", "i"), ELEMENTS)


def call(name: str, out: Any) -> Any:
    """Call a function by its name."""
    inputs = (X, X, ONE, ONE, ONE) if name in NORMALIZATION_GRADIENTS else (X, ONE, ONE)
    return getattr(dmlops, name)(*inputs, out=out)


def message(error: type[Exception], name: str, i: int, value: Any) -> str:
    """Expect an error for the i-th element of `out`; return its message without the function."""
    out: list[Any] = [None, None, None]
    out[i] = value
    with pytest.raises(error) as caught:
        call(name, tuple(out))
    assert type(caught.value) is error
    start = f"{name}: "
    assert str(caught.value).startswith(start)
    return str(caught.value).removeprefix(start)


def like(name: str, i: int) -> tuple[str, Any]:
    """Return the input that has the shape of a result, with its name."""
    if i == 0:
        return "input", X
    return ("mean" if name in NORMALIZATION_GRADIENTS else "scale"), ONE


def element(name: str, i: int) -> str:
    return f"out[{i}] ({RESULTS[name][i]})"


@each_element
def test_no_array(name: str, i: int) -> None:
    for value in ([0.0], np.float32(1)):
        said = message(TypeError, name, i, value)
        assert said.startswith(f"{element(name, i)} must be a numpy.ndarray, or offer DLPack")
        assert said.endswith(f"make one with numpy.empty_like({like(name, i)[0]})")


@each_element
def test_dtype(name: str, i: int) -> None:
    model, array = like(name, i)
    advice = f"; make one with numpy.empty_like({model})"
    head = f"{element(name, i)} has dtype"
    assert message(TypeError, name, i, array.astype(np.float16)) == (
        f"{head} float16, but input has dtype float32; they must be the same{advice}"
    )
    assert message(TypeError, name, i, array.astype(np.float64)) == (
        f"{head} float64, but input has dtype float32; they must be the same{advice}"
    )
    assert message(TypeError, name, i, array.astype(X.dtype.newbyteorder())) == (
        f"{head} float32 in a byte order that is not this machine's{advice}"
    )


@each_element
def test_the_advice_works(name: str, i: int) -> None:
    advice = re.search(r"numpy\.empty_like\((\w+)\)", message(TypeError, name, i, [1.0]))
    assert advice is not None
    out: list[Any] = [None, None, None]
    out[i] = np.empty_like({"input": X, "scale": ONE, "mean": ONE}[advice[1]])
    assert call(name, tuple(out))[i] is out[i]


@each_element
def test_shape(name: str, i: int) -> None:
    model, array = like(name, i)
    other = ONE if i == 0 else X
    assert message(ValueError, name, i, np.empty_like(other)) == (
        f"{element(name, i)} has shape {other.shape}, but {model} has shape {array.shape}; "
        "they differ on axis 0"
    )
    deep = np.zeros((1,) * 9, np.float32)
    assert message(ValueError, name, i, deep).startswith(f"{element(name, i)} has 9 dimensions")


@each_element
def test_memory(name: str, i: int) -> None:
    _, array = like(name, i)
    frozen = array.copy()
    frozen.flags.writeable = False
    assert message(ValueError, name, i, frozen) == f"{element(name, i)} is read-only"
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(9, np.float32), array.shape, (0, 0, 0))
    said = message(ValueError, name, i, overlapping)
    assert said.startswith(f"{element(name, i)} has elements that overlap one another")
    masked = np.ma.masked_array(array)
    said = message(TypeError, name, i, masked)
    assert said.startswith(f"{element(name, i)} is a masked array")
    assert said.endswith(f"use out[{i}].data")


@each_element
def test_a_negated_tensor(name: str, i: int) -> None:
    torch = pytest.importorskip("torch")
    said = message(BufferError, name, i, torch.zeros(3, dtype=torch.complex64).conj().imag)
    assert said.startswith(f"{element(name, i)} has PyTorch's negative bit")
    assert said.endswith(f"pass torch.empty_like(out[{i}])")


@each_function
def test_elements_that_overlap(name: str) -> None:
    shared = np.empty_like(ONE)
    with pytest.raises(ValueError, match="overlap") as caught:
        call(name, (None, shared, shared))
    assert str(caught.value) == (
        f"{name}: {element(name, 1)} and {element(name, 2)} overlap; each output needs memory of "
        "its own"
    )


@each_function
def test_no_tuple_of_three(name: str) -> None:
    three = f"{name}: out must be a tuple of 3 arrays or None ({', '.join(RESULTS[name])}), not "
    for out, given in ((X, "numpy.ndarray"), ([X, ONE, ONE], "list"), ((X, ONE), "a tuple of 2")):
        with pytest.raises(TypeError) as caught:
            call(name, out)
        assert str(caught.value) == three + given
