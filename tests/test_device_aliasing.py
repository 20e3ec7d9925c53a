"""Memory that tensors share, and memory that the operator owns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from bound_memory import CLIP, CLIPPED, X, refused
from descriptors import (
    ROWS_ONLY,
    TABLE,
    activation,
    batch_normalization,
    clip,
    log_softmax1,
    operands,
    tensor,
)

from dmlops import BindingError, BufferBinding, Device, TensorFlags

Array = npt.NDArray[Any]


# Aliasing: byte ranges of inputs and outputs, one of which is written.

RELU = Device().compile(activation("relu")(tensor((6,))))
LOG_SOFTMAX = Device().compile(log_softmax1(tensor((6,))))


def _heap() -> Array:
    return np.tile(X, 8)[:32]


def test_identical_ranges_in_place() -> None:
    heap = _heap()
    for compiled in (CLIP, RELU):
        values = X.copy()
        compiled.dispatch([values], [values])
        assert values.min() == 0
    CLIP.dispatch([BufferBinding(heap, 32)], [BufferBinding(heap, 32, 24)])
    assert (heap[8:14] == np.clip(_heap()[8:14], 0, 6)).all()
    assert (np.delete(heap, range(8, 14)) == np.delete(_heap(), range(8, 14))).all()


def test_identical_ranges_where_it_does_not_work_in_place() -> None:
    values = X.copy()
    refused("overlapping memory.*not work in place", [values], [values], LOG_SOFTMAX)
    x = tensor((6,))
    normalize = Device().compile(batch_normalization(x))
    for i in range(5):
        inputs = [X.copy() for _ in range(5)]
        inputs[i] = values
        name = ("input", "mean", "variance", "scale", "bias")[i]
        refused(f"{name}_tensor and output_tensor", inputs, [values], normalize)
    assert (values == X).all()


@pytest.mark.parametrize("operator", TABLE)
def test_which_operators_work_in_place(operator: str) -> None:
    """Compare the operators that work in place with DirectML's schema."""
    in_place = (
        operator != "relu_grad"
        and "normalization" not in operator
        and operator.rstrip("1") not in ROWS_ONLY
    )
    desc = TABLE[operator][0](tensor((1, 1, 1, 6)))
    compiled, (inputs, outputs) = Device().compile(desc), operands(desc)
    apart, values = np.zeros_like(X), X.copy()
    others, more = [X] * (inputs - 1), [np.zeros_like(X) for _ in range(outputs - 1)]
    compiled.dispatch([X, *others], [apart, *more])
    if in_place:
        compiled.dispatch([values, *others], [values])
        assert values.tobytes() == apart.tobytes()
        if others:
            refused("only input_tensor may be bound", [X, values], [values], compiled)
    else:
        refused("not work in place", [values, *others], [values, *more], compiled)
        assert (values == X).all()


@pytest.mark.parametrize(("first", "second"), [(0, 16), (16, 0), (64, 48)])
def test_partial_overlap(first: int, second: int) -> None:
    heap = _heap()
    for compiled in (CLIP, LOG_SOFTMAX):
        refused(
            "input_tensor and output_tensor",
            [BufferBinding(heap, first)],
            [BufferBinding(heap, second)],
            compiled,
        )
    refused("in part", [heap[:6]], [heap[1:7]])
    refused("in part", [heap[:7]], [heap[:6]])
    assert (heap == _heap()).all()


def test_disjoint_ranges_of_one_buffer() -> None:
    heap = _heap()
    CLIP.dispatch([BufferBinding(heap, 0, 32)], [BufferBinding(heap, 32, 32)])
    assert (heap[8:14] == CLIPPED).all()
    CLIP.dispatch([heap[14:20]], [heap[20:26]])
    assert (heap[20:26] == np.clip(_heap()[14:20], 0, 6)).all()


def test_overlapping_inputs() -> None:
    x = np.array([1, 2, 3, 4, 5, 6], np.float32)
    out = np.empty_like(x)
    Device().compile(batch_normalization(tensor((6,)), epsilon=0.0)).dispatch([x] * 5, [out])
    assert (out == x).all()


def test_identical_ranges_with_different_strides() -> None:
    values = np.arange(6, dtype=np.float32)
    turned = clip(tensor((2, 3)), output_tensor=tensor((2, 3), strides=(1, 2)))
    compiled = Device().compile(turned)
    refused("strides differ", [values], [values], compiled)
    assert (values == np.arange(6)).all()
    explicit = clip(tensor((2, 1, 3)), output_tensor=tensor((2, 1, 3), strides=(3, 77, 1)))
    Device().compile(explicit).dispatch([values], [values])  # of size 1: the stride means nothing
    assert values.tolist() == [0, 1, 2, 3, 4, 5]


# OWNED_BY_DML: bound once, when the operator is compiled.

OWNED = TensorFlags.OWNED_BY_DML


def _normalization() -> Any:
    x, owned = tensor((6,)), tensor((6,), flags=OWNED)
    return batch_normalization(x, mean_tensor=owned, scale_tensor=owned, epsilon=0.0)


def test_owned_inputs_are_bound_once_and_copied() -> None:
    mean, scale = np.full(6, 2, np.float32), np.full(6, 3, np.float32)
    one, zero, out = np.ones(6, np.float32), np.zeros(6, np.float32), np.zeros(6, np.float32)
    named = Device().compile(_normalization(), initial={"mean_tensor": mean, "scale_tensor": scale})
    listed = Device().compile(_normalization(), initial=[None, mean, None, scale, None])
    mean[:] = scale[:] = np.nan
    for compiled in (named, listed):
        compiled.dispatch([X, None, one, None, zero], [out])
        assert (out == (X - 2) * 3).all()
        out[:] = 0
        compiled.dispatch({"input_tensor": X, "variance_tensor": one, "bias_tensor": zero}, [out])
        assert (out == (X - 2) * 3).all()
        before = out.copy()
        refused("mean_tensor is OWNED_BY_DML.*again", [X, one, one, None, zero], [out], compiled)
        refused("pass None .* for tensors that are OWNED_BY_DML", [X], [out], compiled)
        refused("variance_tensor is not bound", [X, None, None, None, zero], [out], compiled)
        assert (out == before).all()


def test_owned_inputs_must_be_bound_when_compiled() -> None:
    one = np.ones(6, np.float32)
    device, desc = Device(), _normalization()
    for initial in (None, {}, {"mean_tensor": one}):
        with pytest.raises(BindingError, match="OWNED_BY_DML; it must be bound when"):
            device.compile(desc, initial)
    with pytest.raises(BindingError, match="bias_tensor is not OWNED_BY_DML"):
        device.compile(desc, dict.fromkeys(("mean_tensor", "scale_tensor", "bias_tensor"), one))
    with pytest.raises(BindingError, match="mean_tensor is bound to 20 bytes; it needs 24"):
        device.compile(desc, dict.fromkeys(("mean_tensor", "scale_tensor"), one[:5]))
    with pytest.raises(BindingError, match="2 initial bindings; it has 5 inputs"):
        device.compile(desc, [None, one])
    with pytest.raises(BindingError, match="initial has the key 'output_tensor'"):
        device.compile(desc, {"output_tensor": one})
