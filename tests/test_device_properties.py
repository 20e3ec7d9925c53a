"""Compiled operators on valid and invalid layouts, which Hypothesis draws."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import reference
from bound_memory import CANARY, Memory, layouts
from descriptors import (
    TABLE,
    activation,
    batch_normalization,
    clip,
    clip1,
    log_softmax1,
    operands,
    tensor,
)
from hypothesis import given
from hypothesis import strategies as st
from reference import FLOATS, INTEGERS
from variants import on_every_variant

import dmlops
from dmlops import BufferBinding, Device, ScaleBias

Array = npt.NDArray[Any]


_OPERATORS = ("clip", "clip1", "hard_sigmoid", "log_softmax1", "batch_normalization")


@st.composite
def _cases(draw: st.DrawFn) -> tuple[str, Any]:
    """Draw an operator with tensors of any layout."""
    operator = draw(st.sampled_from(_OPERATORS))
    integer = operator.startswith("clip") and draw(st.booleans())
    dtype = draw(st.sampled_from(INTEGERS if integer else FLOATS))
    sizes = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    x = tensor(sizes, dtype.upper(), strides=draw(layouts(sizes, False)))
    y = tensor(sizes, dtype.upper(), strides=draw(layouts(sizes, True)))
    if operator in ("clip", "clip1"):
        low, high = draw(st.integers(0, 3)), draw(st.integers(0, 100))
        scale = draw(st.sampled_from([None, ScaleBias(1.5, -0.5)]))
        make = clip if operator == "clip" else clip1
        return operator, make(x, output_tensor=y, min=low, max=high, scale_bias=scale)
    if operator == "hard_sigmoid":
        return operator, activation("hard_sigmoid")(x, output_tensor=y, alpha=0.3)
    if operator == "log_softmax1":
        axes = draw(st.permutations(range(len(sizes))))[: draw(st.integers(1, len(sizes)))]
        return operator, log_softmax1(x, output_tensor=y, axes=tuple(axes))
    parameters = {}
    for name in ("mean", "variance", "scale", "bias"):
        own = tuple(draw(st.sampled_from([1, size])) for size in sizes)
        strides = draw(layouts(own, False))
        parameters[f"{name}_tensor"] = tensor(own, dtype.upper(), strides=strides)
    return operator, batch_normalization(x, output_tensor=y, epsilon=0.25, **parameters)


def _check(operator: str, desc: Any, inputs: list[Array], result: Array) -> None:
    if operator in ("clip", "clip1"):
        scale = desc.scale_bias and (desc.scale_bias.scale, desc.scale_bias.bias)
        expected = reference.clip(inputs[0], desc.min, desc.max, scale)
        reference.assert_same_values(result, expected)
    elif operator == "hard_sigmoid":
        expected = reference.hard_sigmoid(inputs[0], desc.alpha, desc.beta)
        reference.assert_same_values(result, expected)
    elif operator == "log_softmax1":
        reference.assert_within(result, *reference.log_softmax(inputs[0], desc.axes))
    else:
        expected, allowed = reference.batch_normalization(*inputs, epsilon=desc.epsilon)
        reference.assert_within(result, expected, allowed)


@given(case=_cases(), offset=st.integers(0, 4), seed=st.integers(0, 99))
def test_any_layout(case: tuple[str, Any], offset: int, seed: int) -> None:
    on_every_variant(lambda: _expect_results(*case, offset, seed))


def _expect_results(operator: str, desc: Any, offset: int, seed: int) -> None:
    names = [f.name for f in dataclasses.fields(desc) if f.name.endswith("_tensor")]
    *inputs, output = (
        Memory(getattr(desc, name), 16 * offset, seed + i) for i, name in enumerate(names)
    )
    if operator == "batch_normalization":
        inputs[2].fill(np.abs(inputs[2].heap[16 * offset : -64].view(inputs[2].view.dtype)))
    before = [memory.heap.copy() for memory in inputs]
    around = output.without_elements()
    Device().compile(desc).dispatch([m.binding() for m in inputs], [output.binding()])
    _check(operator, desc, [m.values() for m in inputs], output.values())
    assert (output.without_elements() == around).all(), "padding was written"
    for memory, bytes_before in zip(inputs, before, strict=True):
        assert (memory.heap == bytes_before).all(), "an input was written"


_UINT = st.one_of(st.integers(0, 9), st.sampled_from([2**16, 2**31, 2**32 - 1]))


@given(
    sizes=st.lists(_UINT, max_size=9),
    strides=st.none() | st.lists(_UINT, max_size=9),
    output_strides=st.none() | st.lists(_UINT, max_size=9),
    total=st.none() | st.sampled_from([0, 4, 64, 2**32, 2**64 - 1]),
    alignment=st.sampled_from([0, 1, 3, 16, 2**31]),
    data_type=st.sampled_from(list(dmlops.TensorDataType)),
    operator=st.sampled_from(list(TABLE)),
    level=st.sampled_from(list(dmlops.FeatureLevel)),
)
def test_hostile_descriptors_write_nothing(
    *,
    sizes: list[int],
    strides: list[int] | None,
    output_strides: list[int] | None,
    total: int | None,
    alignment: int,
    data_type: dmlops.TensorDataType,
    operator: str,
    level: dmlops.FeatureLevel,
) -> None:
    """Expect an error, or writes within the tensor; never a crash."""
    more = {"total_tensor_size_in_bytes": total, "guaranteed_base_offset_alignment": alignment}
    x = tensor(sizes, data_type.name, strides=strides, **more)
    y = tensor(sizes, data_type.name, strides=output_strides)
    on_every_variant(lambda: _expect_bounded_writes(TABLE[operator][0], x, y, level))


def _expect_bounded_writes(make: Any, x: Any, y: Any, level: dmlops.FeatureLevel) -> None:
    heap = np.full(4096, CANARY, np.uint8)
    inputs = np.zeros(4096, np.uint8)
    written = False
    try:
        desc = make(x, output_tensor=y)
        compiled = Device(level).compile(desc)
        input_count, output_count = operands(desc)
        others = [np.zeros(4096, np.uint8) for _ in range(output_count - 1)]
        compiled.dispatch([inputs] * input_count, [BufferBinding(heap, 1024), *others])
        written = True
    except (ValueError, TypeError):
        pass
    assert (heap[:1024] == CANARY).all()
    if written:
        end = 1024 + dmlops.calc_buffer_tensor_size(y.data_type, y.sizes, y.strides)
        assert (heap[end:] == CANARY).all()
        assert not (heap == CANARY).all()
    else:
        assert (heap == CANARY).all()
