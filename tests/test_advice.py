"""The remedies in error messages work as written."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from descriptors import NORMALIZATION_GRADIENTS
from wrong_calls import FUNCTIONS, PARAMETERS, X, each_function, normalize, refused, untyped

import dmlops


@each_function
@pytest.mark.parametrize("value", [[1.0, 2.0], 3.0, 7, (1.0,)], ids=repr)
def test_the_advice_for_numbers_works(name: str, value: Any) -> None:
    fix = "numpy.asarray(input, numpy.float32)"
    words = [name, "input", type(value).__name__, "numpy.ndarray", fix.removesuffix(")")]
    refused(TypeError, words, FUNCTIONS[name], value)
    dmlops.clip(eval(fix, {"numpy": np, "input": value}))


@each_function
@pytest.mark.parametrize("dtype", ["float64", "bool", "longdouble", "complex64", "O"])
def test_the_advice_for_dtypes_works(name: str, dtype: str) -> None:
    x = np.zeros((2, 3, 4), dtype)
    with pytest.raises(TypeError) as caught:
        FUNCTIONS[name](x)
    fix = re.search(r"; convert it with (.*)$", str(caught.value))
    assert (fix is not None) == (x.dtype.kind in "fb")
    if fix is not None:
        FUNCTIONS[name](eval(fix[1], {"numpy": np, "input": x}))


@each_function
def test_the_advice_for_an_output_of_another_dtype_works(name: str) -> None:
    words = r"out(\[0\] \(\w+\))? has dtype float16, but input has dtype float32"
    with pytest.raises(TypeError, match=words) as c:
        FUNCTIONS[name](X, out=np.empty(X.shape, np.float16))
    fix = re.search(r"; make one with (.*)$", str(c.value))
    assert fix is not None
    FUNCTIONS[name](X, out=eval(fix[1], {"numpy": np, "input": X}))


@pytest.mark.parametrize("argument", PARAMETERS)
def test_the_advice_for_parameters_of_another_dtype_works(argument: str) -> None:
    other = PARAMETERS[argument].astype(np.float16)
    with pytest.raises(TypeError, match="they must be the same; convert it with") as caught:
        normalize(**{argument: other})
    fix = re.search(r"; convert it with (.*)$", str(caught.value))
    assert fix is not None
    normalize(**{argument: eval(fix[1], {"numpy": np, argument: other})})


def advice(call: Callable[[], object], scope: dict[str, Any]) -> Any:
    """Return the value of the code at the end of a TypeError's message."""
    with pytest.raises(TypeError) as caught:
        call()
    fix = re.search(r"(?:convert it with|make an array with|pass) (numpy\..*)$", str(caught.value))
    fix = fix or re.search(r"convert it with (\w+\.astype.*)$", str(caught.value))
    assert fix is not None, str(caught.value)
    return eval(fix[1], {"numpy": np, **scope})


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("value", [np.ones((1, 3, 1)), np.ones((1, 3, 1), int), [[[1]]], 1, 0.5])
def test_parameters_get_the_dtype_of_the_input(dtype: str, value: Any) -> None:
    x = X.astype(dtype)
    rest = [PARAMETERS["mean"].astype(dtype)] * 3
    mean = advice(lambda: untyped.batch_normalization(x, value, *rest), {"mean": value})
    assert mean.dtype == dtype
    dmlops.batch_normalization(x, mean, *rest)
    slope = advice(lambda: untyped.parameterized_relu(x, value), {"slope": value})
    dmlops.parameterized_relu(x, slope)


