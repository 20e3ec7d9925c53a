"""Groups of channels side by side, such as those of group normalization with channels last.

The bits are those of dense groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from reference import FLOATS
from variants import small_shards

import dmlops

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]

# Batch, pixels, groups, channels of a group: channels shorter than a block of a sum; that begin
# with a block, or within one; whole vectors of channels, vectors that overlap, and more than are
# added up at once; single groups; several batches of groups.
SIZES = [
    (3, 100, 9, 5),
    (2, 196, 2, 16),
    (1, 800, 70, 3),
    (2, 1024, 2, 8),
    (1, 1100, 40, 2),
    (3, 1031, 5, 10),
    (1, 2049, 2, 33),
    (1, 1500, 3, 7),
    (1, 4100, 1, 35),
    (2, 4096, 1, 32),
    (1, 6000, 4, 70),
]


def drawn(sizes: tuple[int, ...], dtype: str) -> tuple[Array, Array]:
    """Return two tensors with channels last, as [batch, groups, channels, pixels].

    The mean of some groups is far from 0, which needs a further sweep.
    """
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((2, *sizes))
    x[:, :, ::3] += 300
    last = (0, 2, 3, 1)
    return x.astype(dtype).transpose(last), g.astype(dtype).transpose(last)


def results(x: Array, g: Array, numbers: list[Array], channels: list[Array]) -> Iterator[Array]:
    """Yield the results of each operator, in the memory order of the input."""
    a, b, c = numbers
    scale, bias = channels
    first = x[:, :, :1, :1]

    def outputs() -> tuple[Array, Array, Array]:
        return np.empty_like(x), np.empty_like(first), np.empty_like(first)

    yield dmlops.mean_variance_normalization(x, axes=(2, 3))
    yield dmlops.mean_variance_normalization(x, scale, bias, axes=(2, 3), out=outputs()[0])
    yield dmlops.mean_variance_normalization(
        x, a[:1], b[:1], axes=(2, 3), use_mean=False, fused_activation="relu", out=outputs()[0]
    )
    yield from dmlops.batch_normalization_training(x, a, b, g, out=outputs())
    yield from dmlops.batch_normalization_grad(x, g, a, b, c, out=outputs())
    yield from dmlops.batch_normalization_training_grad(x, g, a, b, c, out=outputs())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "x".join(map(str, sizes)))
def test_groups_of_channels_last(sizes: tuple[int, ...], dtype: str) -> None:
    x, g = drawn(sizes, dtype)
    rng = np.random.default_rng(2)
    batch, _, groups, width = sizes
    numbers = [(rng.random((batch, groups, 1, 1)) + 0.5).astype(dtype) for _ in range(3)]
    channels = [(rng.random((1, groups, width, 1)) + 0.5).astype(dtype) for _ in range(2)]
    dense = np.ascontiguousarray(x), np.ascontiguousarray(g)
    with dmlops.num_threads(1):
        expected = [r.tobytes() for r in results(*dense, numbers, channels)]
    for threads in (1, 2, 40):
        with small_shards(threads, split_threshold=1000):
            found = [r.tobytes() for r in results(x, g, numbers, channels)]
            assert found == expected, threads
            scale, bias = channels
            for given, like in ((x, dense[0]), (dense[0], x)):  # of different orders
                out = np.empty_like(like)
                dmlops.mean_variance_normalization(given, scale, bias, axes=(2, 3), out=out)
                assert out.tobytes() == expected[1], threads
            in_place = x.copy(order="K")
            dmlops.mean_variance_normalization(in_place, scale, bias, axes=(2, 3), out=in_place)
            assert in_place.tobytes() == expected[1], threads


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("groups", "channels"), [(4, slice(0, 8)), (1, slice(1, 39))])
def test_cropped_images(groups: int, channels: slice, dtype: str) -> None:
    """Rows of pixels with gaps, whose contents stay, and a NaN in one group."""
    rng = np.random.default_rng(1)
    memory = rng.standard_normal((2, 72, 66, groups, 8 if groups > 1 else 40)).astype(dtype)
    memory[0, 3, 4, 0, 5] = np.nan

    def cropped(images: Array) -> Array:
        return images[:, 2:70, 1:64, :, channels].transpose(0, 3, 4, 1, 2)

    x = cropped(memory)
    expected = dmlops.mean_variance_normalization(np.ascontiguousarray(x), axes=(2, 3, 4))
    for threads in (1, 40):
        around = np.full_like(memory, 7)
        with small_shards(threads, split_threshold=1000):
            dmlops.mean_variance_normalization(x, axes=(2, 3, 4), out=cropped(around))
        assert cropped(around).tobytes() == expected.tobytes()
        assert np.isnan(cropped(around)).any(axis=(2, 3, 4)).sum() == 1
        cropped(around)[...] = 7
        assert (around == 7).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_output_in_place_of_an_operand_of_its_order(dtype: str) -> None:
    """The input has another order: it must not be copied over the other operand first."""
    _, g = drawn((2, 2048, 2, 8), dtype)
    x = samples.uniform((2, 2, 8, 2048), dtype, -2, 3)
    a, b, c = (samples.uniform((2, 2, 1, 1), dtype, 0.5, 2, seed=i) for i in range(3))

    def operands() -> tuple[Array, Array, Array]:
        return g.copy(order="K"), np.empty_like(a), np.empty_like(a)

    for run in (
        lambda second, out: dmlops.batch_normalization_training(x, a, b, second, out=out),
        lambda second, out: dmlops.batch_normalization_training_grad(x, second, a, b, c, out=out),
        lambda second, out: (
            dmlops.mean_variance_normalization(x, second, axes=(2, 3), out=out[0]),
        ),
    ):
        expected = [result.tobytes() for result in run(g, operands())]
        in_place = operands()
        assert [result.tobytes() for result in run(in_place[0], in_place)] == expected
