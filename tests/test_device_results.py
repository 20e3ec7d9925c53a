"""Results of compiled operators: the references' values for all strides and offsets."""

from __future__ import annotations

import dataclasses
import math
import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
from activation_reference import exact_values
from activation_rows import ROWS
from descriptors import (
    ACTIVATIONS,
    FURTHER,
    activation,
    batch_normalization,
    clip,
    clip1,
    log_softmax,
    log_softmax1,
    tensor,
)
from reference import EXAMPLE, FLOATS, INTEGERS, LOG_SOFTMAX
from samples import any_bits, uniform

import dmlops
from dmlops import BufferTensorDesc, Device

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]


def run(desc: Any, *inputs: Array) -> Array:
    """Compile a descriptor of dense tensors, and dispatch it once."""
    output = np.empty(desc.output_tensor.sizes, inputs[0].dtype)
    Device().compile(desc).dispatch(list(inputs), [output])
    return output


def _describe(x: Array) -> BufferTensorDesc:
    return BufferTensorDesc.from_array(x)


# log softmax


@pytest.mark.parametrize("axes", LOG_SOFTMAX)
def test_log_softmax1_example(axes: tuple[int, ...]) -> None:
    x, expected = np.array(EXAMPLE, np.float32), np.array(LOG_SOFTMAX[axes]).reshape(2, 2, 2)
    for order in (axes, axes[::-1]):
        result = run(log_softmax1(_describe(x), axes=order), x)
        np.testing.assert_allclose(result, expected, rtol=3e-7, atol=1e-38)


@pytest.mark.parametrize("shape", [(5,), (4, 7), (1, 1, 4, 7), (1, 3, 1)])
def test_log_softmax_is_over_the_last_dimension(shape: tuple[int, ...]) -> None:
    x = uniform(shape, "float32")
    reference.assert_same_bits(run(log_softmax(_describe(x)), x), dmlops.log_softmax(x))


@pytest.mark.parametrize("shape", [(5,), (4, 7), (1, 1, 4, 7)])
def test_log_softmax1_over_the_last_dimension_is_log_softmax(shape: tuple[int, ...]) -> None:
    x = uniform(shape, "float32")
    last = run(log_softmax1(_describe(x), axes=(len(shape) - 1,)), x)
    reference.assert_same_bits(last, run(log_softmax(_describe(x)), x))


# batch normalization: any epsilon, in IEEE arithmetic.


@pytest.mark.parametrize(
    ("variance", "epsilon", "expected"),
    [
        (0.0, 0.0, [-np.inf, np.nan, np.inf]),
        (1.0, -1.0, [-np.inf, np.nan, np.inf]),
        (0.5, -1.0, [np.nan] * 3),
        (4.0, 0.0, [-0.5, 0.0, 0.5]),
        (1.0, np.inf, [0.0, 0.0, 0.0]),
        (1.0, np.nan, [np.nan] * 3),
    ],
)
def test_batch_normalization_variance_plus_epsilon(
    variance: float, epsilon: float, expected: list[float]
) -> None:
    x = np.array([1, 2, 3], np.float32)
    mean, spread, one, zero = (np.full_like(x, v) for v in (2, variance, 1, 0))
    desc = batch_normalization(_describe(x), epsilon=epsilon)
    reference.assert_same_values(
        run(desc, x, mean, spread, one, zero), np.array(expected, np.float32)
    )


# clip: bounds of FLOAT, and of the tensor's own type.


@pytest.mark.parametrize(
    ("dtype", "low", "high", "expected"),
    [
        ("int32", -2.9, 2.9, (-2, 2)),
        ("uint8", -1.0, 1e10, (0, 255)),
        ("int8", -math.inf, math.inf, (-128, 127)),
        ("int64", -1e30, 1e30, (-(2**63), 2**63 - 1)),
        ("uint64", -0.5, 3e38, (0, 2**64 - 1)),
        ("int16", math.nan, math.nan, (-(2**15), 2**15 - 1)),
        ("uint32", 2.0**24 + 1, math.nan, (2**24, 2**32 - 1)),
        ("float16", -1e30, 1e30, (-math.inf, math.inf)),
        ("float16", 0.0, 1.00048828125, (0.0, 1.0)),
        ("float32", math.nan, 0.1, (-math.inf, np.float32(0.1))),
        ("float32", 2.0, 1.0, (2.0, 2.0)),
    ],
)
def test_clip_bounds_in_the_tensors_type(
    dtype: str, low: float, high: float, expected: tuple[float, float]
) -> None:
    """Integers: toward zero, limited to the type; float16: to nearest even; NaN: no bound."""
    if dtype in FLOATS:
        x = np.array([-math.inf, math.inf], dtype)
    else:
        x = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    result = run(clip(_describe(x), min=low, max=high), x)
    assert result.tolist() == [np.dtype(dtype).type(v) for v in expected]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_clip1_bounds_are_exact(dtype: str) -> None:
    if dtype in FLOATS:
        low, high = (float(np.dtype(dtype).type(v)) for v in (-1.7, 2.3))
        x = uniform((100,), dtype)
    else:
        low, high = int(np.iinfo(dtype).min) + 3, int(np.iinfo(dtype).max) - 2
        x = any_bits((100,), dtype)
        x[:4] = np.iinfo(dtype).min, np.iinfo(dtype).max, low + 1, high - 1
    result = run(clip1(_describe(x), min=low, max=high), x)
    reference.assert_same_values(result, reference.clip(x, low, high))


