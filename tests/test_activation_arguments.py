"""Arguments of the activations: defaults, names, and errors; fused activations that are refused."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import samples
from activation_rows import ROWS, Row
from descriptors import FURTHER, activation, clip, data_types, tensor
from reference import assert_same_bits

import dmlops

Array = npt.NDArray[Any]
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


@every_row
def test_defaults(row: Row) -> None:
    function = getattr(dmlops, row.name)
    assert list(inspect.signature(function).parameters) == ["input", *row.fields, "out"]
    x = samples.uniform((500,), "float32", seed=2)
    defaults = row.parameters[0]
    assert_same_bits(function(x), function(x, *defaults))
    by_name = function(x, **dict(zip(row.fields, defaults, strict=True)))
    assert_same_bits(by_name, function(x))


@every_row
def test_types_that_are_refused(row: Row) -> None:
    taken = data_types(row.name)
    for dtype in (*reference.INTEGERS, "bool", "float64", "complex64"):
        x = np.ones(4, dtype)
        if dtype in taken:
            continue
        with pytest.raises(TypeError, match=f"^{row.name}: .*{dtype}.*float32"):
            getattr(dmlops, row.name)(x)
        with pytest.raises(TypeError, match=row.name):
            getattr(dmlops, row.name)(np.ones(4, "float32"), out=x)


@every_row
def test_parameters_that_are_refused(row: Row) -> None:
    x = np.ones(4, np.float32)
    function = getattr(dmlops, row.name)
    for field in row.fields:
        for value in (None, "1", [1.0], 1j):
            message = f"^{row.name}: {field} must be a number, not {type(value).__name__}$"
            with pytest.raises(TypeError, match=message):
                function(x, **{field: value})
        for large in (1e39, -1e39):
            message = f"{row.name}: {field} is {large}, which does not fit float32"
            with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
                function(x, **{field: large})
        function(x, **{field: np.float16(1)})
    with pytest.raises(TypeError, match=row.name):
        function(x, *(1.0 for _ in row.fields), np.ones(4, np.float32))  # out is by name
    with pytest.raises(TypeError, match="slope"):
        function(x, slope=1.0)


def test_fused_activations_that_are_refused() -> None:
    x = np.ones((2, 3), np.float32)
    no_activation, not_fusable = "must be the descriptor.*not", "cannot be fused.*relu"
    swish = FURTHER["swish"](input_tensor=tensor(), output_tensor=tensor())
    wrongs: tuple[tuple[Any, type[Exception], str], ...] = (
        (dmlops.relu, TypeError, f"{no_activation} builtin_function_or_method$"),
        (1, TypeError, f"{no_activation} int$"),
        (..., TypeError, f"{no_activation} ellipsis$"),
        ("Relu", ValueError, "'Relu'; it must be one of .*leaky_relu.* relu"),
        (clip(tensor()), TypeError, not_fusable),
        (swish, TypeError, not_fusable),
        (dmlops.ElementWiseClipOperatorDesc, TypeError, not_fusable),
    )
    for wrong, error, message in wrongs:
        with pytest.raises(error, match=f"^batch_normalization: fused_activation .*{message}"):
            dmlops.batch_normalization(x, x, x, x, x, fused_activation=wrong)
    with pytest.raises(ValueError, match="must have none"):
        dmlops.batch_normalization(x, x, x, x, x, fused_activation=activation("relu")(tensor()))
    large = dmlops.ActivationEluOperatorDesc(alpha=1e39)
    with pytest.raises(ValueError, match="alpha"):
        dmlops.batch_normalization(x, x, x, x, x, fused_activation=large)
