"""Processes: how workers are started, how an interpreter ends, Ctrl-C, several interpreters."""

from __future__ import annotations

import multiprocessing
import os
import sys

import pytest
from subprocesses import python, run_script


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_start_methods(method: str) -> None:
    run = python("-W", "ignore", "start_methods.py", method, DMLOPS_NUM_THREADS="3", timeout=120)
    assert run.stdout == f"done {method}\n", run.stdout + run.stderr
    assert run.returncode == 0, run.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_before_any_work() -> None:
    run_script(
        """
        import os, numpy as np, dmlops
        x = np.arange(1_000_003, dtype=np.float32)
        child = os.fork()
        dmlops.hard_sigmoid(x)
        threads = len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 3
        if child == 0:
            os._exit(0 if threads >= 3 else 1)
        assert os.waitpid(child, 0)[1] == 0 and threads >= 3
        """,
        DMLOPS_NUM_THREADS="3",
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_during_the_first_call() -> None:
    run_script(
        """
        import os, signal, threading, time, numpy as np, dmlops
        x = np.linspace(0, 1, 100_003, dtype=np.float32)

        def call():
            assert dmlops.hard_sigmoid(x, 1, 0)[-1] == 1

        def fork_during_the_first_call(delay):
            other = threading.Thread(target=call)
            start = time.perf_counter()
            other.start()
            while time.perf_counter() < start + delay:
                pass
            child = os.fork()
            signal.alarm(20)  # in both: neither may deadlock
            call()
            if child != 0:
                other.join()
                assert os.waitpid(child, 0)[1] == 0

        for attempt in range(300):  # each in a process that has not called anything yet
            first = os.fork()
            if first == 0:
                try:
                    fork_during_the_first_call(attempt % 60 * 5e-6)
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(first, 0)[1] == 0, attempt
        """,
        DMLOPS_NUM_THREADS="3",
    )


@pytest.mark.parametrize("daemon", [True, False])
@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "os._exit(0)"])
def test_the_interpreter_ends_during_a_call(daemon: bool, end: str) -> None:
    run_script(
        f"""
        import os, sys, threading, numpy as np, dmlops
        x = np.broadcast_to(np.float16(1), (1000, 4000))
        out = np.empty(x.shape, np.float16)
        ready = threading.Event()
        def busy(repeats):
            for _ in range(repeats):
                ready.set()
                dmlops.log_softmax(x, 0, out=out)
        for _ in range(2):
            threading.Thread(target=busy, args=({10**9 if daemon else 5},), daemon={daemon}).start()
        ready.wait()
        {end}
        """,
        DMLOPS_NUM_THREADS="3",
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_in_a_long_call() -> None:
    """KeyboardInterrupt is raised after the call, whose result is complete."""
    run_script(
        """
        import os, signal, threading, time, numpy as np, dmlops
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
        x = np.broadcast_to(np.float16(1), (2000, 8000))
        expected = dmlops.log_softmax(x, 0)
        for _ in range(3):
            out = expected.copy()  # the signal may come before the first call
            timer = threading.Timer(0.005, os.kill, (os.getpid(), signal.SIGINT))
            interrupted = False
            try:
                timer.start()
                while True:
                    dmlops.log_softmax(x, 0, out=out)
            except KeyboardInterrupt:
                interrupted = True
            timer.join()
            assert interrupted
            assert (out == expected).all()
            assert (dmlops.log_softmax(x, 0) == expected).all()
        """,
        DMLOPS_NUM_THREADS="3",
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at Linux's threads")
def test_signals_are_not_for_the_workers() -> None:
    """A handler on a worker would not interrupt the main thread's wait."""
    run_script(
        """
        import os, signal, numpy as np, dmlops
        from pathlib import Path
        tasks = Path("/proc/self/task")
        before = set(tasks.iterdir())
        dmlops.hard_sigmoid(np.zeros(1_000_003, np.float32))
        workers = set(tasks.iterdir()) - before
        assert len(workers) == 2, workers
        for worker in workers:
            status = dict(line.split(":") for line in (worker / "status").read_text().splitlines())
            blocked = int(status["SigBlk"], 16)
            assert all(blocked >> (s - 1) & 1 for s in (signal.SIGINT, signal.SIGALRM)), status
        """,
        DMLOPS_NUM_THREADS="3",
    )


@pytest.mark.parametrize("before", ["pass", "import dmlops"])
def test_sub_interpreters_are_refused(before: str) -> None:
    run = python(
        *("-W", "ignore", "-c"),
        f"""if True:
            try:
                import _interpreters as interpreters
            except ImportError:
                import _xxsubinterpreters as interpreters
            {before}
            code = '''if True:
                try:
                    from dmlops import _core
                except ImportError as error:
                    print("refused:", error)
                '''
            problem = interpreters.run_string(interpreters.create(), code)
            assert problem is None, problem
        """,
        timeout=60,
    )
    assert run.stdout.startswith("refused: "), run.stdout + run.stderr


def test_an_interrupt_while_numpy_is_imported() -> None:
    run_script(
        """
        import sys

        class Interrupted:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == "numpy":
                    raise KeyboardInterrupt

        sys.meta_path.insert(0, Interrupted)
        try:
            import dmlops
        except KeyboardInterrupt:
            sys.exit(0)
        sys.exit(1)
        """
    )
