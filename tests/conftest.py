"""Fixtures of all tests: the instruction set, the policy, the extent; and the reset of state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from operator_files import Runner
from variants import FORCED_ISA, ISAS, POLICIES, Extent, thresholds

import dmlops
from dmlops import _core

for profile, examples in (("default", 40), ("exhaustive", 400)):
    hypothesis.settings.register_profile(
        f"dmlops-{profile}",
        deadline=None,
        max_examples=examples,
        derandomize=True,
        print_blob=True,
        # All examples of a test run on one instruction set.
        suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
    )
EXHAUSTIVE = pytest.mark.exhaustive

MOST_WORKERS = 16  # further workers gain nothing: the longest test limits the time


def is_exhaustive(config: pytest.Config) -> bool:
    """Return True for `pytest -m exhaustive`, and for `-m "not large"`, all tests but those."""
    return config.option.markexpr in (EXHAUSTIVE.name, "not large")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `exhaustive`; set the number of Hypothesis's examples."""
    config.addinivalue_line("markers", "exhaustive: full products, which take minutes")
    config.addinivalue_line("markers", "large: minutes, gigabytes; left out unless asked for")
    profile = "exhaustive" if is_exhaustive(config) else "default"
    hypothesis.settings.load_profile(f"dmlops-{profile}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run properties in both runs; the exhaustive one draws more examples.

    It runs no share of the combinations, since it runs all of them.
    """
    if not is_exhaustive(config):
        return
    items[:] = [item for item in items if _parameters(item).get("extent") != "some"]
    for item in items:
        if hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(EXHAUSTIVE)


def _parameters(item: pytest.Item) -> dict[str, Any]:
    return item.callspec.params if hasattr(item, "callspec") else {}


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run tests that are selected by their ids in this process, other tests on all processors."""
    if any("::" in argument for argument in config.args):
        return 0
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    workers = int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") or usable or 1)
    return min(workers, MOST_WORKERS) if workers > 1 else 0  # a single one costs 2 ms per test


def pytest_report_header() -> str:
    """Print the version and the environment under test."""
    available = ", ".join(dmlops.available_isas())
    return f"dmlops: {dmlops.isa()} (of {available}), {dmlops.get_num_threads()} threads"


@pytest.fixture(autouse=True, scope="session")
def _the_forced_isa_runs() -> None:
    assert FORCED_ISA in (None, "", dmlops.isa()), f"{FORCED_ISA} is forced, {dmlops.isa()} runs"


@pytest.fixture(autouse=True)
def _thread_count_restored() -> Iterator[None]:
    count = dmlops.get_num_threads()
    yield
    dmlops.set_num_threads(count)


@pytest.fixture(params=ISAS)
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test on each instruction set of the processor."""
    before = dmlops.isa()
    _core.set_isa(request.param)
    yield request.param
    _core.set_isa(before)


def _by_default(only: str, names: Any) -> list[Any]:
    return [name if name == only else pytest.param(name, marks=EXHAUSTIVE) for name in names]


@pytest.fixture(params=_by_default("usual", POLICIES))
def policy(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test with default thresholds, and with thresholds for small arrays."""
    with thresholds(request.param):
        yield request.param


@pytest.fixture(params=_by_default("some", ["some", "all"]))
def extent(request: pytest.FixtureRequest) -> Extent:
    """Run the test on a share of its combinations by default, on all of them if exhaustive."""
    return Extent(request.param == "all", request.node.nodeid)


@pytest.fixture
def runner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runner:
    """Return a runner of operator files in the test's own folder."""
    return Runner(tmp_path, capsys)
