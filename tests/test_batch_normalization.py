"""batch_normalization: accuracy, and parameters of every form on every axis."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import samples
from crossing import cross_layouts, packed
from guarded import GuardedMemory
from layouts import BY_NAME, LARGE, LAYOUTS, OUT_LAYOUTS, SHAPES, SIZES
from normalization import NAMES, check, parameter, parameters, per_channel
from operators import normalize
from reference import FLOATS, assert_same_bits
from variants import Extent, small_shards

import dmlops

pytestmark = pytest.mark.usefixtures("isa", "policy")
Array = npt.NDArray[Any]
FORMS = ("one", "full", "zero")  # size 1; the input's size; the input's size with stride 0


def formed(name: str, shape: Sequence[int], dtype: str, forms: Sequence[str]) -> Array:
    """Return the parameter with each axis in its form."""
    sizes = [size if form == "full" else 1 for size, form in zip(shape, forms, strict=True)]
    values = parameter(name, sizes, dtype)
    full = [1 if form == "one" else size for size, form in zip(shape, forms, strict=True)]
    return np.broadcast_to(values, full)


def test_by_hand() -> None:
    x = np.array([[1.0, 5.0], [3.0, -1.0]], np.float32)
    mean, variance = np.array([[1.0, 3.0]], np.float32), np.array([[4.0, 0.25]], np.float32)
    scale, bias = np.array([[2.0, 1.0]], np.float32), np.array([[10.0, -1.0]], np.float32)
    result = dmlops.batch_normalization(x, mean, variance, scale, bias, 0.0)
    assert result.tolist() == [[10.0, 3.0], [12.0, -9.0]]
    epsilon = dmlops.batch_normalization(x, mean, variance - 0.25, scale, bias, epsilon=0.25)
    assert epsilon.tolist() == result.tolist()
    default = dmlops.batch_normalization(x, mean, 0 * mean, 0 * scale + 1, 0 * bias)
    assert abs(default[1, 0] - 2 / math.sqrt(1e-5)) < 1e-4


def every_form(rank: int) -> Iterator[tuple[str, ...]]:
    return itertools.product(FORMS, repeat=rank)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(37,), (5, 19), (3, 4, 21), (2, 3, 4, 9)], ids=str)
def test_every_form_alone_and_together(dtype: str, shape: tuple[int, ...]) -> None:
    x = samples.uniform(shape, dtype)
    usual = per_channel(shape, dtype) if len(shape) > 1 else parameters(shape, dtype)
    for forms in every_form(len(shape)):
        shaped = [formed(name, shape, dtype, forms) for name in NAMES]
        choices = [[*usual[:i], shaped[i], *usual[i + 1 :]] for i in range(4)] + [shaped]
        for i, values in enumerate(choices):
            context = f"{(*NAMES, 'all')[i]} {forms}"
            result = check(x, values, context)
            dense = [packed(np.broadcast_to(v, shape)) for v in values]
            assert_same_bits(result, dmlops.batch_normalization(x, *dense), context)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(7, 33), (3, 5, 18), (2, 3, 4, 5, 6), (2, 1, 3, 2, 1, 3, 2, 4)], ids=str
)
def test_forms_mixed(dtype: str, shape: tuple[int, ...], extent: Extent) -> None:
    x = samples.uniform(shape, dtype)
    rank = len(shape)
    picks = (samples.hashed(200 * 4 * rank) % np.uint64(3)).astype(int).reshape(200, 4, rank)
    for pick in extent.of(picks, 4):
        mix = [tuple(FORMS[i] for i in axes) for axes in pick]
        values = [formed(name, shape, dtype, forms) for name, forms in zip(NAMES, mix, strict=True)]
        result = check(x, values, mix)
        dense = [packed(np.broadcast_to(v, shape)) for v in values]
        assert_same_bits(result, dmlops.batch_normalization(x, *dense), mix)


@pytest.mark.parametrize("dtype", FLOATS)
def test_shapes(dtype: str) -> None:
    for shape in SHAPES:
        values = per_channel(shape, dtype) if len(shape) > 1 else parameters(shape, dtype)
        check(samples.uniform(shape, dtype), values, shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("position", range(4), ids=NAMES)
def test_layouts_of_parameters(dtype: str, position: int, extent: Extent) -> None:
    inputs = [BY_NAME[name] for name in ("c", "fortran", "negative-last", "channels-last")]
    outputs = [BY_NAME[name] for name in ("c", "transposed", "every-second")]
    for shape in SHAPES:
        x = samples.uniform(shape, dtype)
        full = parameters(shape, dtype)
        for layout in extent.of(LAYOUTS, 3):
            values = [*full]
            values[position] = layout.view(values[position])

            def operator(
                x: Array, *, out: Array | None = None, values: list[Array] = values
            ) -> Array:
                return dmlops.batch_normalization(x, *values, out=out)

            dense = [packed(v) for v in values]
            expected = dmlops.batch_normalization(x, *dense)
            assert_same_bits(operator(x), expected, f"{NAMES[position]} {layout} {shape}")
            if layout.name in ("fortran", "zero-alternate", "unaligned-steps", "shuffled-gaps"):
                cross_layouts(operator, x, f"{NAMES[position]} {layout}", inputs, outputs)


@pytest.mark.parametrize("dtype", FLOATS)
def test_everything_in_one_layout(dtype: str) -> None:
    for layout, shape in itertools.product(LAYOUTS, SHAPES):
        x = layout.view(samples.uniform(shape, dtype))
        values = [layout.view(v) for v in parameters(shape, dtype)]
        expected = dmlops.batch_normalization(packed(x), *map(packed, values))
        for target in (layout, BY_NAME["c"]) if layout in OUT_LAYOUTS else (BY_NAME["c"],):
            out = target.place(shape, dtype)
            dmlops.batch_normalization(x, *values, out=out.view)
            assert_same_bits(out.view, expected, f"{layout} into {target}, {shape}")
            out.assert_canaries(f"{layout} into {target}, {shape}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("form", ["scalar", "full", "rows", "columns", "middle"])
def test_sizes(dtype: str, form: str) -> None:
    for size in SIZES:
        rows = 3 if size < 300 else 2
        shape, of = {
            "scalar": ((size,), (1,)),
            "full": ((size,), (size,)),
            "rows": ((rows, size), (rows, 1)),
            "columns": ((rows, size), (1, size)),
            "middle": ((2, rows, size), (1, rows, 1)),
        }[form]
        x = samples.uniform(shape, dtype, seed=size)
        check(x, parameters(of, dtype), f"{form}, size {size}")
        if len(shape) > 1:  # the same with the long axis outermost, as in channels-last images
            swapped = samples.uniform((*shape[:-2], size, rows), dtype, seed=size)
            values = [v.swapaxes(-1, -2) for v in parameters(of, dtype)]
            check(swapped, values, f"{form}, size {size}, long axis first")


@pytest.mark.parametrize("dtype", FLOATS)
def test_many_rows_of_columns(dtype: str) -> None:
    for columns in (1, 3, 16, 63, 64, 100, 127, 128, 129, 300, 512, 513, 1024, 1300, 2100):
        values = parameters((1, columns), dtype)
        for rows in (4, 9, 34):
            whole = samples.uniform((rows * columns + 5,), dtype, seed=rows)
            for shift in (0, 1, 5):  # alignments
                x = whole[shift:][: rows * columns].reshape(rows, columns)
                check(x, values, f"{columns} columns, {rows} rows")
            padded = samples.uniform((rows, columns + 3), dtype)[:, :columns]
            check(padded, values, f"{columns} columns, {rows} padded rows")


@pytest.mark.parametrize("dtype", FLOATS)
def test_overlapping_parameters(dtype: str) -> None:
    """Rows of one block that begin with the same parameter, and differ in the further ones."""
    random = np.random.default_rng(4)
    x = random.normal(size=(8, 16, 48)).astype(dtype)[:, :15, ::2]
    values = random.uniform(0.5, 2, 22).astype(dtype)
    windows = np.lib.stride_tricks.sliding_window_view(values, 15)[:, :, None]
    expected = dmlops.batch_normalization(x, *[np.array(windows)] * 4)
    assert_same_bits(dmlops.batch_normalization(x, *[windows] * 4), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_large(dtype: str, extent: Extent) -> None:
    check(samples.uniform((LARGE,), dtype), parameters((1,), dtype), "one channel")
    for shape in extent.of(((3, 64, 77, 79), (1, 3, 601, 599), (2, 1031, 17, 31)), 3):
        x, values = samples.uniform(shape, dtype), per_channel(shape, dtype)
        packed_result = check(x, values, shape)
        last = packed(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        assert_same_bits(dmlops.batch_normalization(last, *values), packed_result, "channels last")
        full = [packed(np.broadcast_to(v, shape)) for v in values]
        assert_same_bits(dmlops.batch_normalization(x, *full), packed_result, "full parameters")


def test_large_mean_loses_nothing() -> None:
    x = (1e6 + np.arange(64, dtype=np.float32) / 16).astype(np.float32).reshape(1, 64)
    one = np.ones((1, 1), np.float32)
    values = [1e6 * one, 1e-4 * one, one, 0 * one]
    check(x, values)  # folded into one multiply-add, the error would be thousands of ulp
    check(x, [1e6 * one, 0 * one, 3 * one, 0.1 * one], epsilon=1e-12)
    random = samples.uniform((4096,), np.float32, 1e4, 1e4 + 1)
    check(
        random,
        [np.full(1, 1e4 + 0.5, np.float32), *(np.full(1, v, np.float32) for v in (1e-2, 7, 0))],
    )


def test_float16_is_computed_in_float32() -> None:
    x = samples.uniform((4096,), np.float16, 30000, 60000)
    low, high = (np.full(1, v, np.float16) for v in (-60000, 60000))
    one = np.ones(1, np.float16)
    check(x, [low, high, one, -one])  # x - mean exceeds float16
    check(x, [high, one / 4096, one, one], "results beyond float16 are infinite")
    check(samples.EVERY_FLOAT16, [one, 2 * one, 3 * one, 4 * one], "every float16")


@pytest.mark.parametrize("dtype", FLOATS)
def test_extreme_parameters(dtype: str) -> None:
    x = samples.uniform((257,), dtype)
    info = np.finfo(dtype)
    tiny, big = float(info.smallest_subnormal), float(info.max)
    for variance, epsilon in ((0.0, 1e-30), (tiny, 0.0), (big, 1e-5), (0.0, 3e38), (1.0, 1e-45)):
        for scale, bias in ((1.0, 0.0), (tiny, tiny), (2.0, big / 4), (0.0, 1.0)):
            values = [np.full(1, v).astype(dtype) for v in (0.5, variance, scale, bias)]
            check(x, values, f"{variance} {epsilon} {scale} {bias}", epsilon)


@pytest.mark.parametrize("dtype", FLOATS)
def test_elements_do_not_see_their_neighbors(dtype: str) -> None:
    operands = [samples.any_bits((1003,), dtype, seed=seed) for seed in range(5)]
    result = dmlops.batch_normalization(*operands)
    for shift in (*range(1, 20), 100):
        rolled = dmlops.batch_normalization(*(np.roll(v, shift) for v in operands))
        assert_same_bits(rolled, np.roll(result, shift), shift)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_of_any_operand_is_canonical(dtype: str) -> None:
    bits, nan = f"u{np.dtype(dtype).itemsize}", reference.CANONICAL_NAN[dtype]
    shape = (4, 67)
    for position in range(5):
        operands = [samples.uniform(shape, dtype), *parameters(shape, dtype)]
        where = samples.hashed(4 * 67, seed=position).reshape(shape) % np.uint64(5) == 0
        payload = (
            samples.any_bits(shape, dtype).view(bits)
            | np.dtype(dtype).type(math.inf).view(bits)
            | 1
        )
        operands[position] = np.where(where, payload.astype(bits).view(dtype), operands[position])
        result = dmlops.batch_normalization(*operands)
        assert (np.isnan(result) == where).all(), f"operand {position}"
        assert (result[where].view(bits) == nan).all(), f"operand {position}"


def test_special_values() -> None:
    def one(*operands: float) -> float:
        *first, epsilon = operands  # input, mean, variance, scale, bias; epsilon
        values = [np.full(67, v, np.float32) for v in first]
        for forms in (values, [values[0], *(v[:1] for v in values[1:])]):
            result = normalize(forms[0], forms[1:], epsilon)
            assert result.view(np.uint32).tolist() == [int(result.view(np.uint32)[0])] * 67
        return float(result[0])

    assert one(2, 1, 0, 1, 0, 0) == math.inf  # division by zero
    assert one(0, 1, 0, 1, 0, 0) == -math.inf
    for nan in (
        (1, 1, 0, 1, 0, 0),  # 0 / 0
        (1, 0, -1, 1, 0, 0.5),  # the root of a negative number
        (math.inf, math.inf, 1, 1, 0, 0),
        (1, 0, math.inf, math.inf, 0, 0),
        (1, 0, 1, math.inf, -math.inf, 0),
    ):
        assert math.isnan(one(*nan)), nan
    assert one(1, 0, math.inf, 1, 3, 0) == 3
    assert one(-math.inf, 0, 1, 2, 5, 0) == -math.inf
    assert one(2.0**-140, 0, 1, 1, 0, 0) == 2.0**-140  # subnormals are kept


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("order", ["mvsbxy", "yxmvsb", "xymvsb", "mvxysb", "mvyxsb"])
def test_operands_just_beyond_each_other(dtype: str, order: str) -> None:
    """Store-to-load aliasing (1 MiB) may select a buffer: its blocks, and their remainders."""
    step = (1 << 20) + 16
    memory = np.zeros(len(order) * step, np.uint8)
    for count in (16, 64, 1000, 1023, 1024, 1025, 1031, 1032, 1039, 1040, 2047, 2056, 3000):
        size = count * np.dtype(dtype).itemsize
        near = {name: memory[place * step :][:size].view(dtype) for place, name in enumerate(order)}
        x = samples.uniform((count,), dtype, -3, 3, seed=count)
        operands = [x, *parameters((count,), dtype)]
        for name, operand in zip("xmvsb", operands, strict=True):
            near[name][:] = operand
        result = near.pop("y")
        result[:] = 77
        normalize(near["x"], [near[name] for name in "mvsb"], out=result)
        assert_same_bits(result, normalize(operands[0], operands[1:]), str(count))
        assert not memory[(order.index("y") * step + size) :][:64].any()  # no write past the end
        for name, operand in zip("xmvsb", operands, strict=True):
            assert_same_bits(near[name], operand, name)


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_parameter_ends_at_a_guard_page(dtype: str) -> None:
    """Blocks of results that alias a parameter are whole vectors: no load passes the operands."""
    for count in (513, 1025, 1031, 2049):
        memory = np.zeros(3 << 20, np.uint8)
        size = count * np.dtype(dtype).itemsize
        x = samples.uniform((count,), dtype, -3, 3, seed=count)
        values = parameters((count,), dtype)
        expected = normalize(x, values)
        mean, out = (memory[begin:][:size].view(dtype) for begin in (0, (1 << 20) + 64))
        bias = GuardedMemory(size).place((count,), dtype, x.strides, at_end=True)
        mean[:], bias[:] = values[0], values[3]
        normalize(x, [mean, *values[1:3], bias], out=out)
        assert_same_bits(out, expected, str(count))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_rows_just_beyond_a_parameter(dtype: str, step: int) -> None:
    """Rows of an output with gaps, in one and two dimensions, each with parameters of its own."""
    for shape in ((3, 5, 70), (4, 3, 100), (2, 2, 1100)):
        planes, rows, length = shape
        x = samples.uniform((planes, rows, length * step), dtype, -3, 3)[..., ::step]
        values = parameters(shape, dtype)
        expected = normalize(np.ascontiguousarray(x), values)
        memory = np.full(3 << 20, 77, np.uint8)
        mean = memory[: values[0].nbytes].view(dtype).reshape(shape)
        mean[:] = values[0]
        size = mean.itemsize
        strides = ((rows + 1) * (length + 7) * size + 64, (length + 7) * size, size)
        out = np.ndarray(shape, dtype, memory.data, (1 << 20) + 64, strides)
        normalize(x, [mean, *values[1:]], out=out)
        assert_same_bits(out, expected, f"{shape}")
        assert (memory[(1 << 20) + 64 + length * size :][: 7 * size] == 77).all()  # a gap


@pytest.mark.parametrize("dtype", FLOATS)
def test_output_in_place_of_a_parameter(dtype: str) -> None:
    """Squares of a transposed input overlap, but must not read their own output."""
    for shape in ((70, 70), (17, 70), (70, 17), (300, 133)):
        x = samples.uniform(shape[::-1], dtype, -3, 3).T
        operands = [x, *parameters(shape, dtype)]
        expected = dmlops.batch_normalization(*operands)
        for shared in range(1, 5):
            copies = [operand.copy() for operand in operands[1:]]
            out = copies[shared - 1]
            dmlops.batch_normalization(x, *copies, out=out)
            assert_same_bits(out, expected, f"{shape}, operand {shared}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_many_images_with_gaps(dtype: str) -> None:
    """More images with parameters of their own than are packed at a time."""
    x = samples.uniform((4000, 17, 20), dtype)[:, :, :17]
    values = parameters((4000, 1, 1), dtype)
    result = check(x, values, "4,000 images with gaps")
    assert_same_bits(result, dmlops.batch_normalization(packed(x), *values), "without gaps")


@pytest.mark.parametrize("dtype", FLOATS)
def test_long_rows_in_several_images(dtype: str) -> None:
    for columns in (1023, 1025, 2600):
        values = parameters((1, 1, columns), dtype)
        base = samples.uniform((5, 4, columns + 3), dtype)
        for x in (base[:, :3, :columns], base[:, 1:, -columns:][..., ::-1], base[::2, :2, 1:-2]):
            expected = dmlops.batch_normalization(np.array(x), *values)
            assert_same_bits(dmlops.batch_normalization(x, *values), expected)
            out = np.full_like(base, 7)
            with small_shards(3):
                dmlops.batch_normalization(x, *values, out=out[: len(x), 1:][:, : x.shape[1], 2:-1])
            assert_same_bits(out[: len(x), 1:][:, : x.shape[1], 2:-1], expected)
            assert np.all(out[..., :2] == 7)
            assert np.all(out[..., -1] == 7)
