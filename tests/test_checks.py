"""Each check in the list of .ci/run can be run, and CONTRIBUTING.md names existing files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUN = ROOT / ".ci" / "run"
if not RUN.exists() or sys.platform == "win32":  # as in an sdist
    pytest.skip("continuous integration is not here", allow_module_level=True)


def run(*arguments: str) -> str:
    command = ["bash", str(RUN), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_contributing_names_existing_files() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Commands")[0]
    folders = ("src", "python", "tests", "docs", "include", "examples", "tools", "fuzz", "cmake")
    known = {path.name for folder in folders for path in (ROOT / folder).rglob("*")}
    known |= {path.name for path in ROOT.iterdir()}
    for word in re.findall(r"[\w./]*\w\.(?:cpp|hpp|py|md|txt)(?:\.in)?\b", text):
        assert (ROOT / word).exists() if word.startswith(folders) else Path(word).name in known


def test_each_check_is_a_function() -> None:
    functions = re.findall(r"^check_([\w-]+)\(\)", RUN.read_text(), re.MULTILINE)
    assert sorted(functions) == sorted(json.loads(run("--names")))


def test_each_tool_is_in_a_check() -> None:
    tools = {path.name for path in (ROOT / "tools").glob("*.sh")} - {"common.sh", "lock.sh"}
    assert tools == set(re.findall(r"tools/([\w-]+\.sh)", RUN.read_text()))


def test_other_names_are_refused() -> None:
    command = ["bash", str(RUN), "nothing"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "no check is called nothing" in refused.stdout
