"""Tables of supported data types and layouts, filled in by calls of the library."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from enum import EnumMeta
from itertools import groupby
from typing import Any

import numpy as np

import dmlops
from dmlops import BufferTensorDesc, FeatureLevel, TensorDataType
from dmlops._table import OPERATORS

RANKS = range(1, 9)


def data_types(name: str) -> list[str]:
    """Return the names of the dtypes that the function `name` takes."""
    return [dtype.name.lower() for dtype in TensorDataType if takes(name, dtype.name.lower())]


def takes(name: str, dtype: str) -> bool:
    """Return True if the function accepts arrays of a data type."""
    try:
        function, array = getattr(dmlops, name), np.zeros(1, dtype)
        parameters = inspect.signature(function).parameters.values()
        function(*(array for each in parameters if each.default is each.empty))
    except TypeError:  # raised by NumPy for a type that it lacks, or by the operator
        return False
    return True


def descriptors(name: str) -> list[str]:
    """Return the names of the descriptors that belong to the function `name`."""
    return [row.desc for row in OPERATORS if row.function == name]


def enumerations() -> dict[str, list[tuple[str, int | str]]]:
    """Return the members of each enumeration, with the values as DirectML's headers write them."""
    found: dict[str, list[tuple[str, int | str]]] = {}
    for name in dmlops.__all__:
        cls = getattr(dmlops, name)
        if isinstance(cls, EnumMeta):
            members: dict[str, Any] = dict(cls.__members__)
            text = hex if cls is FeatureLevel else int
            found[name] = [(member, text(value)) for member, value in members.items()]
    return found


def levels(descriptor: str) -> list[tuple[str, str, str]]:
    """Return feature levels, and the data types and dimension counts that they add."""
    added: dict[tuple[FeatureLevel, str], list[str]] = {}
    for data_type in TensorDataType:
        ranks: dict[FeatureLevel, list[int]] = {}
        for rank in RANKS:
            level = lowest(descriptor, data_type, rank)
            if level is not None:
                ranks.setdefault(level, []).append(rank)
        for level, counts in ranks.items():
            added.setdefault((level, spans(counts)), []).append(data_type.name)
    return [
        (level.name.removeprefix("LEVEL_").replace("_", "."), ", ".join(types), counts)
        for (level, counts), types in sorted(added.items())
    ]


def lowest(descriptor: str, data_type: TensorDataType, rank: int) -> FeatureLevel | None:
    """Return the lowest feature level that takes tensors of a data type and rank, if one does."""
    try:
        return dmlops.required_feature_level(example(getattr(dmlops, descriptor), data_type, rank))
    except dmlops.ValidationError:
        return None


def example(cls: Any, data_type: TensorDataType, rank: int) -> Any:
    """Return a descriptor with the smallest tensors of a data type and rank."""
    tensor = BufferTensorDesc(data_type, (1,) * rank)
    values = {"axes": (0,), "min": 0, "max": 1, "min_max_data_type": data_type}
    fields = {
        field.name: tensor if field.name.endswith("_tensor") else values[field.name]
        for field in dataclasses.fields(cls)
        if field.name.endswith("_tensor") or field.name in values
    }
    return cls(**fields)


def spans(numbers: list[int]) -> str:
    """Return ascending numbers with their runs abbreviated: 1-3, 5."""
    return ", ".join(_spans(numbers))


def _spans(numbers: list[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        values = [number for _, number in run]
        yield f"{values[0]}" if len(values) == 1 else f"{values[0]}-{values[-1]}"
