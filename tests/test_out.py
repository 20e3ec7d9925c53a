"""`out`: in place, overlapping, refused; and the memory order of new results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from crossing import packed
from layouts import LAYOUTS, OUT_LAYOUTS, SHAPES, Placed
from operators import OPERATORS, operator_names
from reference import assert_same_bits
from variants import ISAS, pairwise

import dmlops

Array = npt.NDArray[Any]
RANK_1_UP = tuple(shape for shape in SHAPES if shape)
SHIFTS = (1, 2, 3, 8, 17, 64)
COUNTS = (5, 40, 1025)

each_operator = pytest.mark.parametrize("name", operator_names())


def memory_order(array: Array) -> list[tuple[int, int]]:
    """Return (stride, size) of the axes with more than one element."""
    return [(s, n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1]


@each_operator
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_new_results_are_dense_in_the_order_of_the_input(name: str, layout: Any) -> None:
    operator, dtype = OPERATORS[name]
    for shape in RANK_1_UP:
        x = layout.view(samples.uniform(shape, dtype))
        result = operator(x)
        assert type(result) is np.ndarray
        assert result.flags.writeable
        assert result.flags.owndata
        assert result.shape == shape
        assert result.dtype == dtype
        assert not np.shares_memory(result, x)
        if result.size and not layout.overlaps:
            assert memory_order(result) == memory_order(np.empty_like(x, order="K")), shape


@pairwise(name=OPERATORS, layout=OUT_LAYOUTS, isa=ISAS)
def test_out_is_input(name: str, layout: Any, isa: str) -> None:
    operator, dtype = OPERATORS[name]
    for shape in RANK_1_UP:
        values = samples.uniform(shape, dtype)
        expected = operator(values)
        for again in (False, True):  # the same object, or another view of the same memory
            placed = layout.place(shape, dtype).fill(values)
            out = placed.view[...] if again else placed.view
            assert operator(placed.view, out=out) is out
            assert_same_bits(placed.view, expected, f"{layout} {shape}")
            placed.assert_canaries(f"{layout} {shape}")


def expect_as_if_apart(operator: Any, base: Array, x: Array, out: Array, context: str) -> None:
    """Expect out's elements to hold the result, and all other bytes of the base to be as before."""
    expected, before = operator(packed(x)), base.copy()
    marks = np.zeros(base.nbytes, bool)
    start = out.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    cells = np.lib.stride_tricks.as_strided(
        marks[start:], (*out.shape, out.itemsize), (*out.strides, 1)
    )
    cells[...] = True
    assert operator(x, out=out) is out
    assert_same_bits(out, expected, context)
    same = base.view(np.uint8).ravel() == before.view(np.uint8).ravel()
    assert (same | marks).all(), f"{context}: wrote outside out"


@pairwise(name=OPERATORS, isa=ISAS)
def test_shifted_out(name: str, isa: str) -> None:
    operator, dtype = OPERATORS[name]
    for count in COUNTS:
        for shift in SHIFTS:
            for forward in (True, False):
                base = samples.uniform((count + shift,), dtype)
                low, high = base[:count], base[shift:]
                x, out = (low, high) if forward else (high, low)
                expect_as_if_apart(
                    operator, base, x, out, f"{count} by {shift}, forward: {forward}"
                )


