"""Instruction sets and thread counts that the environment chooses."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest
from subprocesses import python
from variants import POLICIES, environment

import dmlops
from dmlops import _core

KNOWN = {"baseline", "avx2", "avx512"}
AVAILABLE = dmlops.available_isas()
AVX2 = {"avx2", "fma", "f16c"}
NEEDED = {"avx512": AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, "avx2": AVX2}
CPUINFO = Path("/proc/cpuinfo")
FLAGS = set(CPUINFO.read_text().split() if CPUINFO.exists() else ())


def test_names() -> None:
    assert dmlops.isa() in AVAILABLE
    assert set(AVAILABLE) <= KNOWN
    assert len(set(AVAILABLE)) == len(AVAILABLE)
    assert AVAILABLE[-1] == "baseline"
    assert isinstance(AVAILABLE, tuple)


@pytest.mark.skipif(not FLAGS, reason="the system does not list the features of its processor")
def test_what_the_system_says() -> None:
    expected = [
        name for name, flags in NEEDED.items() if platform.machine() == "x86_64" and flags <= FLAGS
    ]
    assert [*expected, "baseline"] == list(AVAILABLE)


def test_the_best_one_is_the_default() -> None:
    run = python("-c", "import dmlops; print(dmlops.isa(), *dmlops.available_isas())")
    assert run.stdout.split() == [AVAILABLE[0], *AVAILABLE]


@pytest.mark.parametrize("name", AVAILABLE)
def test_the_forced_one_runs(name: str) -> None:
    run = python(
        "-c", "import dmlops; print(dmlops.isa(), *dmlops.available_isas())", DMLOPS_ISA=name
    )
    assert run.stdout.split() == [name, *AVAILABLE], run.stderr


def test_set_isa(isa: str) -> None:
    assert dmlops.isa() == isa
    for wrong in ("", "mmx"):
        with pytest.raises(ValueError, match="set_isa"):
            _core.set_isa(wrong)
    assert dmlops.isa() == isa


@pytest.mark.parametrize("policy", [name for name in POLICIES if POLICIES[name]], indirect=True)
def test_policies_are_what_the_environment_sets(policy: str) -> None:
    for name, value in POLICIES[policy].items():
        get = f"from dmlops import _core; print(_core.{name}())"
        assert getattr(_core, name)() == value
        assert python("-c", get, timeout=60, **environment(policy)).stdout == f"{value}\n"


@pytest.mark.parametrize("name", ["sse9", "AVX-2", " ", "neon", *sorted(KNOWN - set(AVAILABLE))])
def test_other_names_are_errors_that_list_the_known_ones(name: str) -> None:
    run = python("-c", "import dmlops; dmlops.isa()", DMLOPS_ISA=name)
    assert run.returncode != 0
    last = run.stderr.strip().splitlines()[-1]
    assert all(word in last for word in ("DMLOPS_ISA", name, *AVAILABLE)), run.stderr


@pytest.mark.parametrize("count", ["0", "-1", "two", "1.5", " ", "3x", "1025", "9" * 30])
def test_wrong_thread_counts_are_errors_that_say_what_is_taken(count: str) -> None:
    run = python("-c", "import dmlops; dmlops.get_num_threads()", DMLOPS_NUM_THREADS=count)
    assert run.returncode != 0
    last = run.stderr.strip().splitlines()[-1]
    message = f"DMLOPS_NUM_THREADS={count} is not a whole number from 1 to 1024"
    assert last.endswith(message), run.stderr


@pytest.mark.parametrize("size", ["-1", "1e6", "9" * 20])
def test_wrong_thresholds_are_errors_that_say_what_is_taken(size: str) -> None:
    run = python("-c", "import dmlops", DMLOPS_NON_TEMPORAL_THRESHOLD=size)
    assert run.returncode != 0
    message = f"DMLOPS_NON_TEMPORAL_THRESHOLD={size} is not a whole number from 0 to {2**63 - 1}"
    assert run.stderr.strip().endswith(message), run.stderr


def test_build_info() -> None:
    info = dmlops.build_info()
    assert info["threads"] == dmlops.get_num_threads()
    assert info["available_isas"] == list(dmlops.available_isas())
    others = {key: value for key, value in info.items() if key not in ("threads", "available_isas")}
    assert all(isinstance(value, str) for value in others.values())
    assert "compiler" in others
    assert json.loads(json.dumps(info)) == info


def test_empty_variables_count_as_unset() -> None:
    command = "import dmlops; print(dmlops.isa(), dmlops.get_num_threads())"
    usual = python("-c", command).stdout
    assert usual
    assert python("-c", command, DMLOPS_ISA="", DMLOPS_NUM_THREADS="").stdout == usual
