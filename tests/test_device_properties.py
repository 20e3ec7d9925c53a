"""Compiled operators on descriptors of any numbers, which Hypothesis draws: no wrong writes."""

from __future__ import annotations

from typing import Any

import numpy as np
from descriptors import TABLE, operands, tensor
from hypothesis import given
from hypothesis import strategies as st
from layouts import CANARY
from variants import on_every_variant

import dmlops
from dmlops import BufferBinding, Device

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
def test_writes_stay_within_the_tensor(
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
