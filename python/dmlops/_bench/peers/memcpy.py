"""The roofline: a copy of as many bytes as the problem must read and write."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dmlops._bench.peers.base import Peer, Way
from dmlops._bench.problem import Problem


class Memcpy(Peer):
    """NumPy's copy of dense bytes, which is the C library's memcpy; or of a part in each thread."""

    module = "numpy"
    checked = False

    def ways(self, problem: Problem) -> Iterator[Way]:
        """Yield the copy on one thread, and on all."""
        half = max(1, problem.traffic // 2)
        source, target = np.ones(half, np.uint8), np.zeros(half, np.uint8)
        yield Way("copyto(y, x)", {"copyto": np.copyto, "x": source, "y": target})
        if self.threads > 1:
            pool = ThreadPoolExecutor(self.threads - 1)
            parts = list(
                zip(
                    np.array_split(target, self.threads),
                    np.array_split(source, self.threads),
                    strict=True,
                )
            )

            def copy() -> None:
                rest = [pool.submit(np.copyto, y, x) for y, x in parts[1:]]
                np.copyto(*parts[0])
                for future in rest:
                    future.result()

            yield Way("copy()", {"copy": copy})
