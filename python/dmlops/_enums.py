"""DirectML's enumerations, with its numeric values."""

from __future__ import annotations

import operator
from enum import IntEnum, IntFlag
from typing import Any, TypeVar

_Enum = TypeVar("_Enum", bound="TensorDataType | TensorFlags | FeatureLevel")
_PREFIXES = ("DML_TENSOR_DATA_TYPE_", "DML_TENSOR_FLAG_", "DML_FEATURE_", "LEVEL_")


def member(where: str, kind: type[_Enum], value: Any) -> _Enum:
    """Return the member for a number or a name, such as "FLOAT32", "3_0" or DirectML's own."""
    names: dict[str, Any] = {
        name.removeprefix("LEVEL_"): each for name, each in kind.__members__.items()
    }
    if isinstance(value, str):
        short = value.upper().replace(".", "_")
        for prefix in _PREFIXES:
            short = short.removeprefix(prefix)
        if short in names:
            found: _Enum = names[short]
            return found
    else:
        try:
            return kind(operator.index(value))
        except TypeError:
            numpy_name = str(getattr(value, "name", getattr(value, "__name__", ""))).upper()
            fix = f"; use {numpy_name!r}" if numpy_name in names else ""
            raise TypeError(
                f"{where} must be a {kind.__name__}, its name or its number, "
                f"not {type(value).__name__}{fix}"
            ) from None
        except ValueError:
            pass
    raise ValueError(f"{where} is {value!r}; it must be one of {', '.join(names)}")


class PlainRepr:
    """A repr that evaluates to the member."""

    def __repr__(self) -> str:
        name, value = self.name, self.value  # type: ignore[attr-defined]
        return f"{type(self).__name__}.{name}" if name else f"{type(self).__name__}({value})"


class TensorDataType(PlainRepr, IntEnum):
    """DML_TENSOR_DATA_TYPE: the data type of a tensor's elements.

    Examples
    --------
    >>> from dmlops import TensorDataType
    >>> TensorDataType.FLOAT16, int(TensorDataType.FLOAT16)
    (TensorDataType.FLOAT16, 2)
    """

    UNKNOWN = 0
    FLOAT32 = 1
    FLOAT16 = 2
    UINT32 = 3
    UINT16 = 4
    UINT8 = 5
    INT32 = 6
    INT16 = 7
    INT8 = 8
    FLOAT64 = 9
    UINT64 = 10
    INT64 = 11
    UINT4 = 12
    INT4 = 13


class TensorFlags(PlainRepr, IntFlag):
    """DML_TENSOR_FLAGS: the ownership of a tensor's memory.

    An ``OWNED_BY_DML`` input is bound and copied once, when the operator is compiled.

    Examples
    --------
    >>> from dmlops import TensorFlags
    >>> TensorFlags.OWNED_BY_DML
    TensorFlags.OWNED_BY_DML
    """

    NONE = 0
    OWNED_BY_DML = 1


class FeatureLevel(PlainRepr, IntEnum):
    """DML_FEATURE_LEVEL: the operators, data types and ranks that a device accepts.

    Examples
    --------
    >>> from dmlops import FeatureLevel
    >>> FeatureLevel.LEVEL_5_1, hex(FeatureLevel.LEVEL_5_1)
    (FeatureLevel.LEVEL_5_1, '0x5100')
    """

    LEVEL_1_0 = 0x1000
    LEVEL_2_0 = 0x2000
    LEVEL_2_1 = 0x2100
    LEVEL_3_0 = 0x3000
    LEVEL_3_1 = 0x3100
    LEVEL_4_0 = 0x4000
    LEVEL_4_1 = 0x4100
    LEVEL_5_0 = 0x5000
    LEVEL_5_1 = 0x5100
    LEVEL_5_2 = 0x5200
    LEVEL_6_0 = 0x6000
    LEVEL_6_1 = 0x6100
    LEVEL_6_2 = 0x6200
    LEVEL_6_3 = 0x6300
    LEVEL_6_4 = 0x6400
