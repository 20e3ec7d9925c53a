"""The rules of each operator, one test each: accepted and refused descriptors, messages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from descriptors import (
    ACTIVATIONS,
    FURTHER,
    LEVELS,
    TABLE,
    activation,
    batch_normalization,
    changed,
    clip,
    clip1,
    level,
    log_softmax,
    log_softmax1,
    parameterized_relu,
    refusal,
    refused,
    tensor,
    tensor_names,
)

import dmlops
from dmlops import TensorDataType


@pytest.mark.parametrize("operator", TABLE)
def test_output_must_match_the_input(operator: str) -> None:
    make, x = TABLE[operator][0], tensor((1, 1, 2, 3))
    name = type(make(x)).__name__
    other = tensor((1, 1, 2, 3), "FLOAT16")
    refused(name, "FLOAT16", "FLOAT32", "same", desc=make(x, output_tensor=other))
    refused(name, "5 dimensions", "has 4", desc=make(x, output_tensor=tensor((1, 1, 2, 3, 1))))
    refused(
        name, "(1, 1, 2, 4)", "(1, 1, 2, 3)", "dimension 3", "3, not 4",
        desc=make(x, output_tensor=tensor((1, 1, 2, 4))),
    )  # fmt: skip
    narrow = tensor((1, 1, 2, 1))
    refused(name, "dimension 3", "3, not 1", desc=make(x, output_tensor=narrow))


OTHER_TENSORS = [
    (operator, name)
    for operator, (make, _) in TABLE.items()
    for name in tensor_names(make(tensor()))
    if name != "input_tensor"
]


@pytest.mark.parametrize(("operator", "name"), OTHER_TENSORS)
def test_each_tensor_must_match_the_input(operator: str, name: str) -> None:
    desc = TABLE[operator][0](tensor((1, 1, 2, 3)))
    wrong = (tensor((1, 1, 2, 3), "FLOAT16"), tensor((1, 1, 2, 3, 1)), tensor((1, 1, 2, 4)))
    for other in wrong:
        refused(name, desc=changed(desc, **{name: other}))


def test_operator_of_a_higher_level() -> None:
    desc = log_softmax1(tensor())
    expected = "ActivationLogSoftmax1OperatorDesc needs DML_FEATURE_LEVEL_5_1; the device has 5_0"
    assert refusal(desc, level("5_0")) == expected
    assert refusal(desc, level("5_1")) is None


def test_a_message_names_the_level_that_accepts() -> None:
    said = refusal(clip(tensor((2, 3), "INT64")), level("2_1"))
    assert said == (
        "ElementWiseClipOperatorDesc: input_tensor has data type INT64; it must be one of FLOAT32, "
        "FLOAT16, UINT32, UINT16, UINT8, INT32, INT16, INT8 at DML_FEATURE_LEVEL_2_1; "
        "DML_FEATURE_LEVEL_5_0 accepts it"
    )
    said = refusal(activation("elu")(tensor((2,) * 5)), level("1_0"))
    assert said == (
        "ActivationEluOperatorDesc: input_tensor has 5 dimensions; it must have 4 at "
        "DML_FEATURE_LEVEL_1_0; DML_FEATURE_LEVEL_2_0 accepts it"
    )


@pytest.mark.parametrize("parameter", ["mean", "variance", "scale", "bias"])
def test_batch_normalization_parameters_broadcast(parameter: str) -> None:
    x = tensor((2, 3, 4, 5))
    name = f"{parameter}_tensor"
    for sizes in [(2, 3, 4, 5), (1, 3, 1, 1), (1, 1, 1, 1), (2, 1, 4, 1)]:
        assert refusal(batch_normalization(x, **{name: tensor(sizes)})) is None
    for strides in [(0, 1, 0, 0), (0, 0, 0, 0)]:
        broadcast = tensor((2, 3, 4, 5), strides=strides)
        assert refusal(batch_normalization(x, **{name: broadcast})) is None
    wrong = batch_normalization(x, **{name: tensor((1, 2, 1, 1))})
    refused(name, "(1, 2, 1, 1)", "(2, 3, 4, 5)", "1 or 3, not 2", desc=wrong)
    refused(name, "1 dimension, ", "4", desc=batch_normalization(x, **{name: tensor((5,))}))
    said = refusal(batch_normalization(x, **{name: tensor((3,))}))
    assert str(said).endswith("; for one value per channel, use sizes (1, 3, 1, 1)")
    wrong = batch_normalization(x, **{name: tensor((1, 3, 1, 1), "FLOAT16")})
    refused(name, "FLOAT16", "FLOAT32", desc=wrong)


def test_slopes_broadcast_by_strides_alone() -> None:
    x = tensor((2, 3, 4, 5))
    of_channels = parameterized_relu(x, slope_tensor=tensor((1, 3, 1, 1)))
    words = ("slope_tensor", "in dimension 0 its size must be 2, not 1", "a stride of 0")
    refused(*words, desc=of_channels)
    strided = tensor((2, 3, 4, 5), strides=(0, 1, 0, 0))
    assert refusal(parameterized_relu(x, slope_tensor=strided)) is None


@pytest.mark.parametrize("name", ["input", "mean", "variance", "scale", "bias", "output"])
def test_batch_normalization_has_no_optional_tensor(name: str) -> None:
    field = f"{name}_tensor"
    assert refusal(batch_normalization(tensor(), **{field: None})) == (
        f"BatchNormalizationOperatorDesc: {field} is missing; the operator requires it"
    )


def test_an_activation_has_tensors_unless_it_is_fused() -> None:
    assert refusal(activation("elu")(tensor(), input_tensor=None)) == (
        "ActivationEluOperatorDesc: input_tensor is missing; only a fused activation has no tensors"
    )


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-5, math.inf, math.nan])
def test_batch_normalization_epsilon_is_any_float(epsilon: float) -> None:
    assert refusal(batch_normalization(tensor(), epsilon=epsilon)) is None


def test_batch_normalization_spatial_below_4_0() -> None:
    x, channels = tensor((2, 3, 4, 5)), tensor((1, 3, 1, 1))
    every = dict.fromkeys(("mean_tensor", "variance_tensor"), channels)
    spread = tensor((2, 3, 4, 5), strides=(0, 1, 0, 0))
    full = tensor((1, 3, 4, 5))
    for at in LEVELS:
        old = at < level("4_0")
        assert refusal(batch_normalization(x, **every), at) is None
        for broadcast in (channels, spread, tensor((1, 3, 4, 1)), tensor((1, 3, 1, 5))):
            for name in every:
                desc = batch_normalization(x, spatial=False, **{name: broadcast})
                assert (refusal(desc, at) is not None) == old, (at, broadcast)
        more = {"scale_tensor": channels, "bias_tensor": channels}
        fine = batch_normalization(x, spatial=False, mean_tensor=full, variance_tensor=full, **more)
        assert refusal(fine, at) is None
    refused(
        "mean_tensor", "dimension 2", "spatial=False", "DML_FEATURE_LEVEL_4_0 accepts it",
        desc=batch_normalization(x, spatial=False, **every), at=level("3_1"),
    )  # fmt: skip


@pytest.mark.parametrize("rank", range(1, 9))
def test_dimensions_that_are_spatial_below_4_0(rank: int) -> None:
    sizes = range(2, 2 + rank)
    for axis in range(rank):
        broadcast = tensor([1 if i == axis else size for i, size in enumerate(sizes)])
        for name in ("mean", "variance", "scale", "bias"):
            desc = batch_normalization(
                tensor(sizes), spatial=False, **{f"{name}_tensor": broadcast}
            )
            spatial = name in ("mean", "variance") and axis >= max(2, rank - 2)
            lowest = "4_0" if spatial else "1_0" if rank == 4 else "3_1"
            assert dmlops.required_feature_level(desc) is level(lowest), (axis, name)


@pytest.mark.parametrize(
    ("given", "other"), [("scale_tensor", "bias_tensor"), ("bias_tensor", "scale_tensor")]
)
def test_scale_and_bias_of_mean_variance_normalization(given: str, other: str) -> None:
    x, of_channels = tensor((2, 3, 4, 5)), tensor((1, 3, 1, 1))
    make = TABLE["mean_variance_normalization1"][0]
    broadcast = make(x, **{given: tensor((1, 1, 1, 1)), other: of_channels})
    assert dmlops.required_feature_level(broadcast) is level("4_0")
    message = f"{given} has size 1 in dimension 1, the channels; it must be 3"
    refused(message, desc=broadcast, at=level("3_1"))
    for operator in ("mean_variance_normalization", "mean_variance_normalization1"):
        alone = TABLE[operator][0](x, **{given: of_channels, other: None})
        assert dmlops.required_feature_level(alone) is level("5_2")
        refused(f"{other} is missing, but {given} is given", desc=alone, at=level("5_1"))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_fused_activation(name: str) -> None:
    x = tensor((1, 2, 3, 4))
    fused = ACTIVATIONS[name]()
    desc = batch_normalization(x, fused_activation=fused)
    since = level(TABLE[name][1][0][0])
    for at in LEVELS:
        assert (refusal(desc, at) is None) == (at >= since)
    assert dmlops.required_feature_level(desc) == since
    for field in ("input_tensor", "output_tensor"):
        wrong = batch_normalization(x, fused_activation=ACTIVATIONS[name](**{field: x}))
        refused(type(fused).__name__, field, "no tensors", desc=wrong)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_fused_activation_by_name_and_class(name: str) -> None:
    expected = batch_normalization(tensor(), fused_activation=ACTIVATIONS[name]())
    assert batch_normalization(tensor(), fused_activation=name) == expected
    assert batch_normalization(tensor(), fused_activation=ACTIVATIONS[name]) == expected


def test_fused_activation_from_the_closed_list() -> None:
    x = tensor()
    for other in (clip(x), clip1(x), batch_normalization(x), log_softmax(x), log_softmax1(x)):
        wrong = batch_normalization(x, fused_activation=other)
        refused(
            type(other).__name__,
            f"cannot be fused; it must be one of {', '.join(ACTIVATIONS)}",
            desc=wrong,
        )
    with pytest.raises(TypeError, match="fused_activation"):
        refusal(batch_normalization(x, fused_activation=1))
    with pytest.raises(ValueError, match=r"fused_activation is 'Relu'; it must be one of .*relu"):
        batch_normalization(x, fused_activation="Relu")


def test_fused_activation_that_exists_but_cannot_be_fused() -> None:
    x, names = tensor(), ", ".join(ACTIVATIONS)
    for name in FURTHER:
        with pytest.raises(ValueError, match="fused_activation") as caught:
            batch_normalization(x, fused_activation=name)
        assert str(caught.value) == (
            f"BatchNormalizationOperatorDesc: fused_activation is {name!r}, which cannot be fused; "
            f"it must be one of {names}"
        )
        with pytest.raises(TypeError, match="fused_activation") as caught_type:
            batch_normalization(x, fused_activation=FURTHER[name])
        assert str(caught_type.value) == (
            "BatchNormalizationOperatorDesc: fused_activation is the class "
            f"{FURTHER[name].__name__}, which cannot be fused; it must be one of {names}, "
            "the descriptor or the class of one, or None"
        )


def test_a_message_names_a_level_once() -> None:
    desc = batch_normalization(tensor((1, 2, 3, 4)), fused_activation="gelu")
    assert refusal(desc, level("5_0")) == (
        "BatchNormalizationOperatorDesc: fused_activation ActivationGeluOperatorDesc needs "
        "DML_FEATURE_LEVEL_5_1; the device has 5_0"
    )


@pytest.mark.parametrize("steepness", [0.5, 0.0, -1.0, math.nan])
def test_softplus_steepness_below_6_4(steepness: float) -> None:
    x = tensor()
    alone = activation("softplus")(x, steepness=steepness)
    fused = batch_normalization(
        x, fused_activation=dmlops.ActivationSoftplusOperatorDesc(steepness=steepness)
    )
    for desc in (alone, fused):
        refused("steepness", "at least 1", "LEVEL_6_4 accepts it", desc=desc, at=level("6_3"))
        assert refusal(desc) is None
        assert dmlops.required_feature_level(desc) == level("6_4")
    assert refusal(activation("softplus")(x, steepness=1.0), level("6_3")) is None


def test_log_softmax1_axes() -> None:
    x = tensor((2, 3, 4))
    for axes in [(0,), (2,), (2, 0), (1, 2, 0)]:
        assert refusal(log_softmax1(x, axes=axes)) is None
    refused("axes is empty", desc=log_softmax1(x, axes=()))
    refused("axes has 1 twice", desc=log_softmax1(x, axes=(1, 0, 1)))
    refused("axes has 3", "3 dimensions (0 to 2)", desc=log_softmax1(x, axes=(0, 3)))
    refused("4294967295", desc=log_softmax1(x, axes=(2**32 - 1,)))
    refused(
        "axes[1] is -1; descriptors count axes from 0: use 2", desc=log_softmax1(x, axes=(0, -1))
    )
    refused(f"axes[0] is {-(2**70)}", "UINT", desc=log_softmax1(x, axes=(-(2**70),)))
    refused("axes[0] is -4", "UINT (0 to 4294967295)", desc=log_softmax1(x, axes=(-4,)))
    refused("axes[0] is 4294967296", "UINT", desc=log_softmax1(x, axes=(2**32,)))
    refused("twice", desc=log_softmax1(x, axes=(0,) * 10000))


def test_log_softmax_effective_rank() -> None:
    for sizes in [(4,), (2, 3), (1, 2, 3), (1, 1, 8, 10), (1,) * 8, (2, 1), (1, 2, 1)]:
        assert refusal(log_softmax(tensor(sizes))) is None, sizes
    for sizes in [(2, 3, 4), (2, 1, 3), (1, 2, 1, 1), (2, 1, 1, 1)]:
        refused("effective rank", str(sizes), desc=log_softmax(tensor(sizes)))


def test_clip1_min_max_data_type() -> None:
    wrong = clip1(tensor((2,), "INT32"), min_max_data_type=TensorDataType.INT16)
    refused("min_max_data_type is INT16", "INT32", desc=wrong)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        ("INT8", -129), ("INT8", 128), ("UINT8", -1), ("UINT8", 256), ("INT64", 2**63),
        ("UINT64", 2**64), ("UINT64", -1), ("INT16", 2**70),
        ("FLOAT32", 1e39), ("FLOAT32", -1e39), ("FLOAT16", 65520), ("FLOAT16", -1e300),
    ],
)  # fmt: skip
def test_clip1_bounds_fit_the_type(data_type: str, value: float) -> None:
    refused(
        "min is", "does not fit", data_type.replace("FLOAT32", "FLOAT"),
        desc=clip1(tensor((2,), data_type), min=value),
    )  # fmt: skip
    if "INT" in data_type:
        range_ = np.iinfo(data_type.lower())
        said = refusal(clip1(tensor((2,), data_type), min=value))
        assert f"{data_type} ({range_.min} to {range_.max})" in str(said)


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
def test_clip1_bounds_may_be_infinite(data_type: str) -> None:
    for value in (math.inf, -math.inf, math.nan, 65519.0):
        assert refusal(clip1(tensor((2,), data_type), min=value)) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.5, "an integer"), (1.0, "an integer"), ("1", "a number"), (None, "a number")],
)
def test_clip1_bounds_of_integers_are_integers(value: object, expected: str) -> None:
    with pytest.raises(TypeError, match=f"max must be {expected}, not {type(value).__name__}"):
        refusal(clip1(tensor((2,), "INT32"), max=value))


@pytest.mark.parametrize("bounds", [(6, 0), (-math.inf, math.inf), (math.nan, math.nan)])
def test_clip_bounds_are_any_floats(bounds: tuple[float, float]) -> None:
    for data_type in ("FLOAT32", "FLOAT16", "UINT8", "INT64"):
        assert refusal(clip(tensor((2,), data_type), min=bounds[0], max=bounds[1])) is None


def test_numbers_must_fit_float() -> None:
    refused("max is 1e+39", "FLOAT", desc=clip(tensor(), max=1e39))
    for digits in (400, 5000):  # Python does not print the latter
        refused("FLOAT", desc=activation("elu")(tensor(), alpha=10**digits))
        refused("INT32", desc=clip1(tensor((2,), "INT32"), min=10**digits))
    with pytest.raises(TypeError, match="alpha must be a number, not str"):
        refusal(activation("elu")(tensor(), alpha="1"))


BOOLEANS = [
    ("batch_normalization", "spatial"),
    ("mean_variance_normalization", "cross_channel"),
    ("mean_variance_normalization", "normalize_variance"),
    ("mean_variance_normalization1", "normalize_variance"),
    ("mean_variance_normalization2", "use_mean"),
    ("mean_variance_normalization2", "use_variance"),
]


@pytest.mark.parametrize(("operator", "field"), BOOLEANS)
def test_booleans(operator: str, field: str) -> None:
    """Accepts and refuses values as the functions do."""
    make, x = TABLE[operator][0], tensor((2, 3, 4, 5))
    normalize: Any = dmlops.mean_variance_normalization
    accepted: tuple[Any, ...] = (True, False, np.True_, np.False_, 0, 1)
    for value in accepted:
        assert refusal(make(x, **{field: value})) is None, repr(value)
    refused_ones: tuple[Any, ...] = ("False", "", None, [], b"1", np.zeros(2))
    for value in refused_ones:
        name = "numpy.ndarray" if isinstance(value, np.ndarray) else type(value).__name__
        with pytest.raises(TypeError) as caught:
            make(x, **{field: value})
        assert str(caught.value) == f"{type(make(x)).__name__}: {field} must be a bool, not {name}"
        if field.startswith("use_"):
            with pytest.raises(TypeError, match=f"{field} must be a bool, not {name}"):
                normalize(np.zeros(3, np.float32), **{field: value})


def test_wrong_types() -> None:
    with pytest.raises(TypeError, match="compile: desc must be the descriptor of an operator, not"):
        dmlops.Device().compile(5)  # type: ignore[arg-type]
    calls: tuple[Any, ...] = (dmlops.Device().compile, dmlops.required_feature_level)
    for call in calls:
        words = rf"{call.__name__}: desc is the class (\w+); write \1\(\.\.\.\)$"
        with pytest.raises(TypeError, match=words):
            call(ACTIVATIONS["relu"])
    with pytest.raises(TypeError, match="input_tensor must be a BufferTensorDesc, not str"):
        refusal(clip("x"))  # type: ignore[arg-type]
    for optional in (
        activation("elu")(tensor(), input_tensor="x"),
        TABLE["mean_variance_normalization1"][0](tensor(), bias_tensor="x"),
    ):
        with pytest.raises(TypeError, match="_tensor must be a BufferTensorDesc or None, not str"):
            refusal(optional)
    with pytest.raises(TypeError, match="scale_bias must be a ScaleBias or None"):
        refusal(clip(tensor(), scale_bias=(1, 2)))
    for axes in ("01", b"01", 0):
        with pytest.raises(TypeError, match=f"axes must be .*, not {type(axes).__name__}"):
            log_softmax1(tensor(), axes=axes)
    assert dmlops.Device(0x5000).feature_level is level("5_0")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="20481"):
        dmlops.Device(0x5001)  # type: ignore[arg-type]
