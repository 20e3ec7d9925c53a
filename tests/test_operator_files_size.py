"""Operator files of many megabytes: the time grows linearly with the size, up to a limit."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from operator_files import Runner, clip_file, copy_file, put
from subprocesses import python

from dmlops._cli import main
from dmlops._operator_file import read

# A quadratic search takes hours for 1 MB.


def _filled(part: str, size: int) -> str:
    return part * (size // len(part))


def _values(part: str, size: int, data_type: str = "FLOAT32") -> str:
    file = json.dumps(copy_file(data_type, [3], 0))
    return file.replace('"initialValues": 0', f'"initialValues": [{_filled(part, size)} 1]')


def _names(size: int, *, last: int) -> str:
    names = [f'"{i:07}":0' for i in range(size // 12)]
    return "{" + ",".join((*names, f'"{last:07}":0')) + "}"


LONG: dict[str, Callable[[int], str]] = {
    "an unclosed string of escapes": lambda size: '{"' + _filled('\\"', size),
    "unclosed strings of escapes": lambda size: _filled('\\"', size),
    "a string of escapes and a comment": lambda size: '{"' + _filled("\\\\", size) + '":0 // \n}',
    "names": lambda size: _names(size, last=-1),
    "names with a duplicate": lambda size: _names(size, last=size // 12 - 1),
    "one name": lambda size: json.dumps({"x" * size: 0}),
    "an unknown resource of a long name": lambda size: json.dumps(
        put(
            put(clip_file(), "commands/0/bindings/InputTensor", "x" * (size // 2)),
            f"resources/{'x' * (size // 2 - 1)}",
            {},
        )
    ),
    "many resources and an unknown one": lambda size: json.dumps(
        put(clip_file(), "commands/0/bindings/InputTensor", "other")
    ).replace('"resources": {', '"resources": {' + ",".join(
        f'"{i:012}":{{}}' for i in range(size // 18)) + ","
    ),
    "comments": lambda size: _filled("/**/", size),
    "lines of comments": lambda size: _filled("//\n", size),
    "an unclosed comment": lambda size: _filled("/*", size),
    "commas": lambda size: _filled(",  ", size),
    "a comma and spaces": lambda size: "," + " " * size,
    "brackets": lambda size: "[" * size,
    "nested arrays": lambda size: "[" + _filled("[" * 900 + "]" * 900 + ",", size) + "]",
    "digits": lambda size: _filled("9", size),
    "digits of a fraction": lambda size: "0." + _filled("9", size),
    "sizes": lambda size: json.dumps(clip_file()).replace("[3]", f"[{_filled('1,', size)} 1]"),
    "initial values": lambda size: _values("1,", size),
    "initial values of integers": lambda size: _values("1,", size, "INT8"),
    "initial values in strings": lambda size: _values('"inf",', size),
    "initial values in arrays": lambda size: _values("[1],", size),
    "commands": lambda size: json.dumps(clip_file()).replace(
        '"commands": [', '"commands": [' + _filled('{"type":"print","resource":"x"},', size)
    ),
}  # fmt: skip


def _read(kind: str, size: int, folder: Path) -> None:
    path = folder / "operator.json"
    path.write_text(LONG[kind](size))
    command = "run" if kind.startswith("initial") else "validate"
    run = python("-m", "dmlops", command, str(path), timeout=30 + 5e-6 * size)
    assert run.returncode in (0, 1, 2), run.stderr
    assert (run.stdout + run.stderr).count("\n") <= 2
    assert len(run.stdout + run.stderr) < 1200


@pytest.mark.parametrize(
    "megabytes",
    [1, pytest.param(10, marks=pytest.mark.large), pytest.param(100, marks=pytest.mark.large)],
)
@pytest.mark.parametrize("kind", LONG)
def test_long_files(kind: str, megabytes: int, tmp_path: Path) -> None:
    _read(kind, megabytes * 10**6, tmp_path)


def test_files_beyond_the_limit_are_refused(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(read, "LIMIT", 2**20)
    text = json.dumps(clip_file())
    assert runner(text + " " * (2**20 - len(text)))[0] == 0
    long = text + " " * (2**20 - len(text) + 1)
    runner.refused(long, "operator.json is larger than", "1 MiB", ".npy")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(long.encode())))
    assert main(["run", "-"]) == 2
    assert "standard input is larger than" in capsys.readouterr().err
    if Path("/dev/zero").exists():
        assert main(["run", "/dev/zero"]) == 2
        assert "/dev/zero is larger than" in capsys.readouterr().err
