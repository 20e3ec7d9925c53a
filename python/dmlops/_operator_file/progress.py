"""Reports the progress of commands that take more than a second."""

from __future__ import annotations

import sys
import threading
from time import monotonic
from types import TracebackType
from typing import TextIO

SECONDS_OF_SILENCE = 1.0
_SECONDS_BETWEEN_LINES = 10.0  # if the output is not a terminal, which keeps all lines


class Progress:
    """A line on standard error with the fraction done and, if known, the remaining time.

    ``with Progress("clip") as progress: ... progress.reach(0.5) ...``
    """

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title = title
        self._stream = sys.stderr if stream is None else stream
        self._done = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def reach(self, share: float) -> None:
        """Record the fraction of the work that is done, from 0 to 1."""
        self._done = share

    def __enter__(self) -> Progress:
        self._start = monotonic()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def line(self) -> str:
        """Return the current line."""
        seconds = monotonic() - self._start
        if not self._done:
            return f"{self._title}: {seconds:.0f} s"
        left = seconds / self._done - seconds
        return f"{self._title}: {self._done:.0%}, {left:.0f} s left"

    def _tell(self) -> None:
        if self._ended.wait(SECONDS_OF_SILENCE):
            return
        terminal = self._stream.isatty()
        while True:
            text = f"\r{self.line()}\x1b[K" if terminal else f"{self.line()}\n"
            print(text, end="", file=self._stream, flush=True)
            if self._ended.wait(SECONDS_OF_SILENCE if terminal else _SECONDS_BETWEEN_LINES):
                break
        if terminal:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
