"""Counts the workers that each operator starts, as a function and compiled; run as a program.

Prints a line for each large case of the golden digests, and for slices of it: the workers that a
new process starts for the function and for the compiled operator, and the case.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import golden
import numpy as np
from golden_cases import LARGE

import dmlops

LENGTHS = (20_000, 70_000)  # elements: below and above the threshold for threads of most operators


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
            outputs = [np.empty(part.sizes(name), part.dtype) for name in part.tensors[1]]
            compiled = dmlops.Device().compile(part.descriptor(inputs, outputs))
            call = partial(part, *inputs, out=outputs[0])
            dispatch = partial(compiled.dispatch, part.bindings(inputs), outputs)
            function, dispatched = workers(call), workers(dispatch)
            print(function, dispatched, part)


if __name__ == "__main__":
    main()
