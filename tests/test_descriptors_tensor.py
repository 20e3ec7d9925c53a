"""The rules of a tensor descriptor, one test each: accepted and refused ones, messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from descriptors import batch_normalization, clip, log_softmax1, refusal, refused, tensor

import dmlops
from dmlops import BufferTensorDesc, TensorDataType, TensorFlags, calc_buffer_tensor_size

UINT_MAX = 2**32 - 1


@pytest.mark.parametrize("rank", range(1, 9))
def test_dimension_count_1_to_8(rank: int) -> None:
    assert refusal(clip(tensor((2,) * rank))) is None


@pytest.mark.parametrize("rank", [0, 9, 64])
def test_dimension_count_out_of_range(rank: int) -> None:
    refused(
        "ElementWiseClipOperatorDesc", "input_tensor", f"{rank} dimensions", "1 to 8",
        desc=clip(tensor((1,) * rank)),
    )  # fmt: skip


@pytest.mark.parametrize("sizes", [(0,), (3, 0, 2), (UINT_MAX, 0, UINT_MAX)])
def test_size_zero(sizes: Sequence[int]) -> None:
    refused("input_tensor", "size 0", str(tuple(sizes)), desc=clip(tensor(sizes)))


@pytest.mark.parametrize("value", [-1, 2**32, 2**64])
@pytest.mark.parametrize("field", ["sizes", "strides"])
def test_sizes_and_strides_are_uint(field: str, value: int) -> None:
    x = tensor((value,)) if field == "sizes" else tensor((1,), strides=(value,))
    refused(f"input_tensor.{field}[0]", str(value), "UINT", desc=clip(x))


def test_strides_as_many_as_sizes() -> None:
    refused("3 strides", "2 dimensions", desc=clip(tensor((2, 3), strides=(1, 1, 1))))


def test_strides_may_broadcast_pad_and_permute_an_input() -> None:
    for strides in [(0, 1), (0, 0), (7, 2), (1, 2)]:
        assert refusal(clip(tensor(strides=strides), output_tensor=tensor())) is None, strides


def test_output_strides_may_pad_and_permute() -> None:
    for strides in [(7, 2), (1, 2), (3, 1), (100, 1)]:
        assert refusal(clip(tensor(), output_tensor=tensor(strides=strides))) is None, strides


@pytest.mark.parametrize("strides", [(0, 1), (3, 0), (1, 1), (2, 1), (2, 2)])
def test_output_strides_that_overlap(strides: tuple[int, int]) -> None:
    output = tensor(strides=strides)
    refused("output_tensor", str(strides), "overlap", desc=clip(tensor(), output_tensor=output))


def test_output_strides_of_size_1_mean_nothing() -> None:
    assert refusal(clip(tensor((1, 3)), output_tensor=tensor((1, 3), strides=(0, 1)))) is None


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "expected"),
    [
        ("FLOAT16", (1, 1, 1, 3), None, 8),
        ("INT8", (5,), None, 8),
        ("FLOAT32", (2, 3), (0, 1), 12),
        ("UINT64", (2, 2), None, 32),
        ("UINT4", (3,), None, 4),
        ("FLOAT32", (1,), (7,), 4),
        ("INT4", (9,), None, 8),
        ("UNKNOWN", (9,), None, 0),
        ("FLOAT64", (3, 2), (10, 1), 176),
        ("UINT8", (UINT_MAX,), None, 2**32),
        ("FLOAT64", (1, UINT_MAX), None, 8 * UINT_MAX),
        ("UINT8", (2, 2), (UINT_MAX - 2, 1), 2**32),
    ],
)
def test_minimum_size(
    data_type: str, sizes: tuple[int, ...], strides: tuple[int, ...] | None, expected: int
) -> None:
    assert calc_buffer_tensor_size(TensorDataType[data_type], sizes, strides) == expected


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ((2**16, 2**16), None),
        ((UINT_MAX,) * 8, None),
        ((2**31, 2), None),
        ((2, 2), (UINT_MAX, 1)),
        ((UINT_MAX, UINT_MAX), (0, 0)),
        ((2,) * 8, (UINT_MAX,) * 8),
        ((65537, 65537), (UINT_MAX, UINT_MAX)),
    ],
)
def test_element_limit(sizes: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
    """At most 2**32 - 1 elements, counted and reached; sums in 32 or 64 bits would have wrapped."""
    refused("4294967295 elements", desc=clip(tensor(sizes, "UINT8", strides=strides)))
    with pytest.raises(dmlops.ValidationError, match="4294967295 elements"):
        calc_buffer_tensor_size(TensorDataType.UINT8, sizes, strides)


def test_element_limit_itself() -> None:
    assert refusal(clip(tensor((UINT_MAX,), "UINT8"))) is None
    assert refusal(clip(tensor((3, 1431655765)))) is None


@pytest.mark.parametrize("total", [24, 25, 28, 256, 2**64 - 1])
def test_total_tensor_size_in_bytes_reaches_the_minimum(total: int) -> None:
    assert refusal(clip(tensor(total_tensor_size_in_bytes=total))) is None


@pytest.mark.parametrize("total", [0, 4, 23])
def test_total_tensor_size_in_bytes_too_small(total: int) -> None:
    x = tensor(total_tensor_size_in_bytes=total)
    refused("total_tensor_size_in_bytes", f" {total};", "24", desc=clip(x))


def test_total_tensor_size_in_bytes_counts_strides_and_rounding() -> None:
    padded = tensor((2, 3), strides=(5, 1), total_tensor_size_in_bytes=28)
    refused("28", "32", desc=clip(padded))
    halves = tensor((3,), "FLOAT16", total_tensor_size_in_bytes=6)
    refused("6", "8", desc=clip(halves))


@pytest.mark.parametrize("total", [-1, 2**64])
def test_total_tensor_size_in_bytes_is_uint64(total: int) -> None:
    refused(str(total), "UINT64", desc=clip(tensor(total_tensor_size_in_bytes=total)))


@pytest.mark.parametrize("alignment", [0, 4, 8, 16, 32, 4096, 2**31])
def test_guaranteed_base_offset_alignment(alignment: int) -> None:
    assert refusal(clip(tensor(guaranteed_base_offset_alignment=alignment))) is None


@pytest.mark.parametrize("alignment", [3, 24, UINT_MAX])
def test_guaranteed_base_offset_alignment_not_a_power_of_two(alignment: int) -> None:
    x = tensor(guaranteed_base_offset_alignment=alignment)
    refused("guaranteed_base_offset_alignment", str(alignment), "power of two", desc=clip(x))


@pytest.mark.parametrize("alignment", [1, 2])
def test_guaranteed_base_offset_alignment_below_the_element(alignment: int) -> None:
    x = tensor(guaranteed_base_offset_alignment=alignment)
    refused(f"alignment {alignment}", "element's size, 4", desc=clip(x))
    assert refusal(clip(tensor((3,), "UINT8", guaranteed_base_offset_alignment=alignment))) is None


def test_owned_by_dml_inputs_only() -> None:
    owned = tensor(flags=TensorFlags.OWNED_BY_DML)
    assert refusal(clip(owned, output_tensor=tensor())) is None
    refused("output_tensor", "OWNED_BY_DML", "inputs", desc=clip(tensor(), output_tensor=owned))
    assert refusal(batch_normalization(tensor(), mean_tensor=owned, bias_tensor=owned)) is None


def test_unknown_flags() -> None:
    x = tensor(flags=TensorFlags(0) | TensorFlags.OWNED_BY_DML)
    assert x.flags == 1
    object.__setattr__(x, "flags", 2)
    refused("flags 2", desc=clip(x, output_tensor=tensor()))


def test_from_array() -> None:
    base = np.zeros((4, 6, 8), np.float16)
    assert BufferTensorDesc.from_array(base) == tensor((4, 6, 8), "FLOAT16")
    turned = base.transpose(2, 0, 1)[::2, :, ::3]
    assert BufferTensorDesc.from_array(turned) == tensor((4, 4, 2), "FLOAT16", strides=(2, 48, 24))
    repeated = np.broadcast_to(np.zeros(3, np.int8), (2, 3))
    assert BufferTensorDesc.from_array(repeated) == tensor((2, 3), "INT8", strides=(0, 1))
    reversed_single = np.zeros((5, 6), np.float32)[::-5, ::2]  # one row, of a negative stride
    assert BufferTensorDesc.from_array(reversed_single) == tensor((1, 3), strides=(0, 2))
    assert BufferTensorDesc.from_array(np.array(1.0)) == tensor((1,), "FLOAT64")
    with pytest.raises(ValueError, match="axis 1 has a stride of -2 bytes"):
        BufferTensorDesc.from_array(base[0, :, ::-1])
    with pytest.raises(ValueError, match="axis 0 has a stride of 3 bytes"):
        BufferTensorDesc.from_array(np.zeros(6, "V3").view([("a", "i2"), ("b", "i1")])["a"])
    for dtype in ("complex64", "bool", ">f4", "U1"):
        with pytest.raises(TypeError, match="no data type"):
            BufferTensorDesc.from_array(np.zeros(2, dtype))


def test_tensor_missing() -> None:
    x = tensor()
    refused("output_tensor is missing", desc=clip(x, output_tensor=None))
    refused("scale_tensor is missing", desc=batch_normalization(x, scale_tensor=None))
    refused("input_tensor is missing", desc=log_softmax1(x, input_tensor=None))
