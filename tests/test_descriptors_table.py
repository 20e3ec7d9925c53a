"""Every operator at every level with every data type and rank, against the documents' table."""

from __future__ import annotations

import directml_header
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


# The values in DirectML.h, position by position; directml_header.py has those of operators.
_LEVELS = "1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4"
_DATA_TYPES = "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 INT64"


def test_enumerations_have_the_values_of_directml() -> None:
    data_types = {name: i for i, name in enumerate([*_DATA_TYPES.split(), "UINT4", "INT4"])}
    assert {m.name: m.value for m in TensorDataType} == data_types
    operators = {name: value for name, (value, _) in directml_header.OPERATORS.items()}
    assert {m.name: m.value for m in dmlops.OperatorType} == operators
    names = _LEVELS.split()
    levels = {f"LEVEL_{name}": int(name.replace("_", "") + "00", 16) for name in names}
    assert {m.name: m.value for m in FeatureLevel} == levels
    assert (dmlops.TensorFlags.NONE, dmlops.TensorFlags.OWNED_BY_DML) == (0, 1)
