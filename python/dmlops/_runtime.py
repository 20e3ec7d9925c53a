"""Run-time settings and facts: instruction set, threads, build."""

import operator
import platform
import sys
import threading
from pathlib import Path
from typing import TypedDict

import numpy as np

from dmlops import _core

_MAX_THREADS = 1024


def isa() -> str:
    """Return the name of the instruction set whose kernels run.

    The default is the fastest of the processor; the environment variable ``DMLOPS_ISA``
    selects another one before the import. Results are bit-identical on all of them.

    Returns
    -------
    str
        One of `available_isas`.

    Examples
    --------
    >>> import dmlops
    >>> dmlops.isa() in dmlops.available_isas()
    True
    """
    return _core.isa()


def available_isas() -> tuple[str, ...]:
    """Return the names of the instruction sets that this processor supports, fastest first.

    Returns
    -------
    tuple of str
        A subset of ``("avx512", "avx2", "baseline")``. The baseline is always included: SSE2 on
        x86-64, NEON on aarch64.

    Examples
    --------
    >>> import dmlops
    >>> dmlops.available_isas()[-1]
    'baseline'
    """
    return _core.available_isas()


def get_num_threads() -> int:
    """Return the number of threads that a large call is split over, the caller's included.

    The default is the environment variable ``DMLOPS_NUM_THREADS``, or else the number of
    processors that the process may use. Results do not depend on the number of threads.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> import dmlops
    >>> dmlops.get_num_threads() >= 1
    True
    """
    return _core.get_num_threads()


def set_num_threads(n: int) -> None:
    """Set the number of threads that a large call is split over, for the whole process.

    Parameters
    ----------
    n : int
        From 1 to 1024, the caller's thread included.

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `n` is out of range.

    Examples
    --------
    >>> import dmlops
    >>> before = dmlops.get_num_threads()
    >>> dmlops.set_num_threads(1)
    >>> dmlops.get_num_threads()
    1
    >>> dmlops.set_num_threads(before)
    """
    _core.set_num_threads(_thread_count("set_num_threads", n))


def _thread_count(function: str, n: int) -> int:
    """Return a count as an integer within the range of the core's type."""
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(
            f"{function}: n must be an integer from 1 to {_MAX_THREADS}, not {type(n).__name__}"
        ) from None
    if abs(n) >= 2**63:
        raise ValueError(
            f"{function}: n must be from 1 to {_MAX_THREADS}, not a number beyond 64 bits"
        )
    return n


class _Blocks(threading.local):
    """The blocks that the current thread has entered and not ended, innermost last."""

    def __init__(self) -> None:
        self.entered: list[tuple[num_threads, int]] = []  # with the number before


_blocks = _Blocks()


class num_threads:  # noqa: N801 a function to its users
    """Set the number of threads for the calls of the current thread within a ``with`` block.

    Parameters
    ----------
    n : int
        From 1 to 1024, the caller's thread included.

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `n` is out of range.

    Notes
    -----
    Other threads keep the number of the process, which `set_num_threads` sets. Blocks may be
    nested, and threads may share the object.

    Examples
    --------
    >>> import dmlops
    >>> with dmlops.num_threads(1):
    ...     print(dmlops.get_num_threads())
    1
    """

    def __init__(self, n: int) -> None:
        """Check the number."""
        self._n = _thread_count("num_threads", n)
        if not 1 <= self._n <= _MAX_THREADS:
            raise ValueError(f"num_threads: n must be from 1 to {_MAX_THREADS}, not {n}")

    def __enter__(self) -> None:
        """Set the number of threads for the calls of this thread."""
        _blocks.entered.append((self, _core.exchange_own_num_threads(self._n)))

    def __exit__(self, *error: object) -> None:
        """Restore the previous number."""
        entered = _blocks.entered
        mine = [k for k, (block, _) in enumerate(entered) if block is self]
        if not mine:  # a generator that another thread began
            return
        _, before = entered.pop(mine[-1])
        if mine[-1] == len(entered):
            _core.exchange_own_num_threads(before)
        else:  # interleaved coroutines: the inner block goes on
            entered[mine[-1]] = (entered[mine[-1]][0], before)


class BuildInfo(TypedDict):
    """Facts of a build and its environment, as `build_info` returns them."""

    version: str
    isa: str
    available_isas: list[str]
    threads: int
    compiler: str
    flags: str
    python: str
    numpy: str
    platform: str


def build_info() -> BuildInfo:
    """Return facts about this build and its environment, for bug reports.

    Returns
    -------
    dict
        The keys are ``version``, ``isa``, ``available_isas``, ``threads``, ``compiler``,
        ``flags``, ``python``, ``numpy`` and ``platform``. ``threads`` is an int,
        ``available_isas`` a list of str, and the others are str: ready for JSON.

    Examples
    --------
    >>> import dmlops
    >>> dmlops.build_info()["version"] == dmlops.__version__
    True
    """
    return {
        "version": _core.version(),
        "isa": isa(),
        "available_isas": list(available_isas()),
        "threads": get_num_threads(),
        "compiler": _core.compiler(),
        "flags": _core.build_flags(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
    }


def check_environment() -> None:
    """Raise ValueError for an invalid environment variable."""
    isa()
    get_num_threads()
    _core.non_temporal_threshold()


def runs_as_command() -> bool:
    """Return True if the program is the command ``dmlops``, or ``python -m dmlops``."""
    program = next(iter(getattr(sys, "argv", [])), "")
    if program == "-m":  # sys.argv[0] is still "-m" while the package is imported
        return any(word in ("dmlops", "-mdmlops") for word in sys.orig_argv)
    return Path(program).stem == "dmlops"
