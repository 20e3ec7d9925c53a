"""Resources: failures to get memory and threads, leaks, and the cost of the import."""

from __future__ import annotations

import sys
import sysconfig

import pytest
from subprocesses import run_program, run_script

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's limits")


@linux
def test_memory_that_cannot_be_had() -> None:
    """An array, the copy of an overlapping input, a compiled operator's own bytes."""
    run_script(
        """
        import resource, numpy as np, dmlops
        x = np.ones(2**26, np.float32)  # 256 MiB
        tensor = dmlops.BufferTensorDesc.from_array(x)
        owned = dmlops.BufferTensorDesc.from_array(x, flags=dmlops.TensorFlags.OWNED_BY_DML)
        desc = dmlops.ActivationReluOperatorDesc(input_tensor=owned, output_tensor=tensor)
        dmlops.log_softmax(x[:2**20])  # the threads are there
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, resource.RLIM_INFINITY))
        calls = {
            "result": lambda: dmlops.relu(x),
            "overlap": lambda: dmlops.relu(x[:-1], out=x[1:]),
            "owned": lambda: dmlops.Device().compile(desc, initial=[x]),
        }
        for name, call in calls.items():
            try:
                call()
            except MemoryError:
                pass
            else:
                raise SystemExit(f"{name}: no MemoryError")
            assert x[0] == x[-1] == 1
            assert (dmlops.clip(x[:10**6], 2, 3) == 2).all()
        assert dmlops.relu(x, out=x) is x
        """,
        DMLOPS_NUM_THREADS="3",
    )


def test_every_allocation_fails_once() -> None:
    """Expect MemoryError, not an error that names an argument; C++ tests replace operator new."""
    pytest.importorskip("_testcapi", reason="the interpreter comes without its own tests")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("a free-threaded interpreter does not survive failing allocations")
    run_program("allocation_failures.py")


@linux
def test_threads_that_cannot_be_had() -> None:
    """Fewer threads do the work. The limit does not bind root, who becomes another user."""
    run_script(
        """
        import os, resource, threading, numpy as np, dmlops
        x = np.arange(2_000_003, dtype=np.float32)
        if os.getuid() == 0:
            os.setuid(65534)
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        resource.setrlimit(resource.RLIMIT_NPROC, (0, hard))
        try:
            threading.Thread(target=int).start()
        except RuntimeError:
            pass
        else:
            raise SystemExit("the limit does not hold")
        threads = lambda: len(os.listdir("/proc/self/task"))
        before = threads()  # NumPy has its own
        dmlops.set_num_threads(4)
        alone = dmlops.hard_sigmoid(x)
        assert threads() == before
        resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
        assert (dmlops.hard_sigmoid(x) == alone).all()
        assert threads() == before + 3  # so the call above wanted them
        """
    )


@linux
def test_no_leaks() -> None:
    run_program("leaks.py")


@linux
def test_the_import_opens_nothing_and_starts_nothing() -> None:
    run_script(
        """
        import os, numpy
        before = set(os.listdir("/proc/self/fd")), set(os.listdir("/proc/self/task"))
        import dmlops
        after = set(os.listdir("/proc/self/fd")), set(os.listdir("/proc/self/task"))
        assert before == after, (before, after)
        """,
    )


def test_the_import_loads_little() -> None:
    """The import loads no other library than NumPy, and no module of the command line."""
    run_script(
        """
        import sys, numpy
        before = set(sys.modules)
        import dmlops
        loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
        assert loaded <= {"dmlops", "numpy"} | sys.stdlib_module_names, loaded
        assert not loaded & {"argparse", "asyncio", "json", "multiprocessing", "subprocess"}, loaded
        """,
    )
