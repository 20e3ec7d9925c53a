"""Prints the sizes from which threads pay off: clip in float32, in a loop and after a pause.

python bench/threads.py [THREADS ...]

The thread counts take turns in random order; times are minima in microseconds. During the pause the
workers go to sleep, as in a program with other work between its calls.
"""

from __future__ import annotations

import random
import sys
import time

import numpy as np

import dmlops

SIZES = [1 << power for power in range(18, 28)]  # bytes read and written
PAUSE, ROUNDS = 2.5e-3, 60


def main(counts: list[int]) -> None:
    """Print a line for each size."""
    turns = [(threads, pause) for pause in (0.0, PAUSE) for threads in counts]
    titles = [f"{threads}{' paused' if pause else ''}" for threads, pause in turns]
    print(f"{'threads:':12}", *(f"{title:>10}" for title in titles))
    for size in SIZES:
        x = np.ones(size // 8, np.float32)
        y = np.zeros_like(x)
        best = dict.fromkeys(turns, np.inf)
        for _ in range(ROUNDS):
            for turn in random.sample(turns, len(turns)):
                best[turn] = min(best[turn], seconds(x, y, *turn))
        print(f"{size >> 10:8} KiB", *(f"{1e6 * best[turn]:10.2f}" for turn in turns), flush=True)


def seconds(x: np.ndarray, y: np.ndarray, threads: int, pause: float) -> float:
    """Return the seconds of the third of three calls, or of a call after a pause."""
    dmlops.set_num_threads(threads)
    dmlops.clip(x, 0, 1, out=y)
    if pause:
        time.sleep(pause)
    else:
        dmlops.clip(x, 0, 1, out=y)
    begin = time.perf_counter()
    dmlops.clip(x, 0, 1, out=y)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1, dmlops.get_num_threads()])
