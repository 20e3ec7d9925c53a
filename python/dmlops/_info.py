"""The sub-command ``info``: facts about this installation for bug reports."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import dmlops
from dmlops import _core
from dmlops._cli import DONE

ENVIRONMENT = ("DMLOPS_ISA", "DMLOPS_NUM_THREADS", "DMLOPS_NON_TEMPORAL_THRESHOLD")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dmlops info``."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Print the information as aligned text or as JSON."""
    facts = collect()
    print(json.dumps(facts, indent=2) if arguments.json else as_text(facts))
    return DONE


def collect() -> dict[str, Any]:
    """Return all facts as a dict that JSON can hold."""
    return {
        **dmlops.build_info(),
        "non_temporal_threshold": non_temporal_threshold(),
        "cpu": cpu_model(),
        "logical_cpus": os.cpu_count(),
        "environment": [f"{name}={os.environ[name]}" for name in ENVIRONMENT if name in os.environ],
    }


def non_temporal_threshold() -> int | None:
    """Return the traffic in bytes from which outputs use non-temporal stores, or None."""
    threshold = _core.non_temporal_threshold()
    return None if threshold == 2**63 - 1 else threshold


def as_text(facts: dict[str, Any]) -> str:
    """Return the facts as lines of ``label: value``, the values aligned."""
    threshold = facts["non_temporal_threshold"]
    facts = facts | {
        "non_temporal_threshold": "never" if threshold is None else f"{threshold} bytes"
    }
    width = 2 + max(map(len, facts))
    return "\n".join(
        f"{name.replace('_', ' ') + ':':{width}}"
        f"{', '.join(value) or 'not set' if isinstance(value, list) else value}"
        for name, value in facts.items()
    )


def cpu_model() -> str:
    """Return the processor's name as the operating system reports it, or its architecture."""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            label, _, value = line.partition(":")
            if label.strip() == "model name":
                return value.strip()
    if sys.platform == "darwin":
        query = ["sysctl", "-n", "machdep.cpu.brand_string"]
        answer = subprocess.run(query, capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return answer.stdout.strip()
    return platform.processor() or platform.machine()
