"""Calls that are refused: each function with valid other arguments, and its error messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from descriptors import NORMALIZATION_GRADIENTS, SEVERAL_OUTPUTS

import dmlops

X = np.zeros((2, 3, 4), np.float32)
PARAMETERS = {
    name: np.ones((1, 3, 1), np.float32) for name in ("mean", "variance", "scale", "bias")
}
OTHERS = (PARAMETERS["mean"], PARAMETERS["variance"], PARAMETERS["scale"])
untyped: Any = dmlops  # hides wrong calls from type checkers


def first_of(name: str, x: Any, out: Any = None) -> Any:
    """Call a function of several outputs, of which `out` is the first."""
    others = (x, *OTHERS) if name in NORMALIZATION_GRADIENTS else OTHERS[:2]
    return getattr(dmlops, name)(x, *others, out=None if out is None else (out, None, None))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "clip": dmlops.clip,
    "hard_sigmoid": dmlops.hard_sigmoid,
    "log_softmax": dmlops.log_softmax,
    "softmax": dmlops.softmax,
    "hardmax": dmlops.hardmax,
    "batch_normalization": lambda x, out=None: normalize(x, out=out),
    "mean_variance_normalization": dmlops.mean_variance_normalization,
    "parameterized_relu": lambda x, out=None: dmlops.parameterized_relu(x, x, out=out),
    "relu_grad": lambda x, out=None: dmlops.relu_grad(x, x, out=out),
    "clip_grad": lambda x, out=None: dmlops.clip_grad(x, x, out=out),
    **{name: partial(first_of, name) for name in SEVERAL_OUTPUTS},
}
each_function = pytest.mark.parametrize("name", FUNCTIONS)


def normalize(x: Any = X, **changed: Any) -> Any:
    """Call batch_normalization with some arguments replaced."""
    values: dict[str, Any] = {**PARAMETERS, **changed}
    return dmlops.batch_normalization(x, **values)


def refused(
    error: type[Exception],
    words: list[str],
    function: Callable[..., object],
    *arguments: object,
    **keywords: object,
) -> None:
    """Call the function; expect the error, and each of the words in its message as a whole."""
    with pytest.raises(error) as caught:
        function(*arguments, **keywords)
    message = str(caught.value)
    missing = [w for w in words if not re.search(rf"(?<![\w.]){re.escape(w)}(?![\w])", message)]
    assert not missing, f"{missing} not in: {message}"
    assert type(caught.value) is error
