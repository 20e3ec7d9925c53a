"""The remedies in error messages work as written."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_errors import FUNCTIONS, PARAMETERS, X, each_function, normalize, refused

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
