"""What all tests share: the thread count put back, the forced instruction set confirmed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

import dmlops

hypothesis.settings.register_profile(
    "suite", deadline=None, max_examples=100, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker by which the long runs can be left out: pytest -m 'not isa_suites'."""
    config.addinivalue_line("markers", "isa_suites: the operator suite again, per instruction set")
    config.addinivalue_line("markers", "large: minutes, gigabytes; left out unless asked for")


def pytest_report_header() -> str:
    """Say what is under test."""
    available = ", ".join(dmlops.available_isas())
    return f"dmlops: {dmlops.isa()} (of {available}), {dmlops.get_num_threads()} threads"


@pytest.fixture(autouse=True, scope="session")
def _the_forced_isa_runs() -> None:
    forced = os.environ.get("DMLOPS_ISA")
    assert forced in (None, dmlops.isa()), f"DMLOPS_ISA={forced}, but {dmlops.isa()} runs"


@pytest.fixture(autouse=True)
def _thread_count_restored() -> Iterator[None]:
    count = dmlops.get_num_threads()
    yield
    dmlops.set_num_threads(count)
