"""The activation that a normalization fuses: a descriptor, its class, or its name."""

from __future__ import annotations

from dmlops._activation_descs import ActivationDesc
from dmlops._operator_type import OperatorType

FusedActivation = ActivationDesc | type[ActivationDesc] | str
_BY_NAME = {
    kind.operator_type.name.removeprefix("ACTIVATION_").lower(): kind
    for kind in ActivationDesc.__subclasses__()
}


def fused_activation(where: str, value: object) -> ActivationDesc:
    """Return the descriptor of a name or a class, with default parameters."""
    if isinstance(value, str):
        if value in _BY_NAME:
            return _BY_NAME[value]()
        exists = f"ACTIVATION_{value.upper()}" in OperatorType.__members__
        problem = ", which cannot be fused" * (exists and value.lower() not in _BY_NAME)
        raise ValueError(f"{where} is {value!r}{problem}; it must be one of {', '.join(_BY_NAME)}")
    kind = value if isinstance(value, type) else type(value)
    if kind is value and kind in ActivationDesc.__subclasses__():
        desc: ActivationDesc = kind()
        return desc
    given = "the class " * (kind is value) + kind.__name__
    if isinstance(getattr(kind, "operator_type", None), OperatorType):
        raise TypeError(
            f"{where} is {given}, which cannot be fused; it must be one of {', '.join(_BY_NAME)}, "
            "the descriptor or the class of one, or None"
        )
    raise TypeError(
        f"{where} must be the descriptor, the class or the name of an activation, or None, "
        f"not {given}"
    )
