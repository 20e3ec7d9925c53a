"""No kernel touches a byte outside what the strides imply: pages around every operand forbid it."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from subprocesses import python

import dmlops

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")


@pytest.mark.parametrize("program", ["guard_pages.py", "guard_drawn.py"])
@pytest.mark.parametrize("isa", dmlops.available_isas())
def test_every_operator(isa: str, program: str) -> None:
    run = python(program, DMLOPS_ISA=isa, DMLOPS_NUM_THREADS="3")
    assert run.returncode == 0, run.stdout[-300:] + run.stderr[-2000:]
    assert run.stdout.endswith(f"done {isa}\n")


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