@pytest.mark.parametrize(
    ("shape", "reshaped"),
    [
        ((1,), (1, 1, 1)),
        ((), (1, 1, 1)),
        ((1, 1, 1, 1), (1, 1, 1)),
        ((3, 1), (1, 3, 1)),
        ((3, 4), (1, 3, 4)),
        ((4,), (1, 1, 4)),
        ((2, 1), None),
        ((1, 2, 3, 4), None),
    ],
)
def test_the_advice_for_shapes_works(
    shape: tuple[int, ...], reshaped: tuple[int, ...] | None
) -> None:
    slope = np.ones(shape, np.float32)
    with pytest.raises(ValueError, match="slope must have 3 dimensions") as caught:
        dmlops.parameterized_relu(X, slope)
    fix = re.search(r"use (slope\.reshape.*)$", str(caught.value))
    assert (fix is None) == (reshaped is None)
    if fix is not None:
        slope = eval(fix[1], {"slope": slope})
        assert slope.shape == reshaped
        dmlops.parameterized_relu(X, slope)


@pytest.mark.parametrize(("axes", "axis"), [(-1, 2), ((1, 2), 2), ((0,), 1), ((0, 1), 1)])
def test_a_scale_is_advised_along_the_normalized_axes(axes: Any, axis: int) -> None:
    x, scale = np.zeros((2, 4, 4), np.float32), np.ones(4, np.float32)
    for parameters in ((scale, None), (None, scale)):
        with pytest.raises(ValueError, match=rf"for one value per index of axis {axis}, use "):
            untyped.mean_variance_normalization(x, *parameters, axes=axes)


def test_numbers_for_gradients_and_integers() -> None:
    scope = {"input": X, "input_gradient": 2}
    gradient = advice(lambda: untyped.relu_grad(X, 2), scope)
    dmlops.relu_grad(X, gradient)
    integers = X.astype(np.int8)
    slope = advice(lambda: untyped.parameterized_relu(integers, 2), {"slope": 2})
    dmlops.parameterized_relu(integers, slope)
    with pytest.raises(TypeError, match=r"not float$"):
        untyped.parameterized_relu(integers, 0.5)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int8", 300),
        ("int8", -129.0),
        ("int8", 10**400),
        ("int8", float("nan")),
        ("int16", -32769),
        ("float16", 65536),
        ("float32", 10**400),
        ("float32", 1e39),
    ],
    ids=lambda each: str(each)[:9],
)
def test_numbers_that_no_array_of_the_dtype_holds(dtype: str, value: float) -> None:
    with pytest.raises(TypeError, match=r"slope must be .*, not (int|float)$"):
        untyped.parameterized_relu(X.astype(dtype), value)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int8", -128), ("int8", 127.0), ("int16", 32767), ("float16", 65504), ("float32", -np.inf)],
)
def test_the_largest_numbers(dtype: str, value: float) -> None:
    x = X.astype(dtype)
    slope = advice(lambda: untyped.parameterized_relu(x, value), {"slope": value})
    assert (slope == value).all()
    dmlops.parameterized_relu(x, slope)


def test_an_input_that_is_too_large_a_number() -> None:
    with pytest.raises(TypeError, match=r"relu: input must be .*, not int$"):
        untyped.relu(10**400)


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        *itertools.product(["batch_normalization_training"], ("scale", "bias")),
        *itertools.product(NORMALIZATION_GRADIENTS, ("mean", "variance", "scale")),
    ],
)
def test_numbers_of_parameters_that_have_one_shape(name: str, argument: str) -> None:
    given = {key: PARAMETERS[key] for key in ("mean", "variance", "scale")}
    if name == "batch_normalization_training":
        given = {key: PARAMETERS[key] for key in ("scale", "bias")}
    given |= {"input_gradient": X} if name in NORMALIZATION_GRADIENTS else {}
    call = getattr(untyped, name)
    array = advice(lambda: call(X, **given | {argument: 2}), {**given, argument: 2})
    call(X, **given | {argument: array})
    if argument == ("mean" if name in NORMALIZATION_GRADIENTS else "scale"):
        with pytest.raises(ValueError, match=rf"{argument} must have 3 .*the input's$"):
            call(X, **given | {argument: np.ones(1, np.float32)})


