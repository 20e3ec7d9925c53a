"""Calls that type checkers accept work, and calls that they refuse fail; see tools/types.sh."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "typed"
REFUSED: dict[str, Callable[[], Any]] = {
    name: value
    for name, value in runpy.run_path(str(FOLDER / "refused.py")).items()
    if isinstance(value, FunctionType) and value.__module__ == "<run_path>"
}


def test_accepted() -> None:
    runpy.run_path(str(FOLDER / "accepted.py"))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)):
        REFUSED[name]()
