"""Hostile operator files: deep nesting, numbers out of range, links and pipes as paths."""

from __future__ import annotations

import io
import json
import os
import secrets
import stat
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from operator_files import Runner, clip_file, copy_file, followed, put
from subprocesses import python

from dmlops._operator_file import resources

WRITE = {"type": "writeFile", "resource": "y", "targetPath": "y.npy"}


# Every failure is one line


def _nested(depth: int, opening: str, closing: str, inside: str = "0") -> str:
    return opening * depth + inside + closing * depth


DEPTHS = (50, 200, 330, 500, 700, 900, 980, 985, 990, 995, 1000, 2000, 100_000)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("command", ["run", "validate"])
def test_deep_nesting(depth: int, command: str, runner: Runner) -> None:
    fused = _nested(depth, '{"Type": "ACTIVATION_RELU", "Desc": {"InputTensor": ', "}}")
    for place, value in [
        ("resources/x/initialValues", _nested(depth, "[", "]")),
        ("resources/x/initialValuesDataType", _nested(depth, "[", "]")),
        ("dispatchables/clip/desc/Max", _nested(depth, '{"a": ', "}")),
        ("dispatchables/clip/desc/InputTensor", _nested(depth, '{"Desc": ', "}")),
        ("dispatchables/clip/desc/InputTensor", fused),
        ("commands/0/bindings/InputTensor", _nested(depth, "[", "]", '"x"')),
    ]:
        text = json.dumps(put(clip_file(), place, "HERE")).replace('"HERE"', value)
        runner.refused(text, command=command)


def test_deeply_nested_fused_activations(runner: Runner) -> None:
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 1]}
    names = ("Input", "Mean", "Variance", "Scale", "Bias", "Output")
    desc = {f"{name}Tensor": tensor for name in names} | {"Spatial": 1, "Epsilon": 0}
    for depth in (2, 10, 100, 200, 300, 400, 490):
        outer = json.dumps(desc)[:-1] + ', "FusedActivation": '
        fused = '{"Type": "BATCH_NORMALIZATION", "Desc": ' + outer
        inner = outer + fused * depth + '{"Type": "ACTIVATION_RELU"}' + "}}" * depth + "}"
        it = '{"type": "BATCH_NORMALIZATION", "desc": ' + inner + "}"
        status, out, err = runner('{"dispatchables": {"it": ' + it + "}}", "validate")
        assert status in (1, 2)
        assert (out + err).count("\n") == 1


NUMBERS = (
    *(
        10**400,
        -(10**400),
        2**63 - 1,
        2**63,
        2**64 - 1,
        2**64,
        2**127,
        10**40,
        -1,
        -(2**63),
        10**4000,
    ),
    *(1e308, float("inf"), float("nan"), -0.0, 1.5),
)
_DESC = "dispatchables/copy/desc/"
_BINDING = "commands/0/bindings/"


def _with_options() -> dict[str, Any]:
    """Return a file with a number in every field that takes one."""
    file = copy_file("FLOAT32", [3], {"valueCount": 3, "valueStart": 0, "valueDelta": 1})
    file["resources"]["x"] |= {"initialValuesOffsetInBytes": 0, "sizeInBytes": 16}
    part = {"name": "x", "elementOffset": 0, "elementCount": 4, "elementSizeInBytes": 4}
    file["commands"][0]["bindings"] = {"InputTensor": part, "OutputTensor": {**part, "name": "y"}}
    file["dispatchables"]["copy"]["desc"]["InputTensor"] = {
        "DataType": "FLOAT32", "Sizes": [3], "Strides": [1], "TotalTensorSizeInBytes": 12,
        "GuaranteedBaseOffsetAlignment": 16, "DimensionCount": 1,
    }  # fmt: skip
    file["dispatchables"]["copy"]["desc"]["ScaleBias"] = {"Scale": 1, "Bias": 0}
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy", "dimensions": [4]}
    return followed(file, write)


