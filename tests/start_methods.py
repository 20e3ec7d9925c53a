"""Workers of multiprocessing that compute beside their parent; run as a program: METHOD."""

from __future__ import annotations

import multiprocessing
import sys
import threading

import numpy as np

import dmlops

SIZE = 1_000_003  # enough for threads


def work(seed: int) -> float:
    """Compute in a worker, on the worker's threads."""
    dmlops.set_num_threads(1 + seed % 3)
    return float(dmlops.hard_sigmoid(np.arange(SIZE, dtype=np.float32) % (seed + 2), 0.1).sum())


def main(method: str) -> None:
    """Start workers before, during and after parallel work of the parent."""
    context = multiprocessing.get_context(method)
    expected = [work(seed) for seed in range(4)]
    calls = []

    def busy(stop: threading.Event) -> None:
        while not stop.is_set():
            calls.append(work(1))

    for during in (False, True):
        stop = threading.Event()
        others = [threading.Thread(target=busy, args=[stop]) for _ in range(2 * during)]
        for other in others:
            other.start()
        with context.Pool(2) as pool:
            assert pool.map(work, range(4)) == expected
        stop.set()
        for other in others:
            other.join()
        assert not during or len(calls) > 1, "no call beside the workers' start"
    assert [work(seed) for seed in range(4)] == expected
    print("done", method)


if __name__ == "__main__":
    main(sys.argv[1])
