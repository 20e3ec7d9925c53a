"""The command line's output and exit status: full disks, closed pipes, encodings, late mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from operator_files import EXAMPLES, clip_file, copy_file, followed, put
from subprocesses import python

from dmlops import _cli, _info
from dmlops._cli import main

CLIP = str(EXAMPLES / "clip.json")
COMMANDS = [["info"], ["info", "--json"], ["run", CLIP], ["validate", CLIP], ["--help"],
            ["--version"], ["run", "--help"], []]  # fmt: skip
posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither")


def command(words: list[str], redirection: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell that redirects its output."""
    line = [sys.executable, "-m", "dmlops", *words]
    script = ["sh", "-c", f'exec "$@" {redirection}', "sh", *line]
    return subprocess.run(script, capture_output=True, text=True, check=False, timeout=120)


@posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line(
    words: list[str], unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    run = command(words, ">/dev/full")
    assert run.returncode == 2
    assert run.stderr == "dmlops: error: standard output: No space left on device\n"


@posix
@pytest.mark.parametrize("words", COMMANDS[:4])
def test_a_closed_output_is_one_line(words: list[str]) -> None:
    run = command(words, ">&-")
    assert (run.returncode, run.stderr) == (2, "dmlops: error: standard output is closed\n")


@posix
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_closed_errors(monkeypatch: pytest.MonkeyPatch, unbuffered: str) -> None:
    """The message is dropped, not written to standard output."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    run = command(["run", "none.json"], "2>&-")
    assert (run.returncode, run.stdout) == (2, "")
    if Path("/dev/full").exists():
        run = command(["run", "none.json"], "2>/dev/full")
        assert (run.returncode, run.stdout) == (2, "")


@posix
@pytest.mark.parametrize("long", [False, True])
def test_a_closed_pipe_is_silent(long: bool, tmp_path: Path) -> None:
    """A closed pipe is silent at the end of the output, and in the middle with a full buffer."""
    values = {"valueCount": 100_000, "value": 0.5}
    show = {"type": "print", "resource": "y", "verbose": long}
    path = tmp_path / "file.json"
    path.write_text(json.dumps(followed(copy_file("FLOAT32", [100_000], values), show)))
    reader, writer = os.pipe()
    os.close(reader)
    try:
        run = subprocess.run(
            [sys.executable, "-m", "dmlops", "run", str(path)],
            stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert (run.returncode, run.stderr) == (141, "")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_signs_beyond_the_encoding_are_escaped(encoding: str, tmp_path: Path) -> None:
    file = json.dumps(clip_file()).replace('"x"', '"größe → λ"')
    path = tmp_path / "file.json"
    path.write_text(file, encoding="utf-8")
    line = [sys.executable, "-m", "dmlops", "run", str(path)]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    run = subprocess.run(line, env=environment, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    name = "größe → λ".encode(encoding, "backslashreplace")
    assert run.stdout.splitlines()[0] == name + b": FLOAT32 [3]"
    path.write_text(json.dumps(put(json.loads(file), "resources/größe → λ", 1)))
    run = subprocess.run(line, env=environment, capture_output=True, check=False)
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr.startswith(b"dmlops: error: resources." + name)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (_cli.CommandError("an example"), 2),
        (_cli.RefusedError("an example"), 1),
        (MemoryError("an example"), 2),
        (OSError(5, "an example"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_status_of_errors(
    error: BaseException,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> Any:
        raise error

    monkeypatch.setattr(_info, "collect", fail)
    monkeypatch.setattr(_cli, "discard", lambda _: None)
    assert main(["info"]) == status
    assert capsys.readouterr().err.count("\n") == (status != 130)


@pytest.mark.parametrize("moment", ["build_parser", "check_environment"])
def test_status_of_an_interrupt_before_the_command(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(_cli, moment, interrupt)
    monkeypatch.setattr(_cli, "discard", lambda _: None)
    assert main(["info"]) == 130


@pytest.mark.skipif(os.name != "posix", reason="paths are text")
def test_a_folder_is_printed_as_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = b"/gr\xc3\xbcn/\xff"
    monkeypatch.setitem(_cli.FOLDERS, "--include-dir", (lambda: os.fsdecode(path), "the headers"))
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(BytesIO(), "ascii"))
    with pytest.raises(SystemExit, match="0"):
        main(["--include-dir"])
    assert isinstance(sys.stdout, TextIOWrapper)
    assert isinstance(sys.stdout.buffer, BytesIO)
    assert sys.stdout.buffer.getvalue() == path + b"\n"


def test_status_of_a_package_without_its_library(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> str:
        raise FileNotFoundError("not installed")

    monkeypatch.setitem(_cli.FOLDERS, "--include-dir", (fail, "the C++ headers"))
    with pytest.raises(SystemExit, match="2"):
        main(["--include-dir"])
    assert "not installed" in capsys.readouterr().err


# Errors are found before the work


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["bench", "--json", "{folder}"], "is a folder"),
        (["bench", "--json", "{folder}/none/a.json"], "does not exist"),
        pytest.param(
            ["bench", "--json", "{folder}/" + 300 * "a"],
            "cannot be written: File name too long",
            marks=posix,
        ),
        (["bench", "--json", "{folder}/protected.json"], "permission denied"),
        (["bench", "--picture", "{folder}/a.docx"], "does not end in one of .png"),
        (["bench", "--only", "clip/f32/c1", "--only", "nothing"], "contains 'nothing'"),
        (["bench", "--only", "clip/f32/c1", "--peers", "numpy,jax"], "--peers names jax ("),
        (["accuracy", "--json", "{folder}/protected.json"], "permission denied"),
        (["accuracy", "--page", "{folder}/none.md"], "the page cannot be read"),
        (["accuracy", "--only", "tanh/float32", "--peers", "torch"], "--peers names torch ("),
    ],
)
def test_mistakes_are_found_before_the_work(words: list[str], part: str, tmp_path: Path) -> None:
    """Runs in a separate process, since a comparison would pin it to one processor."""
    (tmp_path / "protected.json").touch()
    code = (
        "import os, sys; sys.modules['torch'] = sys.modules['jax'] = None\n"
        "access = os.access\n"
        "os.access = lambda path, mode: 'protected' not in str(path) and access(path, mode)\n"
        "from dmlops._cli import main; sys.exit(main(sys.argv[1:]))"
    )
    run = python("-c", code, *(word.format(folder=tmp_path) for word in words))
    assert (run.returncode, run.stdout) == (2, "")
    assert part in run.stderr
    assert "[1/" not in run.stderr.replace("[  1/", "[1/")
