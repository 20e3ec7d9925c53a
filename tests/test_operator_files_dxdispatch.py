"""Operator files: what DxDispatch takes is taken, in its own spelling."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from descriptors import TABLE, tensor
from operator_files import Runner, as_json, clip_file, copy_file, followed, put

from dmlops._operator_file import resources
from dmlops._operator_file.parse import read_model


@pytest.fixture
def runner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(tmp_path, capsys)


def test_clip_of_dxdispatch(runner: Runner) -> None:
    """The case that comes with DxDispatch: in place, one dimension, no ScaleBias."""
    file = clip_file(Min=-2.5, Max=2.5)
    file["resources"]["x"]["initialValues"] = list(range(-4, 5))
    for name in ("InputTensor", "OutputTensor"):
        file["dispatchables"]["clip"]["desc"][name] = {"DataType": "FLOAT32", "Sizes": [9]}
    file["commands"].append({"type": "print", "resource": "x"})
    assert runner.arrays({"$schema": "./_schema.json", **file})["x"].tolist() == [
        *(-2.5, -2.5, -2, -1, 0, 1, 2, 2.5, 2.5),
    ]


def test_comments_and_last_commas(runner: Runner) -> None:
    file = clip_file()
    file["resources"]['// no, "comment" /* , } */'] = {"initialValues": "deferred"}
    text = json.dumps(file, indent=1)
    text = text.replace("}\n", '}, // the end, of "it"\n').replace("]", "/* a\n b */ ]")
    assert runner.arrays(text)["x"].tolist() == [0, 2, 6]
    runner.refused('{ // one\n "a" /* two\n lines */ 1}', "line 3, column 11")
    runner.refused('{"a": 1, /* open', "is not valid JSON")


def test_union_of_scalars(tmp_path: Path) -> None:
    path = tmp_path / "operator.json"
    for data_type, low, expected in [
        ("FLOAT32", {"Float32": -1.5}, -1.5),
        ("FLOAT16", {"UInt16": 0x3C00}, 1.0),
        ("UINT64", {"UInt64": 2**64 - 1}, 2**64 - 1),
        ("INT8", {"Int8": -3}, -3),
    ]:
        desc = as_json(TABLE["clip1"][0](tensor((2,), data_type))) | {"Min": low}
        document = {"dispatchables": {"it": {"type": "ELEMENT_WISE_CLIP1", "desc": desc}}}
        path.write_text(json.dumps(document))
        assert read_model(str(path)).operators["it"].desc.min == expected


def test_wrong_union_of_scalars(runner: Runner) -> None:
    for data_type, low, part in [
        ("FLOAT32", {"UInt32": 1}, "'Float32'"),
        ("FLOAT16", {"UInt16": 2**16}, "16 bits"),
        ("INT8", {}, "'Int8' is missing"),
    ]:
        desc = as_json(TABLE["clip1"][0](tensor((2,), data_type))) | {"Min": low}
        document = {"dispatchables": {"it": {"type": "ELEMENT_WISE_CLIP1", "desc": desc}}}
        runner.refused(document, "dispatchables.it.desc.Min", part, command="validate")


def test_other_spellings(runner: Runner) -> None:
    file = clip_file()
    operator = file["dispatchables"]["clip"]
    operator["Desc"] = operator.pop("desc")
    operator["Desc"]["InputTensor"] = {"TotalTensorSizeInBytes": 0} | operator["Desc"][
        "InputTensor"
    ]
    operator |= {"dmlCompileType": "DmlCompileGraph", "executionFlags": ["DML_EXECUTION_FLAG_NONE"]}
    assert runner.arrays(file)["x"].tolist() == [0, 2, 6]


def test_owned_inputs_may_be_bound_by_the_operator(runner: Runner) -> None:
    file = copy_file("FLOAT32", [3], [1, 2, 3])
    file = put(file, "dispatchables/copy/desc/InputTensor/Flags", "OWNED_BY_DML")
    file = put(file, "dispatchables/copy/bindings", {"InputTensor": "x"})
    runner.refused(file, "commands[0].bindings: unknown field 'InputTensor'")
    file = put(file, "commands/0/bindings/InputTensor", ...)
    assert runner.arrays(file)["y"].tolist() == [1, 2, 3]
    other = put(file, "dispatchables/copy/desc/InputTensor/Flags", "NONE")
    runner.refused(other, "copy.bindings: unknown field 'InputTensor'; there are none")


def test_deferred_initial_values(runner: Runner) -> None:
    file = put(copy_file("FLOAT32", [3], [1, 2, 3]), "resources/y/initialValues", "deferred")
    assert runner.arrays(file)["y"].tolist() == [1, 2, 3]


def test_sources_may_lie_in_the_current_folder(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    np.save("x.npy", np.array([1, 2, 3], np.float32))
    file = copy_file("FLOAT32", [3], {"sourcePath": "x.npy"})
    assert runner.arrays(file)["y"].tolist() == [1, 2, 3]
    np.save(tmp_path / "x.npy", np.array([4, 5, 6], np.float32))
    assert runner.arrays(file)["y"].tolist() == [4, 5, 6]
    runner.refused(put(file, "resources/x/initialValuesDataType", "INT32"), "holds FLOAT32, not")


def test_dimensions_of_a_written_file(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "HUGE", 1)
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy", "dimensions": [2, 2]}
    file = followed(copy_file("FLOAT32", [4], [1, 2, 3, 4]), write)
    assert "y: FLOAT32 [2, 2], written" in runner(file)[1]
    assert np.load(runner.folder / "y.npy").tolist() == [[1, 2], [3, 4]]
    runner.refused(put(file, "commands/1/dimensions", [3, 2]), "[3, 2], but there are 4 elements")
