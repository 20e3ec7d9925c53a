"""Conversions of convenient forms of descriptors' fields to DirectML's."""

from __future__ import annotations

from dmlops._enums import TensorDataType, member
from dmlops._fused_activation import fused_activation
from dmlops._tensor_desc import Descriptor, integers


def as_data_type(desc: Descriptor, field: str) -> None:
    """Convert the name or the number of a data type."""
    value = member(_where(desc, field), TensorDataType, getattr(desc, field))
    desc._set(field, value)


def as_axes(desc: Descriptor, field: str) -> None:
    """Convert axes to a tuple of integers."""
    desc._set(field, integers(_where(desc, field), getattr(desc, field)))


def as_activation(desc: Descriptor, field: str) -> None:
    """Convert the name or the class of an activation."""
    value = getattr(desc, field)
    if isinstance(value, (str, type)):
        desc._set(field, fused_activation(_where(desc, field), value))


def _where(desc: Descriptor, field: str) -> str:
    return f"{type(desc).__name__}: {field}"
