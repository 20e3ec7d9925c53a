"""The roofline: a copy with the problem's memory traffic, or a copy of its output's size."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dmlops._bench.peers.base import Candidate, Peer
from dmlops._bench.problem import Array, Problem

OFFSETS = (0, 2048)  # avoids store-to-load aliasing (4 KiB)


class Memcpy(Peer):
    """NumPy's copy of dense bytes, the C library's memcpy, whole or one shard per thread."""

    module = "numpy"
    checked = False

    def candidates(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the copy on one thread and on all threads."""
        size = max(1, problem.traffic // 2) if problem.copied is None else problem.copied
        source = np.ones(size, np.uint8)
        buffer = np.zeros(size + max(OFFSETS), np.uint8)
        for offset in OFFSETS:
            target = buffer[offset : offset + size]
            yield Candidate("copyto(y, x)", {"copyto": np.copyto, "x": source, "y": target})
            if self.threads > 1:
                yield self.parallel(target, source)

    def parallel(self, target: Array, source: Array) -> Candidate:
        """Return the copy of one shard per thread."""
        pool = ThreadPoolExecutor(self.threads - 1)
        targets, sources = (np.array_split(array, self.threads) for array in (target, source))

        def copy() -> None:
            others = [
                pool.submit(np.copyto, *pair) for pair in zip(targets[1:], sources[1:], strict=True)
            ]
            np.copyto(targets[0], sources[0])
            for other in others:
                other.result()

        return Candidate("copy()", {"copy": copy})