def _places(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [p for key, inner in value.items() for p in _places(inner, f"{path}{key}/")]
    if isinstance(value, list):
        return [p for i, inner in enumerate(value) for p in _places(inner, f"{path}{i}/")]
    return [path[:-1]] if isinstance(value, (int, float)) else []


@pytest.mark.parametrize("place", _places(_with_options()))
def test_numbers_out_of_range(place: str, runner: Runner) -> None:
    for number in NUMBERS:
        for command in ("run", "validate"):
            status, _, err = runner(put(_with_options(), place, number), command)
            assert status in (0, 1, 2)
            assert err.count("\n") <= 1
            assert "Traceback" not in err


def test_numbers_name_their_place(runner: Runner) -> None:
    for place, number, part in [
        ("resources/x/initialValues/valueCount", 10**400, "x.initialValues.valueCount: is 1000"),
        (
            _BINDING + "InputTensor/elementOffset",
            2**64,
            "InputTensor.elementOffset: is 18446744073",
        ),
        (
            _BINDING + "InputTensor/elementCount",
            2**70,
            "InputTensor.elementCount: is 1180591620717",
        ),
        (_DESC + "ScaleBias/Scale", 10**400, "ScaleBias.Scale: 1000"),
    ]:
        runner.refused(put(_with_options(), place, number), part)


def test_offsets_beyond_64_bits_together(runner: Runner) -> None:
    for tensor in ("InputTensor", "OutputTensor"):
        file = put(_with_options(), f"{_BINDING}{tensor}/elementOffset", 2**62)
        status, _, err = runner(put(file, f"{_BINDING}{tensor}/elementSizeInBytes", 2**62))
        assert status in (1, 2)
        assert err.count("\n") == 1


@pytest.mark.parametrize("place", ["resources/x/initialValues/sourcePath", "commands/1/targetPath"])
@pytest.mark.parametrize(
    "path", ["x" * 5000, "x" * 5000 + ".npy", "\0.npy", "\ud800.npy", "a/" * 3000 + ".bin"]
)
def test_paths_that_cannot_be(place: str, path: str, runner: Runner) -> None:
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy"}
    file = followed(copy_file("FLOAT32", [3], {"sourcePath": "x.npy"}), write)
    np.save(runner.folder / "x.npy", np.ones(3, np.float32))
    runner.refused(put(file, place, path))


def test_names_with_control_characters_are_escaped(runner: Runner) -> None:
    name = "a\nb\x1b[2J\ud800"
    runner.refused(put(clip_file(), f"resources/{name}", 1), "resources.a\\nb\\x1b[2J\\ud800:")
    file = clip_file()
    file["dispatchables"][name] = file["dispatchables"].pop("clip")
    file["commands"][0]["dispatchable"] = name
    status, out, _ = runner(file, "validate")
    assert status == 0
    assert out.startswith("a\\nb\\x1b[2J\\ud800: accepted")


# .npy files


def _npy(header: str, version: tuple[int, int] = (1, 0)) -> bytes:
    size = struct.pack("<H" if version == (1, 0) else "<I", len(header))
    return b"\x93NUMPY" + bytes(version) + size + header.encode() + bytes(64)


def _archive() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("x.npy", _npy("{}"))
    return data.getvalue()


def _header(descr: str = "'<f4'", order: str = "False", shape: str = "(3,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"


NPY_FILES = {
    "an archive": _archive(),
    "an archive without end": b"PK\x03\x04",
    "a pickle": b"\x80\x04]\x94.",
    "nothing": b"",
    "an unclosed bracket": _npy("("),
    "an unclosed string": _npy('"""'),
    "nested brackets": _npy("(" * 5000),
    "nested minus signs": _npy("-" * 9000 + "1"),
    "nested brackets of 2.0": _npy("[" * 9000, (2, 0)),
    "a number": _npy("1"),
    "a null byte": _npy("\0"),
    "unhashable keys": _npy("{[]: 0}"),
    "a long header": _npy(_header() + " " * 60_000),
    "a header longer than the file": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}",
    "version 3": _npy(_header(), (3, 0)),
    "version 9": _npy(_header(), (9, 9)),
    "34 dimensions": _npy(_header(shape=str((1,) * 33 + (3,)))),
    "65 dimensions": _npy(_header(shape=str((1,) * 64 + (3,)))),
    "a shape of 2^70": _npy(_header(shape=f"({2**70},)")),
    "a shape of 10^400": _npy(_header(shape=f"({10**400},)")),
    "a shape that wraps": _npy(_header(shape=f"({2**62}, {2**62})")),
    "a negative shape": _npy(_header(shape="(-3,)")),
    "a shape of strings": _npy(_header(shape="('3',)")),
    "a shape beyond the file": _npy(_header(shape=f"({2**40},)")),
    "a wrong order": _npy(_header(order="'F'")),
    "objects": _npy(_header("'|O'", shape="(8,)")),
    "a structure": _npy(_header("[('a', '<f4'), ('b', '|O')]")),
    "a recursive structure": _npy(_header("[('a'," * 50 + "'<f4'" + ")]" * 50)),
    "no type": _npy(_header("'<f4\\0'")),
    "a type of 2^40 bytes": _npy(_header(f"'|V{2**40}'")),
    "subarrays": _npy(_header("('<f4', (2,))")),
    "dates": _npy(_header("'<M8[s]'")),
}


@pytest.mark.parametrize("name", NPY_FILES)
def test_npy_files_that_are_none(name: str, runner: Runner) -> None:
    (runner.folder / "x.npy").write_bytes(NPY_FILES[name])
    runner.refused(copy_file("FLOAT32", [3], {"sourcePath": "x.npy"}), "resources.x:", "x.npy")


def test_npy_headers_are_read_as_numpy_writes_them(runner: Runner) -> None:
    values = np.array([1, 2, 3], np.float32)
    for version in ((1, 0), (2, 0)):
        with (runner.folder / "x.npy").open("wb") as file:
            np.lib.format.write_array(file, values, version=version)
        result = runner.arrays(copy_file("FLOAT32", [3], {"sourcePath": "x.npy"}))
        assert result["y"].tolist() == [1, 2, 3]


def test_values_have_8_dimensions_or_fewer(runner: Runner) -> None:
    for dimensions in (9, 33, 65):
        values = json.loads("[" * dimensions + "1, 2, 3" + "]" * dimensions)
        runner.refused(copy_file("FLOAT32", [3], values), f"has {dimensions} dimensions", "most 8")
        write = {**WRITE, "dimensions": [1] * (dimensions - 1) + [3]}
        file = followed(copy_file("FLOAT32", [3], [1, 2, 3]), write)
        runner.refused(file, f"has {dimensions} dimensions", "at most 8")


# Links, pipes and devices as sources and targets

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")


@needs_links
@pytest.mark.parametrize("huge", [1, 2**28])
def test_no_link_is_followed(huge: int, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "HUGE", huge)
    precious = runner.folder / "precious"
    precious.write_text("mine")
    (runner.folder / "y.npy.part").symlink_to(precious)
    (runner.folder / "y.npy").symlink_to(precious)
    assert runner(followed(copy_file("FLOAT32", [3], [1, 2, 3]), WRITE))[0] == 0
    assert precious.read_text() == "mine"
    assert (runner.folder / "y.npy.part").is_symlink()
    assert not (runner.folder / "y.npy").is_symlink()
    assert np.load(runner.folder / "y.npy").tolist() == [1, 2, 3]


@pytest.mark.parametrize("huge", [1, 2**28])
def test_a_users_own_part_file_stays(
    huge: int, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "HUGE", huge)
    own = runner.folder / "y.npy.part"
    own.write_text("mine")
    file = followed(copy_file("FLOAT32", [3], [1, 2, 3]), WRITE)
    assert runner(file)[0] == 0
    runner.refused(put(file, "resources/x/initialValues", [1, 2]), "8 bytes", status=1)
    assert own.read_text() == "mine"
    assert {path.name for path in runner.folder.iterdir()} == {
        "operator.json", "y.npy", "y.npy.part",
    }  # fmt: skip


@needs_links
def test_the_temporary_name_is_random_and_exclusive(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: "0")
    precious = runner.folder / "precious"
    precious.write_text("mine")
    (runner.folder / ".0.part").symlink_to(precious)
    runner.refused(followed(copy_file("FLOAT32", [3], [1, 2, 3]), WRITE), "File exists")
    assert precious.read_text() == "mine"
    assert (runner.folder / ".0.part").is_symlink()


@pytest.mark.skipif(not hasattr(os, "umask"), reason="no permissions")
def test_a_written_file_has_the_usual_permissions(runner: Runner) -> None:
    assert runner(followed(copy_file("FLOAT32", [3], [1, 2, 3]), WRITE))[0] == 0
    other = runner.folder / "other"
    other.touch()
    path = runner.folder / "y.npy"
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_the_longest_names_can_be_written(runner: Runner) -> None:
    name = "y" * 251 + ".npy"
    file = followed(copy_file("FLOAT32", [3], [1, 2, 3]), {**WRITE, "targetPath": name})
    assert runner(file)[0] == 0
    assert np.load(runner.folder / name).tolist() == [1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize("name", ["x.npy", "x.bin"])
def test_sources_and_targets_are_regular_files(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    path = tmp_path / "operator.json"
    source = copy_file("FLOAT32", [3], {"sourcePath": name})
    target = followed(copy_file("FLOAT32", [3], [1, 2, 3]), {**WRITE, "targetPath": name})
    for file in (source, target):
        path.write_text(json.dumps(file))
        run = python("-m", "dmlops", "run", str(path), timeout=60)  # a pipe blocks its reader
        assert (run.returncode, run.stdout) == (2, "")
        assert "not a regular file" in run.stderr
    assert stat.S_ISFIFO((tmp_path / name).stat().st_mode)


@needs_links
@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero")
def test_devices_are_no_sources(runner: Runner) -> None:
    for name in ("x.npy", "x.bin"):
        (runner.folder / name).symlink_to("/dev/zero")
        file = copy_file("FLOAT32", [3], {"sourcePath": name})
        runner.refused(file, "not a regular file")
    (runner.folder / "folder.npy").mkdir()
    runner.refused(copy_file("FLOAT32", [3], {"sourcePath": "folder.npy"}), "directory")
