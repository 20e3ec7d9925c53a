"""The command line: parsing, ``info``, and how errors reach the user."""

import json
import os
import re
import sys
from importlib import import_module

import pytest
from subprocesses import python

import dmlops
from dmlops import _info
from dmlops._cli import COMMANDS, CommandError, main
from dmlops._runtime import runs_as_command


def test_without_command_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    output = capsys.readouterr().out
    assert output.startswith("usage: dmlops")
    assert all(name in output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_its_module_and_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module = import_module(f"dmlops._{name}")
    assert callable(module.run)
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert f"usage: dmlops {name}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["information"], ["info", "--yaml"], ["--json"], ["info", "x"]])
def test_wrong_command_line_is_a_usage_error(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: dmlops" in captured.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"dmlops {dmlops.__version__}\n"


def test_only_the_named_command_is_imported() -> None:
    code = (
        "import sys; from dmlops._cli import main; main(['info']);"
        "sys.exit('dmlops._demo' in sys.modules or 'matplotlib' in sys.modules)"
    )
    assert python("-c", code).returncode == 0


def test_info_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DMLOPS_NUM_THREADS", "1")
    monkeypatch.delenv("DMLOPS_ISA", raising=False)
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {name: facts[name] for name in dmlops.build_info()} == dmlops.build_info()
    assert facts["threads"] == dmlops.get_num_threads()
    assert facts["environment"] == ["DMLOPS_NUM_THREADS=1"]
    assert facts["logical_cpus"] == os.cpu_count()
    assert facts["cpu"] == _info.cpu_model() != ""


@pytest.mark.parametrize(
    ("threshold", "number", "words"),
    [("4096", 4096, "4096 bytes"), (str(2**63 - 1), None, "never")],
)
def test_info_has_thresholds_as_numbers(threshold: str, number: int | None, words: str) -> None:
    run = python("-m", "dmlops", "info", "--json", DMLOPS_NON_TEMPORAL_THRESHOLD=threshold)
    assert json.loads(run.stdout)["non_temporal_threshold"] == number
    run = python("-m", "dmlops", "info", DMLOPS_NON_TEMPORAL_THRESHOLD=threshold)
    assert re.search(rf"^non temporal threshold: +{words}$", run.stdout, re.MULTILINE)


def test_info_text_says_the_same_in_one_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in _info.ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    assert main(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    text = dict(line.split(":", 1) for line in lines)
    columns = {len(label) + len(value) - len(value.lstrip()) for label, value in text.items()}
    assert len(columns) == 1
    values = {label: value.strip() for label, value in text.items()}
    for name, value in dmlops.build_info().items():
        text_value = ", ".join(value) if isinstance(value, list) else str(value)
        assert values[name.replace("_", " ")] == text_value
    assert values["cpu"] == _info.cpu_model()
    assert values["environment"] == "not set"


def test_cpu_model_without_a_name_is_the_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "another")
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert _info.cpu_model() == "riscv64"


def test_command_error_is_one_line_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise CommandError("out of paper")

    monkeypatch.setattr(_info, "collect", fail)
    assert main(["info"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "dmlops: error: out of paper\n"


def test_module_runs_as_a_program() -> None:
    result = python("-m", "dmlops", "info", "--json")
    assert result.returncode == 0
    assert result.stderr == ""
    assert json.loads(result.stdout)["version"] == dmlops.__version__


@pytest.mark.parametrize(
    ("program", "original", "expected"),
    [
        ("-m", ["python", "-m", "dmlops", "info"], True),
        ("-m", ["python", "-mdmlops", "info"], True),
        ("-m", ["python", "-m", "another"], False),
        ("bin/dmlops", ["python", "bin/dmlops"], True),
        ("dmlops.exe", ["dmlops.exe"], True),
        ("script.py", ["python", "script.py", "dmlops"], False),
        ("", ["python"], False),
    ],
)
def test_when_the_command_runs(
    program: str, original: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid environment variable is an error of the import unless the command runs."""
    monkeypatch.setattr(sys, "argv", [program])
    monkeypatch.setattr(sys, "orig_argv", original)
    assert runs_as_command() == expected
    monkeypatch.delattr(sys, "argv")
    assert not runs_as_command()
