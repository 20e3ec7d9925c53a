"""softmax and hardmax: published values, special values, accuracy, and every set of axes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import samples
from reference import EXAMPLE, FLOATS, assert_same_bits, assert_within
from variants import small_shards

import dmlops

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]

# 50-digit values for the example.
SOFTMAX: dict[tuple[int, ...], list[float]] = {
    (1,): [
        *(1, 1.6701421848095181e-05, 8.4086e-50, 0.9999832985781519),
        *(0.95257412682243322, 1, 0.047425873177566781, 3.246e-146),
    ],
    (0,): [
        *(0.99987660542401377, 2.37e-102, 1.368539471173853e-44, 1),
        *(1.2339457598623173e-04, 1, 1, 2.29e-49),
    ],
    (0, 2): [
        *(3.86e-97, 2.37e-102, 2.29e-49, 0.9999832985781519),
        *(4.76e-101, 1, 1.6701421848095181e-05, 2.29e-49),
    ],
    (2,): [
        *(0.99999385582539779, 6.1441746022147178e-06, 2.29e-49, 1),
        *(4.76e-101, 1, 1, 1.3685e-44),
    ],
    (0, 1, 2): [0, 0, 0, 0, 0, 1, 0, 0],
}
# The documentation's own results.
HARDMAX = {
    (1,): [1, 0, 0, 1, 1, 1, 0, 0],
    (0,): [1, 0, 0, 1, 0, 1, 1, 0],
    (0, 2): [0, 0, 0, 1, 0, 1, 0, 0],
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axes", SOFTMAX, ids=str)
def test_published_softmax(dtype: str, axes: tuple[int, ...]) -> None:
    expected = np.array(SOFTMAX[axes]).reshape(2, 2, 2)
    allowed = 2 * reference.ulp(expected, np.dtype(dtype))
    for order in itertools.permutations(axes):
        assert_within(dmlops.softmax(np.array(EXAMPLE, dtype), order), expected, allowed)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axes", HARDMAX, ids=str)
def test_published_hardmax(dtype: str, axes: tuple[int, ...]) -> None:
    expected = np.array(HARDMAX[axes], dtype).reshape(2, 2, 2)
    for order in itertools.permutations(axes):
        assert_same_bits(dmlops.hardmax(np.array(EXAMPLE, dtype), order), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "hardmax"])
def test_every_set_of_axes(name: str, dtype: str) -> None:
    x = samples.uniform((3, 6, 5, 35), dtype, -8, 8)
    for view in (x, x.transpose(2, 0, 3, 1), x[::-1, ::2]):
        for count in (1, 2, 3, 4):
            for axes in itertools.combinations(range(4), count):
                exact, allowed = getattr(reference, name)(view, axes)
                assert_within(getattr(dmlops, name)(view, axes), exact, allowed, f"axes {axes}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [1, 2, 3, 7, 16, 31, 64, 65, 1000, 1025, 4099])
def test_groups_of_every_kind_of_length(dtype: str, length: int) -> None:
    for low, high in ((-1, 1), (-20, 20), (-100, 100)):
        rows = samples.uniform((9, length), dtype, low, high, seed=length)
        for x, axis in ((rows, 1), (rows.T, 0)):
            for name in ("softmax", "hardmax"):
                exact, allowed = getattr(reference, name)(x, axis)
                assert_within(getattr(dmlops, name)(x, axis), exact, allowed, f"{name} {low}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype: str) -> None:
    inf, nan = np.inf, np.nan
    x = np.array(
        [[-inf, 0, 0], [-inf, -inf, -inf], [inf, 0, 1], [nan, 1, 2], [-0.0, 0.0, -0.0]], dtype
    )
    third = 1 / 3
    soft = [[0, 0.5, 0.5], [nan] * 3, [nan] * 3, [nan] * 3, [third] * 3]
    hard = [[0, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]]
    for values, axis in ((x, 1), (x.T, 0)):
        turn = np.asarray if axis == 1 else np.transpose
        assert_same_bits(dmlops.softmax(values, axis), turn(np.array(soft, dtype)))
        assert_same_bits(dmlops.hardmax(values, axis), turn(np.array(hard, dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_first_nan_is_the_maximum(dtype: str) -> None:
    for length in (1, 5, 40, 300):
        places = sorted({0, length // 2, length - 1})
        for first, second in itertools.combinations_with_replacement(places, 2):
            x = samples.uniform((3, length), dtype, -8, 8)
            x[0, [first, second]] = np.nan
            x[1, [first, second]] = 9
            x[2, second] = np.nan
            expected = np.zeros((3, length), dtype)
            expected[:2, first] = 1
            expected[2, second] = 1
            assert_same_bits(dmlops.hardmax(x), expected)
            assert_same_bits(dmlops.hardmax(x.T, 0), expected.T)
            columns = np.ascontiguousarray(np.tile(x, (15, 1)).T)
            assert_same_bits(dmlops.hardmax(columns, 0), np.tile(expected, (15, 1)).T)


# Exponentials that differ from the nearest float32 number by half a unit in its last place, so that
# their quotients by themselves are halfway between 1 and the next number.
HALFWAY = [-11.747649192810059, 0.7337575554847717, 20.143632888793945, 61.7263069152832]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [1, 2, 40, 2000, 300_000])
def test_results_do_not_exceed_1(dtype: str, length: int) -> None:
    for dominating in (HALFWAY, HALFWAY[:3]):  # with and without one that needs the maximum
        rows = np.repeat(np.array(dominating, dtype)[:, None], length, axis=1) - np.array(40, dtype)
        rows[:, length // 2] = dominating
        for x, axis in ((rows, 1), (rows.T.copy(), 0), (rows[1], 0)):
            result = dmlops.softmax(x, axis)
            assert result.max() <= 1
            assert_within(result, *reference.softmax(x, axis))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [1, 2, 9, 40, 2000, 300_000])
@pytest.mark.parametrize("others", [-np.inf, -36])
def test_the_maximum_is_1_if_the_sum_of_the_others_vanishes(
    dtype: str, length: int, others: float
) -> None:
    """As in the first rows of a causal mask. Elements above 22 need the maximum."""
    for low, high in ((-7, 7), (-22, 22), (-80, 80)):
        for groups in (3, 40) if length < 300_000 else (3,):
            x = np.repeat(samples.uniform((groups, 1), dtype, low, high), length, axis=1)
            x[:, 1:] += np.array(others, dtype)
            x = np.roll(x, length // 3, axis=1)
            expected = np.ones((groups, 1), dtype)
            assert_same_bits(dmlops.softmax(x, 1).max(axis=1, keepdims=True), expected)
            assert_same_bits(dmlops.softmax(x.T.copy(), 0).max(axis=0), expected[:, 0])


def test_whether_the_other_term_vanishes_in_the_sum() -> None:
    """One of e^-16 of the maximum's term does not in float32; one of e^-17.4 does."""
    for distance, vanishes in ((16, False), (17.4, True)):
        for top in np.linspace(3, 8 if distance == 16 else 12, 401, dtype=np.float32):
            x = np.array([top, top - np.float32(distance)])
            for result in (dmlops.softmax(x), dmlops.softmax(np.repeat(x[:, None], 40, 1), 0)):
                assert (result.max() == 1) == vanishes


