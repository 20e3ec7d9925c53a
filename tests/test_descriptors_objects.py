"""Descriptors as Python objects: immutable, comparable, hashable, picklable, pasted back."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from activation_rows import ROWS, Row
from descriptors import ACTIVATIONS, FURTHER, TABLE, batch_normalization, changed, clip, tensor

import dmlops
from dmlops import TensorDataType, TensorFlags

OBJECTS: list[Any] = [
    *(make(tensor((1, 2, 3, 4), "FLOAT16")) for make, _ in TABLE.values()),
    *(make() for make in ACTIVATIONS.values()),
    batch_normalization(
        tensor(), fused_activation=dmlops.ActivationLeakyReluOperatorDesc(alpha=0.1), spatial=False
    ),
    clip(tensor(), min=-math.inf, max=math.inf, scale_bias=dmlops.ScaleBias(2.0, -1.0)),
    clip(tensor(), min=math.nan, max=np.float32("nan"), scale_bias=dmlops.ScaleBias(math.nan)),
    dmlops.ScaleBias(2.0, math.nan),
    tensor((2, 3), strides=(0, 1), flags=TensorFlags.OWNED_BY_DML, total_tensor_size_in_bytes=64),
    tensor((2, 3), "UINT64", guaranteed_base_offset_alignment=32),
    dmlops.Device(dmlops.FeatureLevel.LEVEL_3_0),
    *dmlops.OperatorType,
    *TensorFlags,
]


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_repr_pickle_equality(value: Any) -> None:
    names = {"np": np, "nan": math.nan, "__builtins__": {"float": float}}
    assert eval(repr(value), vars(dmlops) | names) == value
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(value, protocol)) == value
    same = copy.deepcopy(value)
    assert same == value
    assert hash(same) == hash(value)
    if dataclasses.is_dataclass(value):
        name = dataclasses.fields(value)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, None)


def test_different_values_differ() -> None:
    for i, value in enumerate(OBJECTS):
        for k, other in enumerate(OBJECTS):
            assert (value == other) == (i == k), (value, other)


def test_lists_and_numbers_are_taken() -> None:
    given = dmlops.BufferTensorDesc(1, [2, 3], strides=[3, 1], flags=0)  # type: ignore[arg-type]
    assert given == tensor((2, 3), strides=(3, 1))
    assert given.data_type is TensorDataType.FLOAT32
    axes = dmlops.ActivationLogSoftmax1OperatorDesc(
        input_tensor=given,
        output_tensor=given,
        axes=[1, 0],
    )
    assert axes.axes == (1, 0)
    with pytest.raises(ValueError, match="14"):
        dmlops.BufferTensorDesc(14, (2,))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tensor((2.0,))  # type: ignore[arg-type]


def test_fields_are_in_the_order_of_the_structs() -> None:
    def names(cls: Any) -> str:
        return " ".join(field.name for field in dataclasses.fields(cls))

    assert names(dmlops.ElementWiseClipOperatorDesc) == (
        "input_tensor output_tensor scale_bias min max"
    )
    assert names(dmlops.ElementWiseClip1OperatorDesc) == (
        "input_tensor output_tensor scale_bias min_max_data_type min max"
    )
    assert names(dmlops.BatchNormalizationOperatorDesc) == (
        "input_tensor mean_tensor variance_tensor scale_tensor bias_tensor output_tensor "
        "spatial epsilon fused_activation"
    )
    assert names(dmlops.ActivationLogSoftmaxOperatorDesc) == "input_tensor output_tensor"
    assert names(dmlops.ActivationLogSoftmax1OperatorDesc) == "input_tensor output_tensor axes"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_parameters_of_activations(row: Row) -> None:
    tensors = None if row.fusable else dataclasses.MISSING
    first, second, *others = dataclasses.fields((ACTIVATIONS | FURTHER)[row.name])
    assert (first.name, second.name) == ("input_tensor", "output_tensor")
    assert first.default is second.default is tensors
    assert [field.name for field in others] == list(row.fields)
    given = np.array([field.default for field in others], np.float32)
    assert given.tolist() == np.array(row.parameters[0], np.float32).tolist()


def test_errors_are_value_errors_that_pickle() -> None:
    for error in (dmlops.ValidationError, dmlops.BindingError):
        assert issubclass(error, ValueError)
        assert error.__module__ == "dmlops"
        copied = pickle.loads(pickle.dumps(error("why")))
        assert (type(copied), str(copied)) == (error, "why")


def test_replace() -> None:
    desc = changed(clip(tensor()), max=2.0)
    assert (desc.min, desc.max) == (0.0, 2.0)
