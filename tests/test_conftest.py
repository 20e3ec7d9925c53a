"""The hooks of conftest.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import conftest
import pytest


@pytest.mark.parametrize(("variable", "workers"), [("1", 0), ("3", 3), ("99", 16)])
def test_the_number_of_workers(
    variable: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Any = SimpleNamespace(args=["tests"])
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", variable)
    assert conftest.pytest_xdist_auto_num_workers(config) == workers
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS")
    default = conftest.pytest_xdist_auto_num_workers(config)
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "")
    assert conftest.pytest_xdist_auto_num_workers(config) == default
