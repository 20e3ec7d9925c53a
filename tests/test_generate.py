"""tools/generate.py names the formatter that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from subprocesses import python

SCRIPT = Path(__file__).parents[1] / "tools" / "generate.py"
if not SCRIPT.is_file():  # as in an sdist
    pytest.skip("the tools are not here", allow_module_level=True)


@pytest.mark.parametrize("words", [[], ["--check"]], ids=str)
def test_without_clang_format(words: list[str], tmp_path: Path) -> None:
    run = python(str(SCRIPT), *words, PATH=str(tmp_path))
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.splitlines() == [
        "tools/generate.py: clang-format is not installed; install the version of "
        "requirements-dev.txt: pip install -r requirements-dev.txt"
    ]
