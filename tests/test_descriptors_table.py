"""Every operator at every level with every data type and rank, against the documents' table."""

from __future__ import annotations

import pytest
from descriptors import LEVELS, ROWS_ONLY, TABLE, accepts, refusal, tensor

import dmlops
from dmlops import FeatureLevel, TensorDataType


def _sizes(operator: str, rank: int) -> tuple[int, ...]:
    """Sizes that break no other rule: the old softmax family allows two besides leading ones."""
    return (
        (1,) * max(rank - 2, 0) + (3, 2)[: min(rank, 2)] if operator in ROWS_ONLY else ((2,) * rank)
    )


@pytest.mark.parametrize("operator", TABLE)
def test_table(operator: str) -> None:
    make = TABLE[operator][0]
    accepted = 0
    for data_type in TensorDataType.__members__:
        for rank in range(10):
            sizes = _sizes(operator, rank)
            if data_type in ("UNKNOWN", "UINT4", "INT4", "FLOAT64") and operator in (
                "clip1",
                "clip_grad1",
            ):
                desc = make(tensor(sizes, data_type), min=0.0, max=1.0)
            else:
                desc = make(tensor(sizes, data_type))
            lowest = next((at for at in LEVELS if accepts(operator, at, data_type, rank)), None)
            for at in LEVELS:
                expected = accepts(operator, at, data_type, rank)
                said = refusal(desc, at)
                context = f"{operator} at {at!r}: {data_type} of rank {rank}: {said}"
                assert (said is None) == expected, context
                accepted += expected
                if said is not None:
                    assert type(desc).__name__ in said, context
                    assert ("DML_FEATURE_LEVEL" in said) or lowest is None, context
                    if lowest is not None:
                        assert f"DML_FEATURE_LEVEL_{lowest.name[6:]}" in said, context
            if lowest is None:
                with pytest.raises(dmlops.ValidationError):
                    dmlops.required_feature_level(desc)
            else:
                assert dmlops.required_feature_level(desc) == lowest
    assert accepted >= 2 * 8, "the newest level takes both float types at all ranks"


def test_table_has_every_operator() -> None:
    made = {type(make(tensor())).operator_type for make, _ in TABLE.values()}
    assert made == set(dmlops.OperatorType)
    assert len(made) == len(TABLE)


# The values in DirectML.h, position by position.
_LEVELS = "1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4"
_DATA_TYPES = "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 INT64"
_OPERATORS = {
    "ELEMENT_WISE_CLIP": 8,
    "ACTIVATION_ELU": 35,
    "ACTIVATION_HARD_SIGMOID": 37,
    "ACTIVATION_IDENTITY": 38,
    "ACTIVATION_LEAKY_RELU": 39,
    "ACTIVATION_LINEAR": 40,
    "ACTIVATION_LOG_SOFTMAX": 41,
    "ACTIVATION_PARAMETRIC_SOFTPLUS": 43,
    "ACTIVATION_RELU": 44,
    "ACTIVATION_SCALED_ELU": 45,
    "ACTIVATION_SCALED_TANH": 46,
    "ACTIVATION_SIGMOID": 47,
    "ACTIVATION_SOFTPLUS": 49,
    "ACTIVATION_SOFTSIGN": 50,
    "ACTIVATION_TANH": 51,
    "ACTIVATION_THRESHOLDED_RELU": 52,
    "BATCH_NORMALIZATION": 72,
    "ACTIVATION_SHRINK": 90,
    "ACTIVATION_CELU": 128,
    "ELEMENT_WISE_CLIP1": 153,
    "ACTIVATION_GELU": 157,
    "ACTIVATION_LOG_SOFTMAX1": 159,
    # the rest of the families
    "ACTIVATION_HARDMAX": 36,
    "ACTIVATION_PARAMETERIZED_RELU": 42,
    "ACTIVATION_SOFTMAX": 48,
    "MEAN_VARIANCE_NORMALIZATION": 73,
    "MEAN_VARIANCE_NORMALIZATION1": 115,
    "ACTIVATION_RELU_GRAD": 129,
    "ELEMENT_WISE_CLIP_GRAD": 142,
    "BATCH_NORMALIZATION_GRAD": 146,
    "BATCH_NORMALIZATION_TRAINING": 151,
    "BATCH_NORMALIZATION_TRAINING_GRAD": 152,
    "ELEMENT_WISE_CLIP_GRAD1": 154,
    "ACTIVATION_SOFTMAX1": 158,
    "ACTIVATION_HARDMAX1": 160,
    "ACTIVATION_SWISH": 167,
    "ACTIVATION_HARD_SWISH": 168,
    "MEAN_VARIANCE_NORMALIZATION2": 171,
}


def test_enumerations_have_the_values_of_directml() -> None:
    data_types = {name: i for i, name in enumerate([*_DATA_TYPES.split(), "UINT4", "INT4"])}
    assert {m.name: m.value for m in TensorDataType} == data_types
    assert all(m.value == _OPERATORS[m.name] for m in dmlops.OperatorType)
    names = _LEVELS.split()
    levels = {f"LEVEL_{name}": int(name.replace("_", "") + "00", 16) for name in names}
    assert {m.name: m.value for m in FeatureLevel} == levels
    assert (dmlops.TensorFlags.NONE, dmlops.TensorFlags.OWNED_BY_DML) == (0, 1)
