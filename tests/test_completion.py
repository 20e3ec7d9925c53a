"""Shells complete the command line: the installed command, and ``python -m dmlops``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dmlops._cli import COMMANDS

pytest.importorskip("argcomplete")

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(
    BASH is None or sys.platform == "win32", reason="bash is not installed"
)


def candidates(tmp_path: Path, setup: str, function: str, line: str) -> list[str]:
    """Return bash's completions at the end of the line, after evaluating `setup`."""
    assert BASH is not None
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    command = programs / "dmlops"
    command.write_text(
        f"#!{sys.executable}\nimport sys\nfrom dmlops.__main__ import main\nsys.exit(main())\n"
    )
    command.chmod(0o755)
    python = programs / "python"
    python.unlink(missing_ok=True)
    python.write_text(f'#!{BASH}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    words = line.split(" ")
    script = f"""
        eval "$({setup})"
        COMP_LINE='{line}' COMP_POINT={len(line)} COMP_TYPE=9 COMP_CWORD={len(words) - 1}
        COMP_WORDS=({" ".join(repr(word) for word in words)})
        {function} {words[0]} '{words[-1]}' '{words[-2]}'
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    result = subprocess.run(
        [BASH, "-c", script],
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(word.strip() for word in result.stdout.splitlines())


def scripts(name: str) -> str:
    return f"'{sys.executable}' -m argcomplete.scripts.{name}"


@pytest.mark.parametrize("program", ["dmlops", "python -m dmlops"])
def test_commands_and_options(tmp_path: Path, program: str) -> None:
    if program == "dmlops":
        setup, function = scripts("register_python_argcomplete") + " dmlops", "_python_argcomplete"
    else:
        setup = scripts("activate_global_python_argcomplete") + " --dest=-"
        function = "_python_argcomplete_global"

    def offered(rest: str) -> list[str]:
        return candidates(tmp_path, setup, function, f"{program} {rest}")

    assert set(COMMANDS) <= set(offered(""))
    assert offered("inf") == ["info"]
    assert "--json" in offered("info --")
    assert "--json" not in offered("demo --")
    assert {"5_0", "6_4"} <= set(offered("run --feature-level "))
    assert offered("bench --peers numpy,to") == ["numpy,torch"]
    assert offered("bench --random 9 --operators hardm") == ["hardmax"]
