"""Every error: its type, and a message that names operator, argument, values and axis."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from operators import OPERATORS, operator_names
from wrong_calls import FUNCTIONS, PARAMETERS, X, each_function, normalize, refused, untyped

import dmlops
from dmlops import ScaleBias

# The input


@each_function
@pytest.mark.parametrize("value", [None, "text", {}, ...], ids=repr)
def test_input_is_no_array(name: str, value: Any) -> None:
    words = [name, "input", type(value).__name__, "numpy.ndarray"]
    refused(TypeError, words, FUNCTIONS[name], value)


@each_function
@pytest.mark.parametrize(
    "dtype", ["float64", "bool", "complex64", "longdouble", "datetime64[s]", "S4", "U4", "O", "V4"]
)
def test_input_of_a_type_that_no_operator_takes(name: str, dtype: str) -> None:
    x = np.zeros((2, 3, 4), dtype)
    refused(TypeError, [name, "input", x.dtype.name, "float32", "float16"], FUNCTIONS[name], x)


@pytest.mark.parametrize(
    "name", [name for name in FUNCTIONS if not name.startswith(("clip", "relu_grad", "param"))]
)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_integers_where_only_floats_are_taken(name: str, dtype: str) -> None:
    words = [name, "input", dtype, "float32", "float16"]
    refused(TypeError, words, FUNCTIONS[name], np.zeros((2, 3, 4), dtype))


@each_function
def test_input_of_another_byte_order(name: str) -> None:
    x = X.astype(X.dtype.newbyteorder())
    words = [name, "input", "float32", "order", "input.astype(numpy.float32"]
    refused(TypeError, words, FUNCTIONS[name], x)


@each_function
def test_input_of_rank_9(name: str) -> None:
    x = np.zeros((1,) * 9, np.float32)
    refused(ValueError, [name, "input", "9", "8"], FUNCTIONS[name], x)


# out


@pytest.mark.parametrize("name", operator_names())
def test_out_of_another_type(name: str) -> None:
    operator, dtype = OPERATORS[name]
    x = np.zeros((3, 4), dtype)
    other = "int8" if dtype != "int8" else "float32"
    words = [name.partition("-")[0], "out", other, "input", dtype]
    refused(TypeError, words, operator, x, out=np.zeros((3, 4), other))


@each_function
def test_out_of_another_shape(name: str) -> None:
    call = FUNCTIONS[name]
    words = [name, "out", "input", "2, 3, 4"]
    for shape, axis in (((1, 3, 4), 0), ((2, 4, 4), 1), ((2, 3, 1), 2)):
        text = str(shape).strip("()")
        out = np.zeros(shape, np.float32)
        refused(ValueError, [*words, text, f"axis {axis}"], call, X, out=out)
    refused(ValueError, [*words, "3, 4"], call, X, out=np.zeros((3, 4), np.float32))
    refused(ValueError, [*words, "24,"], call, X, out=np.zeros(24, np.float32))


@each_function
def test_out_that_cannot_be_written(name: str) -> None:
    out = np.zeros_like(X)
    out.flags.writeable = False
    refused(ValueError, [name, "out", "read-only"], FUNCTIONS[name], X, out=out)
    frozen = memoryview(bytes(96)).cast("f", (2, 3, 4))
    refused(ValueError, [name, "out", "read-only"], FUNCTIONS[name], X, out=frozen)


@each_function
def test_out_that_overlaps_itself(name: str) -> None:
    out = np.lib.stride_tricks.as_strided(np.zeros(9, np.float32), (2, 3, 4), (4, 4, 4))
    words = [name, "out", "overlap", "2, 3, 4"]
    refused(ValueError, words, FUNCTIONS[name], X, out=out)


@each_function
@pytest.mark.parametrize("value", [[0.0], 1, "text", (X,)], ids=["list", "int", "str", "tuple"])
def test_out_is_no_array(name: str, value: Any) -> None:
    words = [name, "out", type(value).__name__, "numpy.empty_like(input"]
    refused(TypeError, words, FUNCTIONS[name], X, out=value)


@each_function
def test_out_of_another_byte_order_or_rank_9(name: str) -> None:
    swapped = X.astype(X.dtype.newbyteorder())
    words = [name, "out", "float32", "order", "numpy.empty_like(input"]
    refused(TypeError, words, FUNCTIONS[name], X, out=swapped)
    deep = np.zeros((1,) * 9, np.float32)
    refused(ValueError, [name, "out", "9"], FUNCTIONS[name], X, out=deep)


# clip


@pytest.mark.parametrize("argument", ["min", "max"])
@pytest.mark.parametrize("value", ["1", [1], 1j, b"1", ...], ids=repr)
def test_bound_is_no_number(argument: str, value: Any) -> None:
    keywords: dict[str, Any] = {argument: value}
    for x in (X, np.zeros(3, np.int8)):
        words = ["clip", argument, type(value).__name__, "number"]
        refused(TypeError, words, dmlops.clip, x, **keywords)


@pytest.mark.parametrize("argument", ["min", "max"])
@pytest.mark.parametrize("value", [0.5, -2.25, 1e-7, 127.5, 4503599627370495.5])
def test_fractions_as_bounds_of_integers(argument: str, value: float) -> None:
    keywords: dict[str, Any] = {argument: value}
    for dtype in ("int8", "uint64"):
        words = ["clip", argument, "whole", repr(abs(value))]  # the sign apart: no word boundary
        refused(ValueError, words, dmlops.clip, np.zeros(3, dtype), **keywords)


@pytest.mark.parametrize("value", [(1.0, 0.0), 2.0, [1, 2], "x"], ids=repr)
def test_scale_bias_is_something_else(value: Any) -> None:
    words = ["clip", "scale_bias", "ScaleBias", type(value).__name__]
    refused(TypeError, words, dmlops.clip, X, scale_bias=value)


def clip_scaled(**fields: Any) -> Any:
    return dmlops.clip(X, scale_bias=ScaleBias(**fields))


@pytest.mark.parametrize("field", ["scale", "bias"])
def test_scale_bias_of_wrong_values(field: str) -> None:
    for value in ("1", None, 1j):
        words = ["ScaleBias", field, type(value).__name__]
        refused(TypeError, words, clip_scaled, **{field: value})
    words = ["clip", field, "1e+39", "float32"]
    refused(ValueError, words, clip_scaled, **{field: 1e39})


def test_scale_bias_is_a_value() -> None:
    pair = ScaleBias(2.0, bias=-1.0)
    assert (pair.scale, pair.bias) == (2.0, -1.0)
    assert pair == ScaleBias(2.0, -1.0) != ScaleBias()
    assert hash(pair) == hash(ScaleBias(2.0, -1.0))
    assert (ScaleBias().scale, ScaleBias().bias) == (1.0, 0.0)
    assert repr(pair) == "ScaleBias(scale=2.0, bias=-1.0)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        pair.scale = 3.0  # type: ignore[misc]


# batch_normalization


def test_epsilon() -> None:
    for value in ("1", None, 1j):
        words = ["batch_normalization", "epsilon", type(value).__name__]
        refused(TypeError, words, normalize, epsilon=value)
    words = ["batch_normalization", "epsilon", "1e+39", "float32"]
    refused(ValueError, words, normalize, epsilon=1e39)


@pytest.mark.parametrize("argument", PARAMETERS)
def test_parameter_of_wrong_type(argument: str) -> None:
    words = ["batch_normalization", argument, "float16", "input", "float32"]
    refused(TypeError, words, normalize, **{argument: np.ones((1, 3, 1), np.float16)})
    words = ["batch_normalization", argument, "list", "numpy.ndarray"]
    refused(TypeError, words, normalize, **{argument: [1.0, 2.0, 3.0]})
    words = ["batch_normalization", argument, "float64", "float32"]
    refused(TypeError, words, normalize, **{argument: np.ones((1, 3, 1))})


@pytest.mark.parametrize("argument", PARAMETERS)
def test_parameter_of_wrong_shape(argument: str) -> None:
    for shape, axis, size in (((1, 2, 1), 1, 3), ((3, 3, 1), 0, 2), ((2, 3, 0), 2, 4)):
        value = np.ones(shape, np.float32)
        text = str(shape).strip("()")
        words = [
            "batch_normalization",
            argument,
            text,
            "input",
            "2, 3, 4",
            f"axis {axis}",
            str(size),
        ]
        refused(ValueError, words, normalize, **{argument: value})


def test_parameter_of_wrong_size_on_an_axis_of_size_1() -> None:
    with pytest.raises(ValueError, match=r"on axis 0 its size must be 1, not 2$"):
        dmlops.parameterized_relu(X[:1], np.ones((2, 3, 4), np.float32))


@pytest.mark.parametrize("argument", PARAMETERS)
def test_vectors_are_answered_by_the_reshape_they_need(argument: str) -> None:
    for length, advice in ((3, "(1, 3, 1)"), (4, "(1, 1, 4)"), (2, "(2, 1, 1)")):
        vector = np.ones(length, np.float32)
        words = [
            "batch_normalization",
            argument,
            f"{length},",
            "2, 3, 4",
            f"{argument}.reshape{advice}",
        ]
        words = [word.removesuffix(")") for word in words]
        refused(ValueError, words, normalize, **{argument: vector})
    with pytest.raises(ValueError, match="shape") as caught:
        normalize(**{argument: np.ones(5, np.float32)})
    assert "reshape" not in str(caught.value)
    words = ["batch_normalization", argument, "2, 3, 4", "3"]
    refused(ValueError, words, normalize, **{argument: np.float32(1)})


def test_the_advice_works() -> None:
    vector = np.array([1, 2, 3], np.float32)
    with pytest.raises(ValueError, match="reshape") as caught:
        normalize(mean=vector)
    shape = re.search(r"mean\.reshape\((.*)\)", str(caught.value))
    assert shape is not None
    normalize(mean=vector.reshape([int(size) for size in shape[1].split(",")]))


# log_softmax


@pytest.mark.parametrize("axis", [3, -4, 100, 2**40, -(2**63)])
def test_axis_out_of_range(axis: int) -> None:
    words = ["log_softmax", str(abs(axis)), "3", "2, 3, 4"]
    refused(ValueError, words, dmlops.log_softmax, X, axis)
    refused(ValueError, words, dmlops.log_softmax, X, [0, axis])


def test_axis_beyond_64_bits() -> None:
    for axis in (2**100, 10**30):
        words = ["log_softmax", str(axis), "3", "2, 3, 4"]
        refused(ValueError, words, dmlops.log_softmax, X, axis)
        refused(ValueError, words, dmlops.log_softmax, X, [-axis])
    refused(ValueError, ["log_softmax", "2, 3, 4"], dmlops.log_softmax, X, 10**5000)


def test_axes_of_rank_0() -> None:
    x: Any = np.array(1, np.float32)
    for axis in (1, -2):
        refused(ValueError, ["log_softmax", str(abs(axis)), "0"], dmlops.log_softmax, x, axis)
    refused(ValueError, ["log_softmax", "twice"], dmlops.log_softmax, x, (0, -1))


@pytest.mark.parametrize("axes", [(1, 1), (1, -2), (0, 2, 0), (2, 1, -1)], ids=str)
def test_axis_twice(axes: tuple[int, ...]) -> None:
    twice = str(max(axes, key=lambda axis: sum(other % 3 == axis % 3 for other in axes)) % 3)
    refused(ValueError, ["log_softmax", "axes", twice, "twice"], dmlops.log_softmax, X, axes)


def test_no_axes() -> None:
    nothing: tuple[Any, ...] = ((), [], range(0), np.array([], int))
    for axes in nothing:
        words = ["log_softmax", "axes", "empty", "at least one"]
        refused(ValueError, words, dmlops.log_softmax, X, axes)


def test_too_many_axes() -> None:
    words = ["log_softmax", "axes", "9", "8"]
    refused(ValueError, words, dmlops.log_softmax, X, [0, 1, 2] * 3)


@pytest.mark.parametrize("axes", [1.0, None, "1", ["1"], [1.0], ...], ids=repr)
def test_axes_of_wrong_type(axes: Any) -> None:
    refused(TypeError, ["log_softmax", "axes", "int"], dmlops.log_softmax, X, axes)


# Calls


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["clip", "input"], untyped.clip),
        (["clip", "low"], lambda: untyped.clip(X, low=1)),
        (["clip", "min"], lambda: untyped.clip(X, 1, min=1)),
        (["clip", "3"], lambda: untyped.clip(X, 0, 1, None)),
        (["hard_sigmoid", "3"], lambda: untyped.hard_sigmoid(X, 0, 1, X)),
        (["log_softmax", "2"], lambda: untyped.log_softmax(X, 0, X)),
        (["log_softmax", "axis", "use axes"], lambda: untyped.log_softmax(X, axis=0)),
        (["log_softmax", "dim", "use axes"], lambda: untyped.log_softmax(X, dim=0)),
        (["leaky_relu", "use alpha"], lambda: untyped.leaky_relu(X, negative_slope=0.1)),
        (["swish", "use sigmoid_input_scale"], lambda: untyped.swish(X, alpha=1)),
        (["parameterized_relu", "use slope"], lambda: untyped.parameterized_relu(X, weight=X)),
        (
            ["mean_variance_normalization", "use axes"],
            lambda: untyped.mean_variance_normalization(X, normalized_shape=(3,)),
        ),
        (["clip", "axis", "takes input, min, max"], lambda: untyped.clip(X, axis=0)),
        (
            ["batch_normalization", "bias"],
            lambda: untyped.batch_normalization(X, X, X, X),
        ),
    ],
)
def test_calls_that_do_not_fit_the_signature(words: list[str], call: Callable[[], object]) -> None:
    refused(TypeError, words, call)
