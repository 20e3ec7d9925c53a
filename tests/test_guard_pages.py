"""No kernel accesses a byte outside of its operands, which lie between inaccessible pages."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from subprocesses import python
from variants import FORCED_ISA, ISAS, POLICIES, environment, pairwise

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")


def expect_success(program: str, share: int, **environment: str) -> None:
    run = python(program, str(share), timeout=600, DMLOPS_NUM_THREADS="3", **environment)
    assert run.returncode == 0, run.stdout[-300:] + run.stderr[-2000:]
    assert run.stdout.endswith("done\n")


@pairwise(isa=ISAS, policy=POLICIES)
def test_every_operator(isa: str, policy: str) -> None:
    expect_success("guard_pages.py", 8, DMLOPS_ISA=isa, **environment(policy))


@pytest.mark.exhaustive
def test_every_operator_on_all_layouts(isa: str, policy: str) -> None:
    expect_success("guard_pages.py", 1, DMLOPS_ISA=isa, **environment(policy))


@pytest.mark.parametrize("share", [8, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_every_operator_on_drawn_layouts(share: int) -> None:
    """Run on every instruction set and with every policy."""
    forced = {"DMLOPS_ISA": FORCED_ISA} if FORCED_ISA else {}
    expect_success("guard_drawn.py", share, **forced)


@pytest.mark.parametrize("where", ["out[-1:].ctypes.data + 4", "x.ctypes.data - 1"])
def test_the_guards_are_there(where: str) -> None:
    run = python(
        "-c",
        "import ctypes, numpy as np; from guarded import GuardedMemory\n"
        "out = GuardedMemory(1).place((3,), np.float32, (4,), at_end=True)\n"
        "x = GuardedMemory(1).place((3,), np.float32, (4,), at_end=False)\n"
        "out[...] = x\n"
        "print('reached', flush=True)\n"
        f"print(ctypes.string_at({where}, 1))",
        # A sanitizer would report the fault as its own finding.
        ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":handle_segv=0",
    )
    assert run.stdout == "reached\n"
    assert run.returncode == -signal.SIGSEGV
