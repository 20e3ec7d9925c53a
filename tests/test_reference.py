"""The references themselves, against exact fractions and hand-worked values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import reference
import samples
from reference import nearest


def test_fma_is_rounded_once() -> None:
    x = samples.any_bits((3000,), np.float32, seed=1)
    x = x[np.isfinite(x) & (np.abs(x) < 1e30)]
    pairs = np.array([(0.2, 0.5), (3.0, 2.0**-30), (1 + 2.0**-23, -1.0), (0.1, 1e-40)], np.float32)
    for scale, bias in pairs.tolist():
        ours = reference.fma32(x, scale, bias)
        for value, got in zip(x.tolist(), ours.tolist(), strict=True):
            assert got == nearest(Fraction(value) * Fraction(scale) + Fraction(bias), "float32")


def test_fma_beyond_the_largest() -> None:
    x = np.array([3e38, -3e38], np.float32)
    for scale, bias in ((15010.0, 1.0), (15010.0, -1.0), (2.0, 1e-45)):
        assert reference.fma32(x, scale, bias).tolist() == [math.inf, -math.inf]
    assert reference.fma32(x, 2.0, -3e38)[0] == np.float32(3e38)


def test_fma_breaks_ties_by_what_float64_cannot_hold() -> None:
    # 1 + 2**-24 is a tie in float32; 2**-80, which float64 loses in the sum, breaks the tie.
    x = np.array([2.0**-80, -(2.0**-80), 0.0], np.float32)
    high = np.full(3, 1 + 2.0**-24)
    assert reference.round_sum(high, x.astype(float), np.float32).tolist() == [
        1 + 2.0**-23,
        1.0,
        1.0,
    ]
    assert reference.round_sum(-high, x.astype(float), np.float32).tolist() == [
        -1.0,
        -1 - 2.0**-23,
        -1.0,
    ]


def test_scaled_integers_are_rounded_once() -> None:
    x = samples.any_bits((300,), np.int64, seed=3).tolist()
    for scale, bias in np.array(
        [(0.3, -7.9), (1 + 2.0**-23, 2.0**40), (1e-12, 0.1)], np.float32
    ).tolist():
        got = reference.clip(np.array(x), scale=(scale, bias)).tolist()
        for value, result in zip(x, got, strict=True):
            exact = Fraction(float(value)) * Fraction(scale) + Fraction(bias)
            assert result == min(max(int(nearest(exact, "float64")), -(2**63)), 2**63 - 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_ulp_is_the_gap_above(dtype: type[np.floating]) -> None:
    x = np.abs(samples.any_bits((5000,), dtype, seed=2))
    x = x[np.isfinite(x) & (x < np.finfo(dtype).max)]
    gap = np.nextafter(x, dtype(np.inf)).astype(float) - x.astype(float)
    assert (reference.ulp(x, dtype) == gap).all()
    assert reference.ulp(0.0, dtype) == np.finfo(dtype).smallest_subnormal


def test_float16_hard_sigmoid_by_fractions() -> None:
    finite = samples.EVERY_FLOAT16[np.isfinite(samples.EVERY_FLOAT16)]
    alpha, beta = Fraction(float(np.float32(0.2))), Fraction(0.5)
    ours = reference.hard_sigmoid(finite, 0.2, 0.5)
    for value, got in zip(finite.tolist(), ours.tolist(), strict=True):
        single = nearest(alpha * Fraction(value) + beta, "float32")
        assert got == nearest(Fraction(max(0.0, min(single, 1.0))), "float16")


def test_clip_by_hand() -> None:
    x = np.array([-5, -1, 0, 3, 9], np.int8)
    assert reference.clip(x, -1, 3).tolist() == [-1, -1, 0, 3, 3]
    assert reference.clip(x, 4, 2).tolist() == [4] * 5
    assert reference.clip(x, -1000, 1000).tolist() == x.tolist()
    assert reference.clip(x, None, None, (-0.5, 0.75)).tolist() == [3, 1, 0, 0, -3]
    assert reference.clip(x, None, None, (100.0, 0.0)).tolist() == [-128, -100, 0, 127, 127]
    assert reference.clip(x, None, 5, (math.nan, 0.0)).tolist() == [0] * 5
    top = np.array([2**64 - 1, 2**63 - 1, 2**53 + 1], np.uint64)
    assert reference.clip(top, None, None, (1.0, 0.0)).tolist() == top.tolist()
    assert reference.clip(top, None, None, (1.0, -1.0)).tolist() == [2**64 - 1, 2**63, 2**53 - 1]
    floats = np.array([math.nan, -math.inf, 7.0], np.float32)
    assert reference.clip(floats, -1.0, math.nan).tolist()[1:] == [-1.0, 7.0]
    assert math.isnan(reference.clip(floats, -1.0, 1.0)[0])


def test_batch_normalization_by_hand() -> None:
    x, four = np.array([[1.0, 5.0]], np.float32), np.array([[4.0]], np.float32)
    result, allowed = reference.batch_normalization(x, x[:, :1], four, 2 * four, -four, epsilon=0.0)
    assert result.tolist() == [[-4.0, 12.0]]
    assert allowed.tolist() == [[2 * 2.0**-21, 2 * 2.0**-19]]  # the larger: |bias| = 4, 16


def test_log_softmax_by_hand() -> None:
    result, _ = reference.log_softmax(np.array([[0.0, 0.0], [math.log(3), 0.0]]), 1)
    expected = [[-math.log(2)] * 2, [math.log(0.75), math.log(0.25)]]
    np.testing.assert_allclose(result, expected, rtol=1e-15)
    far, _ = reference.log_softmax(np.array([12.0, 0.0]))
    np.testing.assert_allclose(far, [-6.144193477732806e-06, -12.000006144193478], rtol=1e-14)
    rows = np.array([[math.inf, 0.0], [-math.inf, -math.inf], [math.nan, 0.0], [-math.inf, 3.0]])
    values = reference.log_softmax(rows, 1)[0]
    assert np.isnan(values[:3]).all()
    assert values[3].tolist() == [-math.inf, 0.0]


@pytest.mark.parametrize("wrong", [1.0 + 3 * 2.0**-23, math.nan, math.inf])
def test_comparisons_can_fail(wrong: float) -> None:
    one, bad = np.array([1.0], np.float32), np.array([wrong], np.float32)
    with pytest.raises(AssertionError, match="1 of 1 elements differ"):
        reference.assert_within(bad, one.astype(float), np.array([2 * 2.0**-23]))
    for compare in (reference.assert_same_values, reference.assert_same_bits):
        compare(one, one)
        with pytest.raises(AssertionError, match="1 of 1 elements differ"):
            compare(bad, one)
