"""New interpreters, for state that is fixed on first use of the package."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).parent


def python(
    *arguments: str, timeout: float = 300, cwd: Path | str = HERE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in a folder; of the package's variables, only these are set."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("DMLOPS_")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def run_script(script: str, **environment: str) -> None:
    """Run the script in a separate interpreter, in which it may fork or hang."""
    _expect_success("-c", textwrap.dedent(script), **environment)


def run_program(name: str) -> None:
    """Run a program of this folder in a separate interpreter."""
    _expect_success(name)


def _expect_success(*arguments: str, **environment: str) -> None:
    run = python("-W", "ignore", *arguments, timeout=120, **environment)
    assert run.returncode == 0, run.stdout + run.stderr
