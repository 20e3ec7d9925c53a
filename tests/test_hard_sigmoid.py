"""hard_sigmoid: one fused multiply-add, clipped to [0, 1]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import samples
from crossing import cross_sizes
from layouts import LARGE, SHAPES, SIZES
from reference import FLOATS, assert_same_values

import dmlops

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]
PARAMETERS = (
    *((0.2, 0.5), (1 / 6, 0.5), (1.0, 0.0), (-0.2, 0.5), (0.0, 0.25), (1e-40, 0.5), (3e38, -1.0)),
    *(
        (0.2, 1e-45),
        (math.inf, 0.0),
        (0.0, math.inf),
        (1.0, -math.inf),
        (math.nan, 0.5),
        (0.2, math.nan),
    ),
)


def test_by_hand() -> None:
    x = np.array([-10, -2.5, -1, 0, 1, 2.5, 10, -math.inf, math.inf], np.float32)
    low, high = np.float32(0.3), np.float32(0.7)
    assert dmlops.hard_sigmoid(x).tolist() == [0, 0, low, 0.5, high, 1, 1, 0, 1]
    assert dmlops.hard_sigmoid(x, 1.0, 0.0).tolist() == [0, 0, 0, 0, 1, 1, 1, 0, 1]
    assert dmlops.hard_sigmoid(x, alpha=0.0, beta=0.25)[:7].tolist() == [0.25] * 7
    assert np.isnan(dmlops.hard_sigmoid(x, 0.0, 0.25)[7:]).all()  # 0 times infinity


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("alpha", "beta"), PARAMETERS)
def test_values(dtype: str, alpha: float, beta: float) -> None:
    x = np.concatenate(
        [samples.specials(dtype), samples.any_bits((2000,), dtype), samples.uniform((2000,), dtype)]
    )
    expected = reference.hard_sigmoid(x, alpha, beta)
    assert_same_values(dmlops.hard_sigmoid(x, alpha, beta), expected)


def test_every_float16() -> None:
    x = samples.EVERY_FLOAT16
    for alpha, beta in PARAMETERS:
        expected = reference.hard_sigmoid(x, alpha, beta)
        assert_same_values(dmlops.hard_sigmoid(x, alpha, beta), expected, f"{alpha} x + {beta}")


def test_one_rounding() -> None:
    # alpha * x + beta cancels to the rounding error of the product.
    x = np.float32(1 + 2.0**-12) * np.ones(100, np.float32)
    alpha, beta = float(1 + 2.0**-12), -float(1 + 2.0**-11)
    assert (dmlops.hard_sigmoid(x, alpha, beta) == 2.0**-24).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_is_canonical(dtype: str) -> None:
    bits = f"u{np.dtype(dtype).itemsize}"
    x = samples.any_bits((1 << 16,), dtype, seed=7)
    if dtype == "float32":
        x[::7].view(bits)[...] |= 0x7F800000
    result = dmlops.hard_sigmoid(x)
    assert (result[np.isnan(x)].view(bits) == reference.CANONICAL_NAN[dtype]).all()
    assert not np.isnan(result[~np.isnan(x)]).any()
    produced = dmlops.hard_sigmoid(np.array([math.inf, -math.inf] * 40, dtype), 0.0, 0.5)
    assert (produced.view(bits) == reference.CANONICAL_NAN[dtype]).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_sizes(dtype: str) -> None:
    x = samples.uniform((max(SIZES) * 2 + 8,), dtype, seed=8)
    cross_sizes(dmlops.hard_sigmoid, x, reference.hard_sigmoid(x), assert_same_values)


@pytest.mark.parametrize("dtype", FLOATS)
def test_shapes(dtype: str) -> None:
    for shape in SHAPES:
        x = samples.uniform(shape, dtype, seed=9)
        assert_same_values(dmlops.hard_sigmoid(x), reference.hard_sigmoid(x), f"{dtype} {shape}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_large(dtype: str) -> None:
    x = samples.uniform((LARGE,), dtype, seed=10)
    assert_same_values(dmlops.hard_sigmoid(x), reference.hard_sigmoid(x))
    table = x[: 1023 * 1025].reshape(1023, 1025)
    assert_same_values(dmlops.hard_sigmoid(table.T), reference.hard_sigmoid(table).T)
