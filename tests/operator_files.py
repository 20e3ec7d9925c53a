"""Operator files for tests: DirectML's JSON from descriptors, and the command's output."""

from __future__ import annotations

import ast
import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dmlops
from dmlops._cli import main

Array = npt.NDArray[Any]
EXAMPLES = Path(__file__).parent.parent / "examples"


def c_name(name: str) -> str:
    """Return the name of the field in DirectML.h: "InputTensor" for "input_tensor"."""
    return re.sub("(?:^|_)([a-z])", lambda match: match[1].upper(), name)


def as_json(value: Any) -> Any:
    """Write a descriptor as DirectML's JSON, every field spelled out."""
    if isinstance(value, (dmlops.TensorDataType, dmlops.TensorFlags)):
        kind = "DATA_TYPE" if isinstance(value, dmlops.TensorDataType) else "FLAG"
        return f"DML_TENSOR_{kind}_{value.name}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    result = {c_name(f.name): as_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dmlops.BufferTensorDesc):
        result["DimensionCount"] = len(value.sizes)
        return {"Type": "DML_TENSOR_TYPE_BUFFER", "Desc": result}
    fused = getattr(value, "fused_activation", None)
    if fused is not None:
        kind = f"DML_OPERATOR_{fused.operator_type.name}"
        result["FusedActivation"] = {"Type": kind, "Desc": as_json(fused)}
    return result


def clip_file(**changed: Any) -> dict[str, Any]:
    """Return a file that clips three numbers in place, by default to [0, 6]."""
    tensor = {"DataType": "FLOAT32", "Sizes": [3]}
    desc = {"InputTensor": tensor, "OutputTensor": tensor, "Min": 0, "Max": 6, **changed}
    bindings = {"InputTensor": "x", "OutputTensor": "x"}
    return {
        "resources": {"x": {"initialValuesDataType": "FLOAT32", "initialValues": [-1, 2, 7]}},
        "dispatchables": {"clip": {"type": "ELEMENT_WISE_CLIP", "desc": desc}},
        "commands": [{"type": "dispatch", "dispatchable": "clip", "bindings": bindings}],
    }


def put(file: Any, place: str, value: Any) -> Any:
    """Return a copy with another value at a place as "commands/0/bindings"; ... removes it."""
    file = json.loads(json.dumps(file))
    *path, last = (int(key) if key.isdecimal() else key for key in place.split("/"))
    inner = file
    for key in path:
        inner = inner[key]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return file


class Runner:
    """Runs the command on a file in a separate folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, file: Any, command: str = "run", *more: str) -> tuple[int, str, str]:
        """Return the exit status, the standard output, and the errors."""
        path = self.folder / "operator.json"
        path.write_text(file if isinstance(file, str) else json.dumps(file))
        status = main([command, str(path), *more])
        captured = self._capsys.readouterr()
        return status, captured.out, captured.err

    def arrays(self, file: Any) -> dict[str, Array]:
        """Return the arrays that a run printed, or written files, by the resources' names."""
        status, out, err = self(file)
        assert (status, err) == (0, ""), err
        return printed(out)

    def refused(
        self,
        file: Any,
        *parts: str,
        status: int = 2,
        command: str = "run",
        more: tuple[str, ...] = (),
    ) -> None:
        """Expect one line of error with these parts, and nothing on standard output."""
        got, out, err = self(file, command, *more)
        assert got == status, err
        assert out == ""
        assert err.startswith("dmlops: error: ")
        assert err.count("\n") == 1
        for part in parts:
            assert part in err, err


def printed(text: str) -> dict[str, Array]:
    """Parse arrays from the command's output."""
    found = re.findall(r"^(.+): ([A-Z]+\d+) (\[.*\])\n(\[[^:]*\])$", text, re.MULTILINE)
    result = {}
    for name, dtype, shape, values in found:
        array = np.array(ast.literal_eval(values.replace("inf", "1e999")), dtype.lower())
        assert list(array.shape) == ast.literal_eval(shape)
        result[name] = array
    return result


def copy_file(data_type: str, sizes: list[int], values: Any, **more: Any) -> dict[str, Any]:
    """Return a file that copies a resource x into y: clip without bounds."""
    described = {"DataType": data_type, "Sizes": sizes}
    desc = {"InputTensor": described, "OutputTensor": described, "Min": "-inf", "Max": "inf"}
    return {
        "resources": {
            "x": {"initialValues": values, "initialValuesDataType": data_type, **more},
            "y": {},
        },
        "dispatchables": {"copy": {"type": "ELEMENT_WISE_CLIP", "desc": desc}},
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "copy",
                "bindings": {"InputTensor": "x", "OutputTensor": "y"},
            },
        ],
    }


def followed(file: dict[str, Any], *commands: dict[str, Any]) -> dict[str, Any]:
    return {**file, "commands": [*file["commands"], *commands]}
