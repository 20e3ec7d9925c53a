"""Operator files: compatibility with the files of DxDispatch."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from descriptors import TABLE, tensor
from operator_files import Runner, as_json, clip_file, copy_file, followed, printed, put

import dmlops
from dmlops._cli import main
from dmlops._operator_file import resources, timing
from dmlops._operator_file.other_operators import OTHER_OPERATORS
from dmlops._operator_file.parse import read_model
from dmlops._operator_file.progress import Progress


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
    runner.refused('{"a": 1,\n /* open', "the comment of line 2 is not closed")
    runner.refused("{} /*/", "the comment of line 1 is not closed")


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
    # The number of elements is that of the tensor that was written last.
    values = {"initialValues": [0] * 5, "initialValuesDataType": "FLOAT32"}
    assert runner(put(file, "resources/y", values))[0] == 0


# Buffers have no data type


def test_a_buffer_is_bound_as_another_type(runner: Runner) -> None:
    bits = np.array([1, -2, 3.5], np.float32).view(np.uint32).tolist()
    file = copy_file("FLOAT32", [3], bits)
    file = put(file, "resources/x/initialValuesDataType", "UINT32")
    assert runner.arrays(file)["y"].tolist() == [1, -2, 3.5]
    for data_type, values, expected in [
        ("FLOAT64", [0, 2], [0, 0, 0, 2]),  # the high half of 2.0 is that of 2.0f
        ("UINT8", [0, 0, 128, 63] * 4, [1] * 4),
        ("INT64", [0x3F80000040000000] * 2, [2, 1] * 2),
    ]:
        file = put(
            copy_file("FLOAT32", [4], values), "resources/x/initialValuesDataType", data_type
        )
        assert runner.arrays(file)["y"].tolist() == expected


def test_an_output_is_bound_as_another_type(runner: Runner) -> None:
    file = copy_file("FLOAT32", [3], [1, -2, 3.5])
    described = {"DataType": "INT32", "Sizes": [3]}
    again = put(file, "dispatchables/copy/desc/InputTensor", described)
    again = put(again, "dispatchables/copy/desc/OutputTensor", described)
    again = put(again, "dispatchables/copy/desc/Min", 0)["dispatchables"]["copy"]
    file = put(put(file, "dispatchables/again", again), "resources/z", {})
    file = followed(file, {
        "type": "dispatch", "dispatchable": "again",
        "bindings": {"InputTensor": "y", "OutputTensor": "z"},
    })  # fmt: skip
    results = runner.arrays(file)
    assert results["z"].tolist() == np.array([1, 0, 3.5], np.float32).view(np.int32).tolist()
    assert results["y"].dtype == np.float32


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_sizes_are_multiples_of_4_bytes(count: int, runner: Runner) -> None:
    """Check all pairs of a resource's data type and the tensor's."""
    values = {"valueCount": count, "value": 255}
    file = copy_file("INT8", [count], values)
    file = put(file, "resources/x/initialValuesDataType", "UINT8")
    file["commands"][0]["bindings"]["InputTensor"] = {
        "name": "x",
        "elementCount": (count + 3) // 4 * 4,
    }
    assert runner.arrays(file)["y"].tolist() == [-1] * count


def test_a_npy_file_has_its_own_type(runner: Runner) -> None:
    np.save(runner.folder / "x.npy", np.array([1, -2, 3.5]))
    file = copy_file("FLOAT32", [3], {"sourcePath": "x.npy"})
    file = put(file, "resources/x/initialValuesDataType", ...)
    runner.refused(file, "x.npy holds FLOAT64, but the tensor is of FLOAT32", "elementSizeInBytes")
    file["commands"][0]["bindings"]["InputTensor"] = {"name": "x", "elementSizeInBytes": 4}
    expected = np.array([1, -2], np.float64).view(np.float32)[:3].tolist()
    assert runner.arrays(file)["y"].tolist() == expected


def test_lists_of_several_types(runner: Runner) -> None:
    values = [
        {"name": "one", "type": "FLOAT32", "value": 1},
        {"type": "DML_TENSOR_DATA_TYPE_FLOAT16", "value": 0},
        {"type": "UINT16", "value": 0x4000},
        {"type": "FLOAT32", "value": "inf"},
    ]
    file = copy_file("FLOAT32", [3], values, sizeInBytes=256)
    file = put(file, "resources/x/initialValuesDataType", "UNKNOWN")
    assert runner.arrays(file)["y"].tolist() == [1, 2, np.inf]
    file = put(file, "resources/x/initialValuesDataType", ...)
    assert runner.arrays(file)["y"].tolist() == [1, 2, np.inf]
    for place, value, part in [
        ("initialValuesDataType", "FLOAT32", "write UNKNOWN"),
        ("initialValues/0/type", "FLOAT31", "initialValues[0].type: unknown name 'FLOAT31'"),
        ("initialValues/0/type", "UNKNOWN", "must be one of FLOAT32"),
        ("initialValues/2/value", 2**16, "65536 does not fit UINT16 (0 to 65535)"),
        ("initialValues/1/value", ..., "initialValues[1]: the field 'value' is missing"),
        ("initialValues/1", 5, "initialValues[1]: an object is needed, not 5"),
    ]:
        runner.refused(put(file, f"resources/x/{place}", value), part)


def test_fields_of_bindings_for_shaders_and_models(runner: Runner) -> None:
    file = clip_file()
    file["commands"][0]["bindings"]["InputTensor"] = {
        "name": "x", "format": "R32_FLOAT", "shape": [3], "counter": "x", "elementStride": 4,
    }  # fmt: skip
    assert runner.arrays(file)["x"].tolist() == [0, 2, 6]


# Operators that dmlops lacks


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("hlsl", "compute shaders (HLSL) are not supported"),
        ("onnx", "dmlops.onnx runs them"),
        ("dmlSerializedGraph", "serialized graphs are not supported"),
        ("DML_OPERATOR_GEMM", "lacks DirectML's operator GEMM; it has ELEMENT_WISE_CLIP,"),
        ("ELEMENT_WISE_ADD1", "lacks DirectML's operator ELEMENT_WISE_ADD1"),
    ],
)
def test_what_is_not_supported_is_named_first(kind: str, part: str, runner: Runner) -> None:
    """The operator is refused before its fields are read."""
    shader = {"type": kind, "sourcePath": "shader.hlsl", "compiler": "dxc", "compilerArgs": []}
    file = put(clip_file(), "dispatchables/clip", shader)
    runner.refused(file, "dispatchables.clip", part, command="validate")


def test_the_names_of_directml() -> None:
    """Check all operators of feature level 6.4, and the second name of SCATTER."""
    ours = set(dmlops.OperatorType.__members__)
    assert not ours & OTHER_OPERATORS
    assert len(ours | OTHER_OPERATORS) == 177 + 1


@pytest.mark.parametrize(
    ("place", "name", "part"),
    [
        ("dispatchables/clip/type", "ELEMENT_WISE_CLIP2", "the nearest is 'ELEMENT_WISE_CLIP'"),
        ("dispatchables/clip/type", "SOFTPLUS", "known: 'ELEMENT_WISE_CLIP', 'ACTIVATION_ELU', "),
        ("dispatchables/clip/desc/Low", 0, "known: 'InputTensor', 'OutputTensor', 'Min', 'Max', "),
        ("dispatchables/clip/desc/inputtensors", 0, "the nearest is 'InputTensor'"),
        ("commands/0/type", "run", "known: 'dispatch', 'print', 'writeFile'"),
    ],
)
def test_only_what_is_near_is_the_nearest(
    place: str, name: object, part: str, runner: Runner
) -> None:
    runner.refused(put(clip_file(), place, name), part)


# Targets are checked before any command runs


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"targetPath": "none/y.npy"}, "No such file"),
        ({"targetPath": "y.png"}, "must end in one of .npy .bin .dat"),
        ({"targetPath": "folder.npy"}, "not a regular file"),
        ({"targetPath": "file/y.npy"}, "file is not a folder"),
        pytest.param(
            {"targetPath": 300 * "y" + ".npy"},
            "File name too long",
            marks=pytest.mark.skipif(os.name == "nt", reason="another message"),
        ),
        ({"dimensions": [4]}, "y.npy: the dimensions are [4], but there are 3 elements"),
    ],
)
def test_wrong_targets_are_found_first(
    change: dict[str, object], part: str, runner: Runner
) -> None:
    (runner.folder / "folder.npy").mkdir()
    (runner.folder / "file").touch()
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy"}
    show = {"type": "print", "resource": "y"}
    other = {**write, "targetPath": "other.npy"}
    file = followed(copy_file("FLOAT32", [3], [1, 2, 3]), show, other, {**write, **change})
    runner.refused(file, part)  # with nothing on standard output
    assert not (runner.folder / "other.npy").exists()


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="no permissions")
def test_a_folder_without_permission_is_found_first(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy"}
    file = followed(copy_file("FLOAT32", [3], [1, 2, 3]), write)
    runner.refused(file, "y.npy: the folder is not writable")


# Times


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["-i", "5"], "5 iterations"),
        (["--dispatch_iterations", "1"], "1 iteration"),
        (["--iterations=1000"], "1000 iterations"),
    ],
)
def test_iterations(options: list[str], count: str, runner: Runner) -> None:
    status, out, err = runner(clip_file(), "run", *options)
    assert (status, err) == (0, "")
    assert re.match(rf"clip: {count}, \d+\.\d{{4}} ms minimum, \d+\.\d{{4}} ms median\nx: ", out)


@pytest.mark.parametrize("options", [["-t", "0.05"], ["--milliseconds_to_run", "50"]])
def test_seconds(options: list[str], runner: Runner) -> None:
    begin = time.monotonic()
    status, out, _ = runner(clip_file(), "run", *options)
    assert status == 0
    assert time.monotonic() - begin >= 0.05
    found = re.match(r"clip: (\d+) iterations, ([\d.]+) ms minimum, ([\d.]+) ms median\n", out)
    assert found is not None
    count, minimum, median = map(float, found.groups())
    assert 2 <= count <= 10**6
    assert minimum <= median


def test_seconds_end_with_so_many_iterations(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "MAX_ITERATIONS", 7)
    assert "clip: 7 iterations" in runner(clip_file(), "run", "-t", "1000")[1]


def test_the_first_iteration_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0, 0, 100, 100, 103, 103, 104, 104, 106])  # the start, and each iteration's
    monkeypatch.setattr(timing, "perf_counter", lambda: next(seconds))
    times = timing.repeat(lambda: None, timing.Repetition(iterations=4), Progress("clip"))
    assert times == "4 iterations, 1000.0000 ms minimum, 2000.0000 ms median"


def test_side_effects_of_iterations_stay(runner: Runner) -> None:
    """As in DxDispatch, an operator in place computes on the previous iteration's result."""
    file = put(clip_file(Max="inf"), "dispatchables/clip/desc/ScaleBias", {"Scale": 2, "Bias": 0})
    out = runner(file, "run", "-i", "3")[1]
    assert printed(out)["x"].tolist() == [0, 16, 56]


@pytest.mark.parametrize(
    "options",
    [["-i", "0"], ["-i", "1.5"], ["-i", "9999999"], ["-t", "0"], ["-t", "nan"], ["-t", "x"],
     ["-t", "-1"], ["-i", "1", "-t", "1"], ["--milliseconds_to_run", "inf"],
     ["--milliseconds_to_run", "x"]],
)  # fmt: skip
def test_wrong_repetitions(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["run", "x.json", *options])
    message = capsys.readouterr().err
    assert re.search(r"argument -.*(is not a (positive )?number|not allowed with)", message)
