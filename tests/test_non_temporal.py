"""Outputs that bypass the caches, as large ones do: tests of layouts again, with all outputs so."""

from __future__ import annotations

import pytest
from subprocesses import python

import dmlops

FILES = [
    "test_batch_normalization.py",
    "test_clip.py",
    "test_log_softmax.py",
    "test_normalization_factor.py",
]


@pytest.mark.parametrize("file", FILES)
def test_layouts(file: str) -> None:
    words = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file)
    run = python(*words, DMLOPS_NON_TEMPORAL_THRESHOLD="0")
    assert run.returncode == 0, run.stdout[-3000:]


@pytest.mark.parametrize("program", ["golden.py", "guard_pages.py"])
@pytest.mark.parametrize("isa", dmlops.available_isas())
def test_bits_and_bounds(isa: str, program: str) -> None:
    run = python(program, DMLOPS_NON_TEMPORAL_THRESHOLD="0", DMLOPS_ISA=isa)
    assert run.returncode == 0, run.stdout[-300:] + run.stderr[-2000:]
