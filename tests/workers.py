"""Counts the workers that each operator starts, as a function and compiled; run as a program.

For each case of the golden digests with work for threads, and for parts of it, a line: the workers
that a new process starts for the function, those for the compiled operator, and the case.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import golden
import numpy as np
from golden_cases import LARGE

import dmlops

LENGTHS = (20_000, 70_000)  # elements: below and above what most operators split


def workers(call: Callable[[], object]) -> int:
    """Return the number of threads that the call starts in a forked process."""
    if os.fork() == 0:
        before = len(os.listdir("/proc/self/task"))
        call()
        os._exit(len(os.listdir("/proc/self/task")) - before)
    return os.waitstatus_to_exitcode(os.wait()[1])


def main() -> None:
    """Print the lines."""
    dmlops.set_num_threads(4)
    seen = set()
    for case in golden.read():
        group = (case.operator, case.dtype, len(case.parameters))
        if case.shape != LARGE or group in seen:
            continue
        seen.add(group)
        for length in LENGTHS:
            part = replace(case, shape=(length // LARGE[1], LARGE[1]))
            inputs = part.inputs()
            out = np.empty_like(inputs[0])
            compiled = dmlops.Device().compile(part.descriptor(inputs, out))
            function = workers(lambda part=part, inputs=inputs, out=out: part(*inputs, out=out))  # type: ignore[misc]
            dispatched = workers(
                lambda compiled=compiled, inputs=inputs, out=out: compiled.dispatch(inputs, [out])  # type: ignore[misc]
            )
            print(function, dispatched, part)


if __name__ == "__main__":
    main()
