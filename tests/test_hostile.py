"""Arguments that change while they are read, and numbers whose products overflow."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from descriptors import FLAGS, activation, batch_normalization

import dmlops
from dmlops import (
    BindingError,
    BufferBinding,
    BufferTensorDesc,
    Device,
    TensorDataType,
    ValidationError,
    calc_buffer_tensor_size,
)

Array = npt.NDArray[Any]
FLOAT32 = TensorDataType.FLOAT32
relu = activation("relu")


def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Return a view that claims more memory than exists, which must be refused."""
    return np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), shape, strides)


class Emptying:
    """An index that empties the list that contains it."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __index__(self) -> int:
        self.items.clear()
        self.items.extend([[]] * 3)
        return 0


def test_axes_that_empty_their_list() -> None:
    x = np.zeros((2,) * 8, np.float32)
    for _ in range(50):
        axes: list[Any] = []
        axes += [Emptying(axes), *range(1, 8)]
        assert np.array_equal(dmlops.log_softmax(x, axes), dmlops.log_softmax(x, range(8)))


class EmptyingBuffer:
    """A part of a buffer whose offset empties the list of bindings."""

    size_in_bytes = 16

    def __init__(self, items: list[Any], buffer: Array) -> None:
        self.items, self.buffer = items, buffer

    @property
    def offset(self) -> int:
        self.items.clear()
        self.buffer = np.zeros(0, np.float32)
        return 0


def test_bindings_that_empty_their_list() -> None:
    compiled = Device().compile(relu(BufferTensorDesc(FLOAT32, (4,))))
    for _ in range(50):
        inputs: list[Any] = []
        inputs.append(EmptyingBuffer(inputs, np.full(4, -1, np.float32)))
        out = np.ones(4, np.float32)
        compiled.dispatch(inputs, [out])
        assert not out.any()


@pytest.mark.parametrize("count", [2, 5, 6, 7, 1000, 10**6])
def test_more_bindings_than_any_operator_has(count: int) -> None:
    """Up to a million; no operator has more than the 5 inputs of batch normalization."""
    device, desc = Device(), relu(BufferTensorDesc(FLOAT32, (4,)))
    with pytest.raises(BindingError, match=rf"{count} initial bindings; it has 1 input"):
        device.compile(desc, initial=[None] * count)
    out = np.zeros(4, np.float32)
    with pytest.raises(BindingError, match=rf"{count} inputs are bound, but the operator has 1"):
        device.compile(desc).dispatch([out] * count, [out])
    with pytest.raises(BindingError, match=rf"{count} outputs are bound, but the operator has 1"):
        device.compile(desc).dispatch([out], [out] * count)


# Past 2^32, 2^63 and 2^64: elements, reach in elements, bytes.
WRAPPING: tuple[tuple[tuple[int, ...], tuple[int, ...] | None], ...] = (
    ((2**16, 2**16), None),
    ((2**16, 2**16, 2**16, 2**15), None),
    ((2**16,) * 4, None),
    ((2**31, 2, 1), None),
    ((2**32 - 1, 2**32 - 1), None),
    ((2**32 - 1,) * 8, None),
    ((641, 6700417), None),  # 2^32 + 1: would wrap to 1
    ((3, 5, 17, 257, 641, 65537, 6700417), None),  # 2^64 - 1
    ((2, 2), (2**32 - 1, 1)),
    ((2**16 + 1, 2), (2**16, 1)),
    ((2**31, 3), (2, 2**31)),
    ((2**32 - 1,) * 2, (2**32 - 1,) * 2),
    ((2,) * 8, (2**32 - 1,) * 8),
)


@pytest.mark.parametrize(("sizes", "strides"), WRAPPING)
@pytest.mark.parametrize("data_type", ["FLOAT32", "INT8", "UINT64", "INT4"])
def test_descriptors_that_would_wrap(
    sizes: tuple[int, ...], strides: tuple[int, ...] | None, data_type: str
) -> None:
    kind = TensorDataType[data_type]
    with pytest.raises(ValidationError, match="4294967295 elements"):
        calc_buffer_tensor_size(kind, sizes, strides)
    with pytest.raises(ValidationError, match="4294967295 elements"):
        Device().compile(relu(BufferTensorDesc(kind, sizes, strides=strides)))


@pytest.mark.parametrize("value", [2**32, 2**63, 2**64, 2**64 + 1, -1, 10**30])
def test_fields_that_would_wrap(value: int) -> None:
    for tensor in (
        BufferTensorDesc(FLOAT32, (value,)),
        BufferTensorDesc(FLOAT32, (1,), strides=(value,)),
        BufferTensorDesc(FLOAT32, (1,), guaranteed_base_offset_alignment=value),
    ):
        with pytest.raises(ValidationError, match="does not fit UINT"):
            Device().compile(relu(tensor))


@pytest.mark.parametrize("offset", [16, 2**32, 2**63, 2**64 - 16, 2**64 - 1])
@pytest.mark.parametrize("size", [16, 2**32, 2**63, 2**64 - 16, 2**64 - 1])
def test_bindings_that_would_wrap(offset: int, size: int) -> None:
    compiled = Device().compile(relu(BufferTensorDesc(FLOAT32, (4,))))
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    with pytest.raises(BindingError, match="the buffer has 16"):
        compiled.dispatch([BufferBinding(x, offset, size)], [out])
    with pytest.raises(BindingError, match="the buffer has 16"):
        compiled.dispatch([x], [BufferBinding(out, offset, size)])
    assert not out.any()


def compile_and_dispatch(desc: Any, inputs: list[Array], out: Array) -> None:
    if desc.input_tensor.flags:
        Device().compile(desc, inputs).dispatch([None] * len(inputs), [out])
    else:
        Device().compile(desc).dispatch(inputs, [out])


@pytest.mark.parametrize("total", [128, 4096, 2**33, 2**63, 2**64 - 1])
@pytest.mark.parametrize("operator", [relu, batch_normalization])
def test_the_size_of_a_binding_is_not_what_the_descriptor_claims(
    operator: Callable[..., Any], total: int
) -> None:
    """Bind non-contiguous arrays with the tensor's strides, whose size is that of their memory."""
    view = np.ones((4, 8), np.float32)[:, ::2]
    x = BufferTensorDesc(FLOAT32, (4, 4), strides=(8, 2), total_tensor_size_in_bytes=total)
    message = f"tensor is bound to 124 bytes; it needs {total}"
    for flags in FLAGS:
        described = dataclasses.replace(x, flags=flags)
        desc = operator(described, output_tensor=BufferTensorDesc(FLOAT32, (4, 4)))
        inputs = [view] * (5 if operator is batch_normalization else 1)
        out = np.zeros((4, 4), np.float32)
        with pytest.raises(BindingError, match=f"input_{message}"):
            compile_and_dispatch(desc, inputs, out)
        assert not out.any()
    desc = operator(BufferTensorDesc(FLOAT32, (4, 4)), output_tensor=x)
    dense = [np.ones((4, 4), np.float32)] * len(inputs)
    with pytest.raises(BindingError, match=f"output_{message}"):
        Device().compile(desc).dispatch(dense, [view])
    assert (view == 1).all()