def test_scale_and_bias_of_none() -> None:
    mean, variance, _, bias = PARAMETERS.values()
    scope = {"mean": mean}
    ones = advice(lambda: untyped.batch_normalization(X, mean, variance, None, bias), scope)
    assert (ones == 1).all()
    zeros = advice(lambda: untyped.batch_normalization(X, mean, variance, ones, None), scope)
    assert not zeros.any()
    dmlops.batch_normalization(X, mean, variance, ones, zeros)
    with pytest.raises(TypeError, match=r"scale must be .*NoneType$"):
        untyped.batch_normalization_training(X, None, bias)


def test_axes_of_none() -> None:
    words = r"softmax: axes must be .*, not NoneType; for all axes, use axes=range\(input\.ndim\)$"
    with pytest.raises(TypeError, match=words):
        untyped.softmax(X, axes=None)
    assert dmlops.softmax(X, axes=range(X.ndim)).sum() == 1
    with pytest.raises(TypeError, match=r"not NoneType$"):
        untyped.softmax(X, axes=[None])
    with pytest.raises(TypeError, match=r"not NoneType$"):  # range(0) would be refused
        untyped.softmax(np.float32(1), axes=None)


@pytest.mark.parametrize("bound", [np.zeros(4), [1.0, 2.0], (1,)], ids=str)
def test_bounds_of_each_element(bound: Any) -> None:
    words = r"must be a number or None, not .*; for bounds that differ by element, use numpy\.clip$"
    with pytest.raises(TypeError, match=words):
        untyped.clip(X, bound)
    with pytest.raises(TypeError, match=r"must be a number or None, not [a-z.]*$"):
        untyped.clip_grad(X, X, bound)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: untyped.relu(X, X),
            "relu() takes 1 positional argument (2 given); pass out= by name",
        ),
        (
            lambda: untyped.clip(X, 0, 1, None),
            "clip() takes at most 3 positional arguments (4 given); "
            "pass scale_bias= and out= by name",
        ),
        (
            lambda: untyped.mean_variance_normalization(X, None, None, 1, True),
            "mean_variance_normalization() takes at most 4 positional arguments (5 given); "
            "pass use_mean=, use_variance=, epsilon=, fused_activation= and out= by name",
        ),
    ],
)
def test_arguments_that_are_given_by_name(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "keyword", "ours"),
    [
        ("batch_normalization", "gamma", "scale"),
        ("batch_normalization", "beta", "bias"),
        ("mean_variance_normalization", "beta", "bias"),
        ("softplus", "beta", "steepness"),
        ("swish", "beta", "sigmoid_input_scale"),
        ("thresholded_relu", "threshold", "alpha"),
        ("shrink", "lambd", "threshold"),
        ("relu_grad", "grad_output", "input_gradient"),
        ("clip_grad", "grad", "input_gradient"),
        ("clip", "min_val", "min"),
        ("clip", "maxValue", "max"),
        ("clip_grad", "lower", "min"),
        ("scaled_elu", "scale", "gamma"),
        ("parameterized_relu", "alpha", "slope"),
        ("batch_normalization", "training", "batch_normalization_training"),
        ("elu", "threshold", None),
        ("shrink", "beta", None),
    ],
)
def test_keywords_of_other_libraries(name: str, keyword: str, ours: str | None) -> None:
    words = rf"use {ours}=?$" if ours else "it takes input, .*, out$"
    with pytest.raises(TypeError, match=rf"{name}\(\) got an .* '{keyword}'; .*{words}"):
        getattr(dmlops, name)(X, **{keyword: 1})


@each_function
def test_masked_arrays(name: str) -> None:
    for x in (np.ma.masked_equal(X, 1), np.ma.array(X)):
        words = [name, "input", "masked", "input.filled(value"]
        refused(TypeError, words, FUNCTIONS[name], x)
        refused(TypeError, [name, "out", "masked"], FUNCTIONS[name], X, out=x)
    for argument, value in PARAMETERS.items():
        masked = np.ma.array(value)
        words = ["batch_normalization", argument, "masked", f"{argument}.filled(value"]
        refused(TypeError, words, normalize, **{argument: masked})
