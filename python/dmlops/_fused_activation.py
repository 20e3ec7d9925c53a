"""The activation that a normalization fuses: a descriptor, its class, or its name."""

from __future__ import annotations

from dmlops._activation_descs import ActivationDesc

FusedActivation = ActivationDesc | type[ActivationDesc] | str
_BY_NAME = {
    kind.operator_type.name.removeprefix("ACTIVATION_").lower(): kind
    for kind in ActivationDesc.__subclasses__()
}


def fused_activation(where: str, value: object) -> ActivationDesc:
    """Return the descriptor of a name or a class, with default parameters."""
    if isinstance(value, str):
        if value not in _BY_NAME:
            raise ValueError(f"{where} is {value!r}; it must be one of {', '.join(_BY_NAME)}")
        return _BY_NAME[value]()
    if isinstance(value, type) and value in ActivationDesc.__subclasses__():
        desc: ActivationDesc = value()
        return desc
    kind = value if isinstance(value, type) else type(value)
    raise TypeError(
        f"{where} must be the descriptor or the name of an activation, or None, "
        f"not {'the class ' * isinstance(value, type)}{kind.__name__}"
    )
