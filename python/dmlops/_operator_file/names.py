"""Translates the names of Python's classes and fields in messages to DirectML's."""

from __future__ import annotations

import dataclasses
import re

from dmlops._device import BufferBinding
from dmlops._operator_file.descriptors import DESCS
from dmlops._scale_bias import ScaleBias
from dmlops._table.schema import field_name
from dmlops._tensor_desc import BufferTensorDesc

_STRUCTS = {
    "BufferBinding": "DML_BUFFER_BINDING",
    "BufferTensorDesc": "DML_BUFFER_TENSOR_DESC",
    "ScaleBias": "DML_SCALE_BIAS",
} | {desc.__name__: f"DML_{operator.name}_OPERATOR_DESC" for operator, desc in DESCS.items()}
_FIELDS = {
    field.name: field_name(field.name)
    for struct in (BufferBinding, BufferTensorDesc, ScaleBias, *DESCS.values())
    for field in dataclasses.fields(struct)
}
_ALTERNATIVES = "|".join(sorted((*_STRUCTS, *_FIELDS), key=len, reverse=True))
# A field of one word is a name only as a subject, as in "min must be an integer" and "axes has 5".
# Elsewhere the word is English, as in "without leading sizes of 1".
_NAMES = re.compile(
    rf"\b(?:spatial=False|(?P<any>{_ALTERNATIVES})\b)(?P<verb> (?:is|has|must|needs|are)\b)?"
)


def directml_names(message: str) -> str:
    """Return a message with the names that DirectML gives to structs and fields."""

    def replace(match: re.Match[str]) -> str:
        name, verb = match["any"], match["verb"] or ""
        if name is None:
            return "Spatial = FALSE" + verb
        if name in _STRUCTS:
            return _STRUCTS[name] + verb
        subject = verb and (match.start() == 0 or message[: match.start()].endswith((": ", "; ")))
        return _FIELDS[name] + verb if "_" in name or subject else match[0]

    return _NAMES.sub(replace, message)
