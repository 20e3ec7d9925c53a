"""Descriptors as Python objects: immutable, comparable, hashable, picklable, pasted back."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from activation_rows import ROWS, Row
from descriptors import (
    ACTIVATIONS,
    FLAGS,
    FURTHER,
    TABLE,
    batch_normalization,
    changed,
    clip,
    clip1,
    tensor,
)

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
    *FLAGS,
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
    with pytest.raises(TypeError, match=r"sizes\[0\] must be an integer, not float"):
        tensor((2.0,))  # type: ignore[arg-type]


NUMBERS: list[tuple[Any, Any]] = [
    (np.array(1.5), 1.5),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.array(2**53 + 1, np.int64), 2**53 + 1),
    (np.uint64(2**64 - 1), 2**64 - 1),
    (np.float16("nan"), math.nan),
    (np.bool_(True), True),
    (Decimal("sNaN"), math.nan),
    (Fraction(1, 3), Fraction(1, 3)),
    (10**400, 10**400),
]


@pytest.mark.parametrize(("given", "plain"), NUMBERS, ids=repr)
def test_numbers_become_immutable(given: Any, plain: Any) -> None:
    """Equal numbers make equal descriptors; an array of the caller's is not kept."""
    makers: dict[str, Any] = {
        "min": partial(clip, tensor()),
        "max": partial(clip1, tensor()),
        "epsilon": partial(batch_normalization, tensor()),
        "alpha": dmlops.ActivationEluOperatorDesc,
        "bias": dmlops.ScaleBias,
    }
    for name, make in makers.items():
        desc, same = make(**{name: given}), make(**{name: plain})
        assert (desc, hash(desc), repr(desc)) == (same, hash(same), repr(same))
        assert type(getattr(desc, name)) is type(plain)


def test_sizes_in_bytes_and_booleans_become_plain() -> None:
    given = tensor(
        total_tensor_size_in_bytes=np.array(64), guaranteed_base_offset_alignment=np.array(32)
    )
    assert repr(given) == repr(
        tensor(total_tensor_size_in_bytes=64, guaranteed_base_offset_alignment=32)
    )
    for value in (np.array(False), np.False_, 0):
        assert batch_normalization(tensor(), spatial=value).spatial is False


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (np.ones(1), "numpy.ndarray"),
        (np.array("1"), "str"),
        (np.array(1j), "complex"),
        ([1], "list"),
        (None, "NoneType"),
    ],
    ids=repr,
)
def test_what_is_no_number_is_refused_at_once(given: Any, kind: str) -> None:
    words = rf"ElementWiseClipOperatorDesc: min must be a number, not {kind}$"
    with pytest.raises(TypeError, match=words):
        clip(tensor(), min=given)
    with pytest.raises(TypeError, match=rf"ScaleBias: bias must be a number, not {kind}$"):
        dmlops.ScaleBias(bias=given)
    if given is not None:
        name = "total_tensor_size_in_bytes"
        with pytest.raises(TypeError, match=f"BufferTensorDesc: {name} must be an integer, not"):
            tensor(**{name: given})
    with pytest.raises(TypeError, match=r"ClipOperatorDesc: max is a masked .*max\.filled"):
        clip(tensor(), max=np.ma.masked)


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