@pairwise(name=OPERATORS, isa=ISAS)
def test_out_of_another_stride_over_the_same_memory(name: str, isa: str) -> None:
    operator, dtype = OPERATORS[name]
    cases: dict[str, Callable[[Array, int], tuple[Array, Array]]] = {
        "reversed": lambda base, n: (base[:n], base[:n][::-1]),
        "reversed input": lambda base, n: (base[:n][::-1], base[:n]),
        "spread": lambda base, n: (base[:n], base[: 2 * n : 2]),
        "gathered": lambda base, n: (base[: 2 * n : 2], base[:n]),
        "interleaved": lambda base, n: (base[: 2 * n : 2], base[1 : 2 * n : 2]),
        "meeting": lambda base, n: (base[:n], base[n - 1 : 2 * n - 1]),
        "beside": lambda base, n: (base[:n], base[n : 2 * n]),
        "broadcast": lambda base, n: (np.broadcast_to(base[n // 2], (n,)), base[:n]),
    }
    for context, case in cases.items():
        for count in COUNTS:
            base = samples.uniform((2 * count,), dtype)
            x, out = case(base, count)
            expect_as_if_apart(operator, base, x, out, f"{context}, {count}")


@pairwise(name=OPERATORS, isa=ISAS)
def test_tables_that_overlap(name: str, isa: str) -> None:
    operator, dtype = OPERATORS[name]
    for n in (3, 8, 33, 70):
        cases: dict[str, Callable[[Array], tuple[Array, Array]]] = {
            "transposed": lambda base: (base[:, :-1], base[:, :-1].T),
            "transposed input": lambda base: (base[:, :-1].T, base[:, :-1]),
            "rows shifted": lambda base: (base[1:, :], base[:-1, :]),
            "columns shifted": lambda base: (base[:, :-1], base[:, 1:]),
            "turned": lambda base: (base, base[::-1, ::-1]),
            "upside down": lambda base: (base, base[::-1]),
            "one row for all": lambda base: (np.broadcast_to(base[1], base.shape), base),
        }
        for context, case in cases.items():
            base = samples.uniform((n, n + 1), dtype)
            x, out = case(base)
            expect_as_if_apart(operator, base, x, out, f"{context}, {n} rows")


@pairwise(name=OPERATORS, isa=ISAS)
def test_elements_that_overlap_by_bytes(name: str, isa: str) -> None:
    operator, dtype = OPERATORS[name]
    itemsize = np.dtype(dtype).itemsize
    for shift in range(1, 2 * itemsize):
        base = np.zeros(70 * itemsize, np.uint8)
        x = base[: 60 * itemsize].view(dtype)
        x[...] = samples.uniform((60,), dtype)
        out = base[shift : shift + 60 * itemsize].view(dtype)
        expect_as_if_apart(operator, base, x, out, f"by {shift} bytes")


@pytest.mark.parametrize("name", ["clip", "hard_sigmoid", "log_softmax"])
def test_large_out_that_overlaps(name: str) -> None:
    operator, dtype = OPERATORS[name]
    base = samples.uniform((1_000_003,), dtype)
    expect_as_if_apart(operator, base, base[:-1], base[1:], "large, forward")
    expect_as_if_apart(operator, base, base[1:], base[:-1], "large, backward")
    expect_as_if_apart(operator, base, base, base[::-1], "large, reversed")
    expect_as_if_apart(operator, base, base, base, "large, in place")


@pytest.mark.parametrize("position", range(4), ids=["mean", "variance", "scale", "bias"])
def test_out_that_overlaps_a_parameter(position: int) -> None:
    for shift in (0, 1, 7, 64):
        for full in (True, False):
            base = samples.uniform((40 * 40 + 64,), np.float32, 0.5, 2)
            x = samples.uniform((40, 40), np.float32)
            values = [samples.uniform((1, 40), np.float32, 0.5, 2, seed=i) for i in range(4)]
            count = 1600 if full else 40
            values[position] = base[shift : shift + count].reshape(-1, 40)
            expected = dmlops.batch_normalization(x, *map(packed, values))
            out = base[:1600].reshape(40, 40)
            dmlops.batch_normalization(x, *values, out=out)
            assert_same_bits(out, expected, f"shift {shift}, full: {full}")


@each_operator
def test_strides_that_interleave_without_overlap(name: str) -> None:
    operator, dtype = OPERATORS[name]
    item = np.dtype(dtype).itemsize
    for shape, steps in (((3, 2), (2, 3)), ((2, 3), (3, 2)), ((2, 3), (-3, 2)), ((4, 3), (3, 4))):
        x = samples.uniform(shape, dtype)
        out = Placed(shape, dtype, [step * item for step in steps])
        operator(x, out=out.view)
        assert_same_bits(out.view, operator(x), f"{shape} {steps}")
        out.assert_canaries(f"{shape} {steps}")


@pytest.mark.parametrize("name", ["clip", "clip-int8", "clip-int64", "hard_sigmoid-float16"])
def test_calls_with_and_without_a_plan(name: str) -> None:
    # Dense tensors below 256 KiB, apart or the same, skip the plan. On either side of each of these
    # conditions, the result is that of strided tensors, and no other byte is written.
    operator, dtype = OPERATORS[name]
    most = 256 * 1024 // np.dtype(dtype).itemsize
    shapes: tuple[tuple[int, ...], ...] = (
        *((), (1,), (2,), (0,), (3, 0), (most - 1,), (most,), (most + 1,)),
        *((most // 8 - 1, 2, 4), (1, 3, 1, 5, 1), (2,) * 8, (most // 4, 1, 4), (1,) * 8),
    )
    for shape in shapes:
        count = int(np.prod(shape))
        base = samples.uniform((3 * count + 8,), dtype)
        dense = base[count : 2 * count].reshape(shape)
        pairs = np.zeros((*shape, 2), dtype)
        strided, expected = pairs[..., 0], pairs[..., 1]
        strided[...] = dense
        operator(strided, out=expected)
        for begin in {count + step for step in (-count, -count + 1, -1, 0, 1, count - 1, count)}:
            memory = base.copy()
            x = memory[count : 2 * count].reshape(shape)
            out = memory[begin : begin + count].reshape(shape)
            expect_as_if_apart(operator, memory, x, out, f"{shape}, {begin} of {count}")
            assert_same_bits(out, expected, f"{shape}, {begin} of {count}")
        for axis in range(len(shape)):  # every second index of one axis
            wide = np.zeros([n * (1 + (d == axis)) for d, n in enumerate(shape)], dtype)
            view = wide[(slice(None),) * axis + (slice(None, None, 2),)]
            between = wide[(slice(None),) * axis + (slice(1, None, 2),)]
            operator(dense, out=view)
            assert_same_bits(view, expected, f"{shape}, axis {axis} of out")
            assert not between.any(), f"{shape}, axis {axis} of out"
            view[...] = dense
            for out in (packed(view), between):
                operator(view, out=out)
                assert_same_bits(out, expected, f"{shape}, axis {axis} of the input")


OVERLAPPING = (
    ((4,), (0,)),
    ((3, 3), (1, 1)),
    ((3, 4), (0, 1)),
    ((2, 3), (2, 1)),
    ((3, 3), (-1, 1)),
)


@each_operator
@pytest.mark.parametrize(("shape", "steps"), OVERLAPPING, ids=str)
def test_out_that_overlaps_itself_is_refused(name: str, shape: Any, steps: Any) -> None:
    operator, dtype = OPERATORS[name]
    placed = Placed(shape, dtype, [step * np.dtype(dtype).itemsize for step in steps])
    before = placed.bytes.copy()
    with pytest.raises(ValueError, match=rf"{name.partition('-')[0]}.*out.*overlap"):
        operator(samples.uniform(shape, dtype), out=placed.view)
    assert (placed.bytes == before).all()


@pytest.mark.parametrize(("size", "accepted"), [(3, True), (4, False)])
def test_the_search_for_overlaps_is_bounded(size: int, accepted: bool) -> None:
    """Strides under which no elements overlap, but many come near each other."""
    base, rank = 2 * size - 1, 8
    offset = sum((size - 1) * base**k for k in range(rank)) + 1
    strides = [offset + base**k for k in range(rank)]
    memory = np.empty(sum((size - 1) * stride for stride in strides) + 1, np.int8)
    out = np.lib.stride_tricks.as_strided(memory, (size,) * rank, strides)
    x = np.zeros(out.shape, np.int8)
    if accepted:
        assert not dmlops.relu(x, out=out).any()
    else:
        with pytest.raises(ValueError, match="overlap"):
            dmlops.relu(x, out=out)


@pytest.mark.parametrize(
    "name", [name for name, (_, dtype) in OPERATORS.items() if np.dtype(dtype).itemsize > 1]
)
def test_elements_closer_than_their_size_are_refused(name: str) -> None:
    operator, dtype = OPERATORS[name]
    item = np.dtype(dtype).itemsize
    for strides in ((item - 1,), (1,), (1 - item,)):
        placed = Placed((5,), dtype, strides)
        with pytest.raises(ValueError, match="overlap"):
            operator(samples.uniform((5,), dtype), out=placed.view)


@each_operator
def test_refused_calls_leave_out_as_it_was(name: str) -> None:
    operator, dtype = OPERATORS[name]
    x = samples.uniform((4, 6), dtype)
    out = np.full((4, 6), 77, dtype)
    read_only = out.view()
    read_only.flags.writeable = False
    other = "int16" if dtype != "int16" else "float32"
    no_arrays: tuple[Any, ...] = (x.tolist(), (out,))
    refusals: list[tuple[type[Exception], Callable[[], object]]] = [
        (ValueError, lambda: operator(x, out=read_only)),
        (ValueError, lambda: operator(x[:3], out=out)),
        (ValueError, lambda: operator(x.reshape(6, 4), out=out)),
        (ValueError, lambda: operator(x[None], out=out)),
        (TypeError, lambda: operator(x.astype(other), out=out)),
        (TypeError, lambda: operator(x.astype(np.float64), out=out)),
        (TypeError, lambda: operator(no_arrays[0], out=out)),
        (TypeError, lambda: operator(x, out=no_arrays[0])),
        (TypeError, lambda: operator(x, out=no_arrays[1])),
    ]
    for i, (error, call) in enumerate(refusals):
        with pytest.raises(error):
            call()
        assert (out == 77).all(), f"refusal {i}"
