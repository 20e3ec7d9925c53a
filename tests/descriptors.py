"""Descriptors for tests: a valid one of each operator, and a table of DirectML's rules.

The table is copied from DirectML's documentation by hand, independently of the code under test.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import activation_rows

import dmlops
from dmlops import BufferTensorDesc, FeatureLevel, TensorDataType, TensorFlags
from dmlops._table import OPERATORS

FLOATS = ("FLOAT32", "FLOAT16")
SMALL_SIGNED = ("INT32", "INT16", "INT8")
SMALL_INTEGERS = (*SMALL_SIGNED, "UINT32", "UINT16", "UINT8")
INTEGERS = (*SMALL_INTEGERS, "INT64", "UINT64")


def _class(function: str) -> type:
    camel = "".join(word.capitalize() for word in function.split("_"))
    return getattr(dmlops, f"Activation{camel}OperatorDesc")  # type: ignore[no-any-return]


# The descriptors of the activations that can be fused, and of the others, by the function.
_CLASSES = {row: _class(row.name) for row in activation_rows.ROWS}
ACTIVATIONS: dict[str, type] = {row.name: kind for row, kind in _CLASSES.items() if row.fusable}
FURTHER: dict[str, type] = {row.name: kind for row, kind in _CLASSES.items() if not row.fusable}

Desc = Any
Maker = Callable[..., Desc]  # a tensor, and fields to replace


def tensor(
    sizes: Sequence[int] = (2, 3), data_type: str = "FLOAT32", **more: Any
) -> BufferTensorDesc:
    """Return the descriptor of a tensor."""
    return BufferTensorDesc(TensorDataType[data_type], tuple(sizes), **more)


def clip(x: BufferTensorDesc, **more: Any) -> Desc:
    """Describe clip to [0, 6]."""
    values: dict[str, Any] = {"input_tensor": x, "output_tensor": x, "min": 0.0, "max": 6.0}
    values |= more
    return dmlops.ElementWiseClipOperatorDesc(**values)


def clip1(x: BufferTensorDesc, **more: Any) -> Desc:
    """Describe clip to [0, 6] in the tensor's type."""
    values: dict[str, Any] = {"input_tensor": x, "output_tensor": x, "min": 0, "max": 6}
    values |= {"min_max_data_type": x.data_type} | more
    return dmlops.ElementWiseClip1OperatorDesc(**values)


def tensor_names(desc: Desc) -> list[str]:
    """Return the fields that are tensors, outputs last, of a descriptor or its class."""
    (row,) = (row for row in OPERATORS if row.value == desc.operator_type)
    return [each.name for each in row.tensors]