def test_in_place_and_empty() -> None:
    for function in (dmlops.softmax, dmlops.hardmax):
        x = samples.uniform((7, 33), "float32", -8, 8)
        expected = function(x)
        assert function(x, out=x) is x
        assert_same_bits(x, expected)
        assert function(np.empty((0, 3), np.float32), 0).shape == (0, 3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "hardmax"])
def test_threads_divide_runs_of_groups_in_place(name: str, dtype: str) -> None:
    """The runs are whole vectors, but not the shares of the threads."""
    function = getattr(dmlops, name)
    for shape, threads in itertools.product([(1, 60, 20), (2, 60, 24), (1, 60, 48)], (2, 3, 5)):
        x = samples.uniform(shape, dtype, -8, 8)
        expected = function(x, 1)
        with small_shards(threads):
            assert_same_bits(function(x, 1, out=x), expected, f"{shape}, {threads} threads")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "hardmax"])
@pytest.mark.parametrize(
    "length", [2, 15, 16, 17, 31, 32, 63, 64, 65, 128, 1023, 1024, 1025, 1089, 4097]
)
def test_rows_and_columns_give_the_same_bits(name: str, dtype: str, length: int) -> None:
    function = getattr(dmlops, name)
    for groups in (9, 63, 64, 65, 130):
        rows = samples.uniform((groups, length), dtype, -8, 8, seed=length)
        rows[groups // 2 :, 1] *= 5  # beyond the range in which exponentials need no maximum
        if groups > 64:
            rows[1, length // 2 :] = np.nan
            rows[2] = rows[2, 0]
            rows[3] = -np.inf
        expected = function(rows, 1)
        columns = np.ascontiguousarray(rows.T)
        assert_same_bits(function(columns, 0).T, expected)
        assert_same_bits(function(columns[:, ::-1], 0)[:, ::-1].T, expected)
        assert_same_bits(function(np.stack([columns, columns], axis=2), 0)[:, :, 1].T, expected)
        out = np.empty((length, groups + 3), dtype)[:, :groups]
        assert_same_bits(function(rows.T, 0, out=out).T, expected)
        if length % 16 == 0:  # two axes
            split = np.ascontiguousarray(rows.reshape(groups, 2, length // 2).transpose(2, 0, 1))
            results = function(split.transpose(1, 2, 0), (1, 2))
            assert_same_bits(results.reshape(groups, length), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axes", [(1,), (0, 1), (1, 2)], ids=str)
def test_hardmax_of_another_order(dtype: str, axes: tuple[int, ...]) -> None:
    """Every order of memory of the input and the output, which have gaps; ties and NaN."""
    shape = (3, 70, 5)
    values = samples.uniform(shape, dtype, -8, 8)
    values[1, 60:, :2] = np.nan
    values[2, 7:] = 9
    expected = reference.hardmax(values, axes)[0].astype(dtype)
    for orders in itertools.product(itertools.permutations(range(3)), repeat=2):
        memory = [np.full([shape[k] + 1 for k in order], 7, dtype) for order in orders]
        x, out = (
            whole[:-1, :-1, :-1].transpose(np.argsort(order))
            for whole, order in zip(memory, orders, strict=True)
        )
        x[...] = values
        dmlops.hardmax(x, axes, out=out)
        assert_same_bits(out, expected, str(orders))
        out[...] = 7
        assert (memory[1] == 7).all(), orders


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "hardmax"])
@pytest.mark.parametrize("run", [5, 100, 1024, 1031, 4111])
def test_groups_in_runs_have_the_bits_of_contiguous_ones(name: str, dtype: str, run: int) -> None:
    function = getattr(dmlops, name)
    rows = samples.uniform((3, 5 * run), dtype, -8, 8, seed=run)
    rows[1] *= 5  # beyond the range in which exponentials need no maximum
    expected = function(rows, 1)
    for pitch in (run, run + 6):
        x, y = (np.zeros((5, 3, pitch), dtype)[:, :, :run] for _ in range(2))
        x[...] = rows.reshape(3, 5, run).transpose(1, 0, 2)
        for out in (y, x):
            function(x, (0, 2), out=out)
            assert_same_bits(out.transpose(1, 0, 2).reshape(3, -1), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("operator", ["softmax", "log_softmax", "hardmax"])
def test_small_dense_calls_as_others(operator: str, dtype: str) -> None:
    """Calls below the threshold for threads skip the plan where groups are rows."""
    function = getattr(dmlops, operator)
    special = [np.nan, np.inf, -np.inf, 0.0, 1e4, -1e4]
    for shape in (
        (),
        (1,),
        (7,),
        (1, 10),
        (5, 1, 33),
        (3, 4, 5),
        (2, 1, 3, 1),
        (16, 128),
        (64, 70),
    ):
        axes = [(k,) for k in range(max(len(shape), 1))]
        for reduced in [*axes, tuple(range(len(shape)))[-2:] or (0,)]:
            for values in (samples.uniform(shape, dtype, -3, 3), np.resize(special, shape)):
                x = np.asarray(values, dtype)
                result, in_place = function(x, reduced), x.copy()
                function(in_place, reduced, out=in_place)
                with small_shards(1, split_threshold=1):
                    planned = function(x, reduced)
                assert_same_bits(result, planned, f"{shape}, {reduced}")
                assert_same_bits(in_place, planned, f"{shape}, {reduced}, in place")


def test_axes_as_arrays() -> None:
    x = samples.uniform((3, 4), "float32", -8, 8, seed=1)
    for axes in (np.array(1), np.array([1]), [np.array(1)], np.int8(1)):
        assert_same_bits(dmlops.softmax(x, axes), dmlops.softmax(x, 1))
    for axes in (np.array(1.5), np.array([[0, 1]]), [np.array([0, 1])]):
        with pytest.raises(
            TypeError, match=r"softmax: axes must be an int or .*, not numpy.ndarray"
        ):
            dmlops.softmax(x, axes)
