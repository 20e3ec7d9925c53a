"""The machine: its name, its caches, and the processors that the comparison uses."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from dmlops._info import cpu_model

SYSTEM = Path("/sys/devices/system/cpu")
SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def describe(processors: list[int]) -> dict[str, Any]:
    """Return the facts about the machine that published figures need."""
    return {
        "cpu": cpu_model(),
        "logical_cpus": os.cpu_count(),
        "used_cpus": processors,
        "caches": caches(),
    }


def caches() -> dict[str, int]:
    """Return the sizes of a processor's data caches in bytes, if the system reports them."""
    found = {}
    # Linux omits a size that the firmware does not state, as in virtual machines on aarch64.
    for file in sorted(SYSTEM.glob("cpu0/cache/index*/size")):
        level, kind, size = (
            file.with_name(name).read_text().strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            unit = SUFFIXES.get(size[-1], 1)
            found[f"L{level}"] = int(size.rstrip("KMG")) * unit
    return found


def pin(threads: int) -> list[int]:
    """Restrict the process to as many processors as it has threads, and return them.

    Libraries size their thread pools by the process's affinity when they are loaded, so all peers
    get the same processors whatever options they have. The list is empty on systems without
    affinity.
    """
    if sys.platform != "linux":
        return []
    processors = one_per_core(sorted(os.sched_getaffinity(0)))[:threads]
    os.sched_setaffinity(0, processors)
    return processors


def one_per_core(processors: list[int]) -> list[int]:
    """Return the processors, one of each core before the sibling hyperthreads.

    The order is descending, since the lowest processors tend to serve the interrupts.
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
    """Set OpenMP's variables, which it reads when loaded, so that idle threads stop spinning.

    Spinning threads would take processor time from the next competitor's turn.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ.setdefault("GOMP_SPINCOUNT", "100000")  # about a millisecond; the default is 15
    os.environ.setdefault("KMP_BLOCKTIME", "1")