def _gradient(x: BufferTensorDesc, fields: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a gradient; `more` may name the output as other operators do."""
    names = ("input", "input_gradient", "output_gradient")
    renamed = {
        "output_gradient_tensor" if name == "output_tensor" else name: value
        for name, value in more.items()
    }
    return {f"{name}_tensor": x for name in names} | fields | renamed


def clip_grad(x: BufferTensorDesc, **more: Any) -> Desc:
    """Describe the gradient of clip to [0, 6]."""
    fields = {"min": 0.0, "max": 6.0}
    return dmlops.ElementWiseClipGradOperatorDesc(**_gradient(x, fields, more))


def clip_grad1(x: BufferTensorDesc, **more: Any) -> Desc:
    """Describe the gradient of clip to [0, 6] in the tensor's type."""
    fields = {"min_max_data_type": x.data_type, "min": 0, "max": 6}
    return dmlops.ElementWiseClipGrad1OperatorDesc(**_gradient(x, fields, more))


def relu_grad(x: BufferTensorDesc, **more: Any) -> Desc:
    """Describe the gradient of relu."""
    return dmlops.ActivationReluGradOperatorDesc(**_gradient(x, {}, more))


def batch_normalization(x: BufferTensorDesc, **more: Any) -> Desc:
    """Describe batch normalization with parameters of the input's own size."""
    names = ("input", "mean", "variance", "scale", "bias", "output")
    return dmlops.BatchNormalizationOperatorDesc(**({f"{n}_tensor": x for n in names} | more))


def whole(name: str, **fields: Any) -> Maker:
    """Return the descriptor of an operator whose tensors are all of the input's sizes."""
    kind = getattr(dmlops, "".join(word.capitalize() for word in name.split("_")) + "OperatorDesc")
    names = tensor_names(kind)

    def make(x: BufferTensorDesc, **more: Any) -> Desc:
        if "output_tensor" not in names and "output_tensor" in more:
            more["output_gradient_tensor"] = more.pop("output_tensor")
        return kind(**(dict.fromkeys(names, x) | fields | more))

    return make


def data_types(operator: str) -> tuple[str, ...]:
    """Return the names of the dtypes that an operator takes at the latest level."""
    return tuple(name.lower() for name in TABLE[operator][1][-1][2])


def operands(desc: Desc) -> tuple[int, int]:
    """Return the numbers of inputs and outputs."""
    names = tensor_names(desc)
    outputs = sum(name.startswith("output") for name in names)
    return len(names) - outputs, outputs


def activation(name: str, **fields: Any) -> Maker:
    """Return the descriptor of an activation with these fields, and defaults for others."""

    def make(x: BufferTensorDesc, **more: Any) -> Desc:
        return _class(name)(**({"input_tensor": x, "output_tensor": x} | fields | more))

    return make


def parameterized_relu(x: BufferTensorDesc, **more: Any) -> Desc:
    """Describe parameterized_relu with a slope for each element."""
    return activation("parameterized_relu", slope_tensor=x)(x, **more)


log_softmax = activation("log_softmax")
log_softmax1 = activation("log_softmax1", axes=(0,))
FOUR_DIMENSIONS = "mean_variance_normalization"  # at every level
NORMALIZATION_GRADIENTS = ("batch_normalization_grad", "batch_normalization_training_grad")
SEVERAL_OUTPUTS = ("batch_normalization_training", *NORMALIZATION_GRADIENTS)
ROWS_ONLY = ("log_softmax", "softmax", "hardmax")  # with an effective rank of at most 2
AXES = tuple(f"{name}1" for name in ROWS_ONLY)


# Each operator with the ranks and data types of each level, from DirectML's documentation. A later
# line replaces the earlier ones.
Line = tuple[str, range, tuple[str, ...]]
_FROM_1_0: tuple[Line, ...] = (
    ("1_0", range(4, 5), FLOATS),
    ("2_0", range(4, 6), FLOATS),
    ("3_0", range(1, 9), FLOATS),
)
NORMALIZATIONS: dict[str, tuple[Line, ...]] = {
    "mean_variance_normalization": (("1_0", range(4, 5), FLOATS),),
    "batch_normalization_grad": (("3_1", range(1, 9), FLOATS),),
    "batch_normalization_training": (("4_1", range(1, 9), FLOATS),),
    "batch_normalization_training_grad": (("4_1", range(1, 9), FLOATS),),
}
TABLE: dict[str, tuple[Maker, tuple[Line, ...]]] = {
    "clip": (
        clip,
        (
            ("1_0", range(4, 5), FLOATS),
            ("2_1", range(4, 5), FLOATS + SMALL_INTEGERS),
            ("3_0", range(1, 9), FLOATS + SMALL_INTEGERS),
            ("5_0", range(1, 9), FLOATS + INTEGERS),
        ),
    ),
    "clip1": (clip1, (("5_0", range(1, 9), FLOATS + INTEGERS),)),
    "clip_grad": (
        clip_grad,
        (
            ("3_1", range(1, 9), FLOATS + SMALL_INTEGERS),
            ("5_0", range(1, 9), FLOATS + INTEGERS),
        ),
    ),
    "clip_grad1": (clip_grad1, (("5_0", range(1, 9), FLOATS + INTEGERS),)),
    "relu_grad": (
        relu_grad,
        (
            ("3_0", range(4, 5), FLOATS),
            ("4_0", range(1, 9), FLOATS),
            ("5_1", range(1, 9), FLOATS + SMALL_SIGNED),
        ),
    ),
    "batch_normalization": (
        batch_normalization,
        (("1_0", range(4, 5), FLOATS), ("3_1", range(1, 9), FLOATS)),
    ),
    **{name: (whole(name), lines) for name, lines in NORMALIZATIONS.items()},
    "mean_variance_normalization1": (
        whole("mean_variance_normalization1", axes=(0,)),
        (("2_1", range(4, 5), FLOATS), ("3_1", range(1, 9), FLOATS)),
    ),
    "mean_variance_normalization2": (
        whole("mean_variance_normalization2", axes=(0,)),
        (("6_3", range(1, 9), FLOATS),),
    ),
    **{name: (activation(name), _FROM_1_0) for name in ROWS_ONLY},
    **{name: (activation(name, axes=(0,)), (("5_1", range(1, 9), FLOATS),)) for name in AXES},
    "parameterized_relu": (
        parameterized_relu,
        (*_FROM_1_0, ("5_1", range(1, 9), FLOATS + SMALL_SIGNED)),
    ),
    "relu": (
        activation("relu"),
        (*_FROM_1_0, ("5_1", range(1, 9), FLOATS + SMALL_SIGNED)),
    ),
    "shrink": (
        activation("shrink"),
        (
            ("2_0", range(4, 6), FLOATS),
            ("3_0", range(1, 9), FLOATS),
            ("5_1", range(1, 9), FLOATS + SMALL_INTEGERS),
        ),
    ),
}
for _row in activation_rows.ROWS:
    _lines = _FROM_1_0 if _row.since == "1_0" else ((_row.since, range(1, 9), FLOATS),)
    TABLE.setdefault(_row.name, (activation(_row.name), _lines))

LEVELS = tuple(FeatureLevel)
FLAGS = (TensorFlags.NONE, TensorFlags.OWNED_BY_DML)  # iteration skips NONE from Python 3.11 on


def level(name: str) -> FeatureLevel:
    """Return the level of the name "5_1"."""
    return FeatureLevel[f"LEVEL_{name}"]


def accepts(operator: str, at: FeatureLevel, data_type: str, rank: int) -> bool:
    """Return True if the table accepts a tensor."""
    ranks: range = range(0)
    types: tuple[str, ...] = ()
    for since, more_ranks, more_types in TABLE[operator][1]:
        if level(since) <= at:
            ranks, types = more_ranks, more_types
    return rank in ranks and data_type in types


def refusal(desc: Desc, at: FeatureLevel = FeatureLevel.LEVEL_6_4) -> str | None:
    """Return a device's message of refusal at the level, or None."""
    try:
        dmlops._core.validate(desc, at)
    except dmlops.ValidationError as error:
        return str(error)
    return None


def refused(*parts: str, desc: Desc, at: FeatureLevel = FeatureLevel.LEVEL_6_4) -> None:
    """Fail unless a device of the level refuses the descriptor with a message of these parts."""
    said = refusal(desc, at)
    assert said is not None, "accepted"
    for part in parts:
        assert part in said, said


def changed(desc: Desc, **values: Any) -> Desc:
    """Return a descriptor with some fields replaced."""
    return dataclasses.replace(desc, **values)
