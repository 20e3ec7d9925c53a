"""Copies before and after an operator: of inputs in another order, and of results that repeat."""

import itertools

import numpy as np
import pytest
from descriptors import log_softmax1, tensor
from reference import Array, assert_same_bits

import dmlops

SHAPE = (5, 3, 4, 6)


def _varying(rng: np.random.Generator, fixed: tuple[int, ...], dtype: str) -> Array:
    """Return a view that varies along all axes except `fixed`."""
    sizes = [1 if axis in fixed else size for axis, size in enumerate(SHAPE)]
    return np.broadcast_to(rng.normal(size=sizes).astype(dtype), SHAPE)


def _outputs(dtype: str) -> list[Array]:
    """Return outputs: dense, permuted, reversed, and padded."""
    padded = np.zeros(tuple(size + 1 for size in SHAPE), dtype)
    return [
        np.zeros(SHAPE, dtype),
        np.zeros((4, 5, 6, 3), dtype).transpose(1, 3, 0, 2),
        np.zeros(SHAPE, dtype)[:, ::-1, :, ::-1],
        padded[1:, :-1, 1:, :-1],
    ]


FIXED = [axes for count in range(5) for axes in itertools.combinations(range(4), count)]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("fixed", FIXED, ids=str)
def test_reductions(fixed: tuple[int, ...], dtype: str) -> None:
    x = _varying(np.random.default_rng(1), fixed, dtype)
    for operator in (dmlops.log_softmax, dmlops.softmax, dmlops.hardmax):
        for axes in [(0,), (3,), (1, 2), (0, 2, 3)]:
            expected = operator(x.copy(), axes)
            for out in _outputs(dtype):
                assert_same_bits(operator(x, axes, out=out), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("fixed", FIXED, ids=str)
def test_several_inputs(fixed: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, *parameters = (_varying(rng, fixed, dtype) for _ in range(5))
    parameters[1] = abs(parameters[1])
    dense = [a.copy() for a in parameters]
    expected = dmlops.batch_normalization(x.copy(), *dense, fused_activation="tanh")
    slopes = dmlops.parameterized_relu(x.copy(), dense[0])
    gradients = dmlops.clip_grad(x.copy(), dense[0], -1, 1)
    scale, bias = parameters[2:]
    normalized = dmlops.mean_variance_normalization(x.copy(), dense[2], dense[3], axes=(1, 3))
    for out in _outputs(dtype):
        result = dmlops.batch_normalization(x, *parameters, fused_activation="tanh", out=out)
        assert_same_bits(result, expected)
        assert_same_bits(dmlops.parameterized_relu(x, parameters[0], out=out), slopes)
        assert_same_bits(dmlops.clip_grad(x, parameters[0], -1, 1, out=out), gradients)
        result = dmlops.mean_variance_normalization(x, scale, bias, axes=(1, 3), out=out)
        assert_same_bits(result, normalized)


@pytest.mark.parametrize("threads", [1, 2])
def test_large_results(threads: int) -> None:
    """Also in shards, and by non-temporal stores."""
    x = np.random.default_rng(3).normal(size=(1, 700, 1)).astype(np.float32)
    repeated = np.broadcast_to(x, (64, 700, 300))
    with dmlops.num_threads(threads):
        result = dmlops.log_softmax(repeated, 1)
    assert_same_bits(result, np.broadcast_to(dmlops.log_softmax(x, 1), result.shape))


def test_compiled() -> None:
    """Strides of 0 in a descriptor."""
    x = np.random.default_rng(4).normal(size=(2, 6)).astype(np.float32)
    desc = log_softmax1(tensor(SHAPE, strides=(0, 0, 0, 1)), axes=(3,), output_tensor=tensor(SHAPE))
    compiled = dmlops.Device().compile(desc)
    for row in x:
        out = np.zeros(SHAPE, np.float32)
        compiled.dispatch([row.copy()], [out])
        assert_same_bits(out, dmlops.log_softmax(np.broadcast_to(row, SHAPE).copy(), 3))


ORDERS = list(itertools.permutations(range(4)))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_inputs_in_another_order(order: tuple[int, ...], dtype: str) -> None:
    shape = (3, 20, 5, 24)
    x = np.random.default_rng(3).normal(size=shape).astype(dtype)
    places = [order.index(axis) for axis in range(4)]
    permuted = np.ascontiguousarray(x.transpose(order)).transpose(places)
    reversed_input = np.ascontiguousarray(permuted[:, ::-1, :, ::-1].transpose(order))
    inputs = [permuted, reversed_input.transpose(places)[:, ::-1, :, ::-1]]
    for operator in (dmlops.log_softmax, dmlops.softmax, dmlops.hardmax):
        for axes in [(0,), (1,), (2,), (0, 2)]:
            expected = operator(x, axes)
            for view in inputs:
                for out in (np.zeros(shape, dtype), np.zeros(shape, dtype)[::-1, ::-1, :, ::-1]):
                    assert_same_bits(operator(view, axes, out=out), expected)
                assert_same_bits(view, x)
    strides = tuple(stride // x.itemsize for stride in permuted.strides)
    desc = log_softmax1(
        tensor(shape, dtype.upper(), strides=strides),
        axes=(0, 2),
        output_tensor=tensor(shape, dtype.upper()),
    )
    out = np.zeros(shape, dtype)
    memory = permuted.transpose(order).reshape(-1)
    dmlops.Device().compile(desc).dispatch([memory], [out])
    assert_same_bits(out, dmlops.log_softmax(x, (0, 2)))