@pytest.mark.parametrize("dtype", FLOATS)
def test_clip1_nan_is_no_bound(dtype: str) -> None:
    x = uniform((100,), dtype)
    result = run(clip1(_describe(x), min=math.nan, max=1.0), x)
    reference.assert_same_values(result, reference.clip(x, None, 1.0))


# Every operator against its formula. Other tests check bits and ulps; these check the operator, its
# parameters and their order, which change results by far more than the few ulps allowed.

_PARAMETERS: dict[str, tuple[float, ...]] = {"shrink": (0.25, 1.5), "softplus": (1.5,)}


def _activation(name: str, x: BufferTensorDesc | None) -> tuple[Any, tuple[float, ...]]:
    """Return the descriptor with parameters that differ from one another, and the parameters."""
    make = activation(name)
    fields = [f.name for f in dataclasses.fields(make(x))][2:]
    values = _PARAMETERS.get(name, (0.75, 0.375))[: len(fields)]
    more = dict(zip(fields, values, strict=True))
    return make(x, **more), values


def _expect(name: str, parameters: tuple[float, ...], x: Array, result: Array) -> None:
    (row,) = (row for row in ROWS if row.name == name)
    half = result.dtype == np.float16
    np.testing.assert_allclose(
        result,
        exact_values(row, x, parameters),
        rtol=1e-3 if half else 2e-6,
        atol=1e-3 if half else 1e-6,
    )


@pytest.mark.parametrize("name", [*ACTIVATIONS, *FURTHER])
@pytest.mark.parametrize("dtype", FLOATS)
def test_activation(name: str, dtype: str) -> None:
    x = uniform((2, 101), dtype)
    desc, parameters = _activation(name, _describe(x))
    _expect(name, parameters, x, run(desc, x))


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_fused_activation(name: str, dtype: str) -> None:
    x = uniform((2, 3, 35), dtype)
    mean, variance, scale, bias = (uniform((1, 3, 1), dtype, 0.5, 2, seed=i) for i in range(1, 5))
    fused, parameters = _activation(name, None)
    names = dict.fromkeys(
        ("mean_tensor", "variance_tensor", "scale_tensor", "bias_tensor"), _describe(mean)
    )
    desc = batch_normalization(_describe(x), fused_activation=fused, epsilon=0.125, **names)
    normal, _ = reference.batch_normalization(x, mean, variance, scale, bias, epsilon=0.125)
    result = run(desc, x, mean, variance, scale, bias)
    _expect(name, parameters, normal, result)
    parts = (mean, variance, scale, bias)
    same = dmlops.batch_normalization(x, *parts, 0.125, fused_activation=fused)
    reference.assert_same_bits(same, result)


@pytest.mark.parametrize("data_type", ["INT32", "INT16", "INT8"])
@pytest.mark.parametrize(("name", "expected"), [("relu", [0, 0, 1, 3]), ("shrink", [-3, 0, 1, 3])])
def test_integer_activations(name: str, expected: list[int], data_type: str) -> None:
    desc = activation(name)(tensor((4,), data_type))
    x = np.array([-3, 0, 1, 3], data_type.lower())
    assert run(desc, x).tolist() == expected


# One compiled operator, many threads.


@pytest.mark.parametrize("size", [100, 100_000])
def test_many_threads(size: int) -> None:
    x = uniform((size,), "float32")
    desc = log_softmax1(_describe(x))
    compiled = Device().compile(desc)
    expected = run(desc, x)
    wrong = []

    def work(seed: int) -> None:
        for _ in range(50):
            out = np.zeros_like(x)
            compiled.dispatch([x], [out])
            if not (out == expected).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
