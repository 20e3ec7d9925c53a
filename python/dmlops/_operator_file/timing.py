"""Repeated dispatches and their times, for `dmlops run -i` and `-t`."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from dmlops._operator_file.progress import Progress
from dmlops._text import counted

MAX_ITERATIONS = 10**6  # of a dispatch: every time is kept, for the median


@dataclass(frozen=True)
class Repetition:
    """The number of repetitions of a dispatch, or their duration in seconds."""

    iterations: int | None = None
    seconds: float | None = None

    def done(self, count: int, seconds: float) -> float:
        """Return the fraction that is done, from 0 to 1, after these iterations and seconds."""
        if self.seconds is not None:
            return max(seconds / self.seconds if self.seconds else 1, count / MAX_ITERATIONS)
        return count / (self.iterations or 1)


def repeat(dispatch: Callable[[], None], repetition: Repetition, progress: Progress) -> str:
    """Repeat a dispatch; return the number of iterations and their minimum and median time.

    The first iteration warms up caches and threads, and counts only if it is the only one.
    """
    times: list[float] = []
    share, start = 0.0, perf_counter()
    while share < 1:
        begin = perf_counter()
        dispatch()
        end = perf_counter()
        times.append(end - begin)
        share = repetition.done(len(times), end - start)
        progress.reach(min(share, 1))
    hot = times[1:] or times
    minimum, median = (1e3 * seconds for seconds in (min(hot), statistics.median(hot)))
    iterations = counted(len(times), "iteration")
    return f"{iterations}, {minimum:.4f} ms minimum, {median:.4f} ms median"
