"""tools/generate.py names the formatter that is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "generate.py"
if not SCRIPT.is_file():  # as in an sdist
    pytest.skip("the tools are not here", allow_module_level=True)


@pytest.mark.parametrize("words", [[], ["--check"]], ids=str)
def test_without_clang_format(words: list[str], tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.splitlines() == [
        "tools/generate.py: clang-format is not installed; install the version of "
        "requirements-dev.txt: pip install -r requirements-dev.txt"
    ]
