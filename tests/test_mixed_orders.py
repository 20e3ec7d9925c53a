"""Normalizations whose operands have different memory orders: rows, and columns side by side."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
import samples
from descriptors import SEVERAL_OUTPUTS
from reference import FLOATS, assert_same_bits
from variants import small_shards

import dmlops
from dmlops import BufferTensorDesc, Device

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]
ORDERS: tuple[Literal["C", "F"], ...] = ("C", "F")  # groups are rows, or columns


def operands(name: str, shape: tuple[int, int], dtype: str) -> tuple[list[Array], list[Array]]:
    """Return the operands with an element for each element of the result, and the others."""
    x, other = (samples.uniform(shape, dtype, -2, 3, seed=i) for i in (0, 1))
    numbers = [samples.uniform((shape[0], 1), dtype, 0.5, 2, seed=i) for i in (2, 3, 4)]
    if name == "mean_variance_normalization":
        return [x, other], [np.ones((1, 1), dtype)]  # other: the scale
    if name == "batch_normalization_training":
        return [x, other], numbers[:2]  # other: fused_add
    return [x, other], numbers


def run(name: str, full: list[Array], numbers: list[Array], out: Array) -> tuple[Array, ...]:
    """Run the operator, and return its results."""
    function: Any = getattr(dmlops, name)
    if name == "mean_variance_normalization":
        function(*full, *numbers, axes=(1,), out=out)
        return (out,)
    statistics = [np.empty((len(out), 1), out.dtype) for _ in range(2)]
    outputs = (out, *statistics)
    if name == "batch_normalization_training":
        function(full[0], *numbers, full[1], out=outputs)
    else:
        function(*full, *numbers, out=outputs)
    return outputs


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 1100), (20, 1030), (70, 4100), (20, 90), (520, 20)], ids=str)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["mean_variance_normalization", *SEVERAL_OUTPUTS])
def test_orders_do_not_change_the_bits(
    name: str, threads: int, shape: tuple[int, int], dtype: str
) -> None:
    full, numbers = operands(name, shape, dtype)
    with dmlops.num_threads(1):
        expected = run(name, full, numbers, np.empty(shape, dtype))
    with small_shards(threads):
        for order, place in itertools.product(itertools.product(ORDERS, repeat=3), (None, 0, 1)):
            ordered = [np.array(a, order=o) for a, o in zip(full, order, strict=False)]
            if place is None:
                out = np.empty(shape, dtype, order=order[2])
            elif order[place] == order[2]:
                out = ordered[place]  # the result replaces an operand
            else:
                continue
            for result, of_rows in zip(run(name, ordered, numbers, out), expected, strict=True):
                assert_same_bits(result, of_rows)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("channels", [3, 90, 600])
@pytest.mark.parametrize("pixels", [20, 70, 600])
def test_channels_of_each_pixel(pixels: int, channels: int, dtype: str) -> None:
    """Scale and bias have an element for each channel, which all pixels share."""
    shape = (2, channels, pixels)
    x, second = (samples.uniform(shape, dtype, -2, 3, seed=i) for i in (0, 1))
    scale, bias = (samples.uniform((1, 2 * channels, 1), dtype, 0.5, 2, seed=i) for i in (2, 3))
    scale, bias = scale[:, ::2], bias[:, ::-2]

    def last(array: Array) -> Array:
        return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)

    shared = np.broadcast_to(second[:1, :, :1], shape)
    numbers = [samples.uniform((2, 1, pixels), dtype, 0.5, 2, seed=i) for i in (4, 5, 6)]
    expected = dmlops.mean_variance_normalization(last(x), scale, bias, axes=(1,))
    gradients = dmlops.batch_normalization_training_grad(last(x), last(shared), *numbers)
    for given in (x, np.repeat(x, 2, axis=2)[:, :, ::2], last(x)):
        for threads in (1, 3):
            with small_shards(threads):
                out = dmlops.mean_variance_normalization(given, scale, bias, axes=(1,))
                assert_same_bits(out, expected)
                results = dmlops.batch_normalization_training_grad(given, shared, *numbers)
                for result, of_last in zip(results, gradients, strict=True):
                    assert_same_bits(result, of_last)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(20, 1030), (20, 90)], ids=str)
def test_compiled_operators_have_the_bits_of_functions(shape: tuple[int, int], dtype: str) -> None:
    of = BufferTensorDesc.from_array
    for order in itertools.product(ORDERS, repeat=3):
        for name, operator in (
            ("batch_normalization_training", dmlops.BatchNormalizationTrainingOperatorDesc),
            (
                "batch_normalization_training_grad",
                dmlops.BatchNormalizationTrainingGradOperatorDesc,
            ),
        ):
            full, numbers = operands(name, shape, dtype)
            x, other = (np.array(a, order=o) for a, o in zip(full, order, strict=False))
            expected = run(name, full, numbers, np.empty(shape, dtype))
            outputs = [np.empty(shape, dtype, order=order[2])]
            outputs += [np.empty((shape[0], 1), dtype) for _ in range(2)]
            if name == "batch_normalization_training":
                inputs = [x, *numbers, other]
                names = ["input", "scale", "bias", "fused_add"]
                names += ["output", "output_mean", "output_variance"]
            else:
                inputs = [x, other, *numbers]
                names = ["input", "input_gradient", "mean", "variance", "scale"]
                names += ["output_gradient", "output_scale_gradient", "output_bias_gradient"]
            tensors: Any = {
                f"{tensor}_tensor": of(array)
                for tensor, array in zip(names, [*inputs, *outputs], strict=True)
            }
            Device().compile(operator(**tensors)).dispatch(inputs, outputs)
            for result, of_rows in zip(outputs, expected, strict=True):
                assert_same_bits(result, of_rows)
