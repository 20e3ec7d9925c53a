"""Descriptors as Python objects: immutable, comparable, hashable, picklable, pasted back."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import pytest
from descriptors import ACTIVATIONS, TABLE, batch_normalization, changed, clip, tensor

import dmlops
from dmlops import TensorDataType, TensorFlags

OBJECTS: list[Any] = [
    *(make(tensor((1, 2, 3, 4), "FLOAT16")) for make, _ in TABLE.values()),
    *(make() for make in ACTIVATIONS.values()),
    batch_normalization(
        tensor(), fused_activation=dmlops.ActivationLeakyReluOperatorDesc(alpha=0.1), spatial=False
    ),
    clip(tensor(), min=-math.inf, max=math.inf, scale_bias=dmlops.ScaleBias(2.0, -1.0)),
    tensor((2, 3), strides=(0, 1), flags=TensorFlags.OWNED_BY_DML, total_tensor_size_in_bytes=64),
    tensor((2, 3), "UINT64", guaranteed_base_offset_alignment=32),
    dmlops.Device(dmlops.FeatureLevel.LEVEL_3_0),
    *dmlops.OperatorType,
    *TensorFlags,
]


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_repr_pickle_equality(value: Any) -> None:
    assert eval(repr(value), vars(dmlops) | {"__builtins__": {"float": float}}) == value
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


# The FLOAT fields of the structs, with the typical values of DirectML's documentation.
_PARAMETERS = {
    "elu": {"alpha": 1.0},
    "celu": {"alpha": 1.0},
    "hard_sigmoid": {"alpha": 0.2, "beta": 0.5},
    "leaky_relu": {"alpha": 0.01},
    "linear": {"alpha": 1.0, "beta": 0.0},
    "parametric_softplus": {"alpha": 1.0, "beta": 1.0},
    "scaled_elu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    "scaled_tanh": {"alpha": 1.0, "beta": 0.5},
    "softplus": {"steepness": 1.0},
    "thresholded_relu": {"alpha": 1.0},
    "shrink": {"bias": 0.0, "threshold": 0.5},
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_parameters_of_activations(name: str) -> None:
    given = {f.name: f.default for f in dataclasses.fields(ACTIVATIONS[name])}
    assert given == {"input_tensor": None, "output_tensor": None} | _PARAMETERS.get(name, {})


def test_errors_are_value_errors_that_pickle() -> None:
    for error in (dmlops.ValidationError, dmlops.BindingError):
        assert issubclass(error, ValueError)
        assert error.__module__ == "dmlops"
        copied = pickle.loads(pickle.dumps(error("why")))
        assert (type(copied), str(copied)) == (error, "why")


def test_replace() -> None:
    desc = changed(clip(tensor()), max=2.0)
    assert (desc.min, desc.max) == (0.0, 2.0)
