"""Scales and biases of channels, in normalizations over channels and pixels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import samples
from reference import FLOATS, assert_same_bits

import dmlops

pytestmark = pytest.mark.usefixtures("isa", "policy")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("run", [63, 64, 101, 900, 5000])
def test_parameters_that_repeat_along_runs(dtype: str, run: int) -> None:
    """As in group normalization with channels first: one element for each channel."""
    padded = samples.uniform((2, 3, 7, run + 3), dtype, -3, 3)
    padded[1] += 200  # far from 0
    x = padded[..., :run]
    scale = samples.uniform((1, 3, 7, 1), dtype, 0.5, 2, seed=1)
    bias = samples.uniform((2, 1, 14, 1), dtype, -1, 1, seed=2)[:, :, ::2]
    whole = np.full((1, 1, 1, run), 0.5, dtype)
    for first, second in ((scale, bias), (scale, None), (None, bias), (scale, whole)):
        given = (first, second)
        dense = [None if p is None else np.broadcast_to(p, x.shape).copy() for p in given]
        for source, axes in itertools.product((x, x.copy()), ((2, 3), (1, 2, 3), (0, 2, 3))):
            for activation in (None, "relu"):
                expected, result = (
                    dmlops.mean_variance_normalization(
                        source, a, b, axes=axes, fused_activation=activation
                    )
                    for a, b in (dense, given)
                )
                assert_same_bits(result, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("channels", "pixels"), [(100, 130), (130, 100), (40, 300), (20, 5000), (3, 9000)]
)
def test_parameters_of_channels_last(channels: int, pixels: int, dtype: str) -> None:
    """Tiles are longer than usual, with many runs or long ones."""
    x = samples.uniform((3, pixels, channels), dtype, -3, 3).swapaxes(1, 2)
    scale, bias = (samples.uniform((1, 2 * channels, 1), dtype, 0.5, 2, seed=i) for i in (1, 2))
    scale, bias = scale[:, ::2], bias[:, :channels]
    packed = np.ascontiguousarray(x)
    full = [np.broadcast_to(p, x.shape).copy() for p in (scale, bias)]
    for a, b, i in ((scale, bias, 2), (scale, None, 1), (None, bias, 0)):
        dense = [None if i == 0 else full[0], None if i == 1 else full[1]]
        for activation in (None, "relu"):
            expected = dmlops.mean_variance_normalization(
                packed, dense[0], dense[1], axes=(1, 2), fused_activation=activation
            )
            for given, like in itertools.product((x, packed), repeat=2):
                result = dmlops.mean_variance_normalization(
                    given, a, b, axes=(1, 2), fused_activation=activation, out=np.empty_like(like)
                )
                assert_same_bits(result, expected)
