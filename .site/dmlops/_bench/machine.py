"""The machine: its name, its caches, and which of its processors the comparison may use."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from dmlops._info import cpu_model

SYSTEM = Path("/sys/devices/system/cpu")
SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def describe(processors: list[int]) -> dict[str, Any]:
    """Return what a reader of the figures must know of the machine."""
    return {
        "cpu": cpu_model(),
        "logical_cpus": os.cpu_count(),
        "used_cpus": processors,
        "caches": caches(),
    }


def caches() -> dict[str, int]:
    """Return the sizes of a processor's data caches in bytes, where the system tells them."""
    found = {}
    for folder in sorted(SYSTEM.glob("cpu0/cache/index*")):
        level, kind, size = (
            (folder / name).read_text().strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            unit = SUFFIXES.get(size[-1], 1)
            found[f"L{level}"] = int(size.rstrip("KMG")) * unit
    return found


def pin(threads: int) -> list[int]:
    """Restrict the process to as many processors as it has threads, and return them.

    Libraries ask for the processors when they start: all then have the same, whatever their own
    switches are. Where the system has no such restriction, the list is empty.
    """
    if sys.platform != "linux":
        return []
    processors = one_per_core(sorted(os.sched_getaffinity(0)))[:threads]
    os.sched_setaffinity(0, processors)
    return processors


def one_per_core(processors: list[int]) -> list[int]:
    """Return the processors with the first of each core ahead of the second ones.

    The last come first: interrupts tend to go to the first.
    """
    seen: set[str] = set()
    first: list[int] = []
    second: list[int] = []
    for processor in reversed(processors):
        file = SYSTEM / f"cpu{processor}" / "topology" / "thread_siblings_list"
        core = file.read_text() if file.exists() else str(processor)
        (second if core in seen else first).append(processor)
        seen.add(core)
    return first + second


def limit_spinning(threads: int) -> None:
    """Set what OpenMP reads when it is loaded: its threads must not spin into another's turn."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ.setdefault("GOMP_SPINCOUNT", "100000")  # about a millisecond; the default is 15
    os.environ.setdefault("KMP_BLOCKTIME", "1")