def views_that_wrap() -> Iterator[Array]:
    for step in (2**62, -(2**62), 2**63 - 1, -(2**63)):
        yield strided((3,), (step,))
        yield strided((3, 3), (step, step))
        yield strided((3, 3), (step, ~step))
        yield strided((2, 2, 2, 2), (step,) * 4)
    yield strided((2**30, 2), (2**34, 4))
    yield strided((2, 3), (2**56, 4))


@pytest.mark.parametrize("view", list(views_that_wrap()), ids=lambda v: f"{v.shape} {v.strides}")
def test_arrays_whose_offsets_would_wrap(view: Array) -> None:
    ones = np.ones((1,) * view.ndim, np.float32)
    small = np.zeros(4, np.float32)
    for call in (
        lambda: dmlops.clip(view, 0, 1, out=view),
        lambda: dmlops.relu(view, out=view),
        lambda: dmlops.log_softmax(view, out=view),
        lambda: dmlops.batch_normalization(view, ones, ones, ones, ones, out=view),
        lambda: dmlops.batch_normalization(ones, view, ones, ones, ones),
        lambda: dmlops.tanh(view),
    ):
        with pytest.raises(ValueError, match=r"2\^56"):
            call()
    with pytest.raises(ValueError, match="shape"):
        dmlops.relu(small, out=view)


def test_a_wide_reach_that_exists_is_taken() -> None:
    """Broadcasts repeat memory: many elements, few bytes."""
    x = np.broadcast_to(np.float32(-1), (1, 2**50))
    with pytest.raises(MemoryError):
        dmlops.relu(x)
    assert not dmlops.relu(x[:, :5]).any()


@pytest.mark.parametrize("value", [10**5000, -(10**5000)], ids=["positive", "negative"])
def test_numbers_of_thousands_of_digits(value: int) -> None:
    with pytest.raises(ValidationError, match="does not fit"):
        calc_buffer_tensor_size(FLOAT32, (value,))
    with pytest.raises(ValueError, match="hard_sigmoid: alpha is a number, which does not fit"):
        dmlops.hard_sigmoid(np.zeros(3, np.float32), value)
    assert dmlops.clip(np.zeros(3, np.int8), value)[0] == (127 if value > 0 else 0)
    assert math.isinf(dmlops.clip(np.zeros(1, np.float32), value)[0]) == (value > 0)
