"""Threads: reading, setting and refusing a count; many callers; fork.

test_golden.py shows that the count changes no bit.
"""

from __future__ import annotations

import functools
import os
import signal
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from layouts import LARGE
from reference import assert_same_bits
from subprocesses import python, run_script

import dmlops
from dmlops import _core
from dmlops._table import ACTIVATIONS

Array = npt.NDArray[Any]
COUNTS = (1, 2, 3, 7, 16)


def normalized(shape: tuple[int, ...], dtype: str, axis: int) -> Array:
    channels = [size if i == axis else 1 for i, size in enumerate(shape)]
    values = [samples.uniform(channels, dtype, 0.5, 2, seed=i) for i in range(4)]
    return dmlops.batch_normalization(samples.uniform(shape, dtype), *values)


# Large enough for threads, none of them a multiple of a count.
CALLS: dict[str, Callable[[], Array]] = {
    "clip": lambda: dmlops.clip(samples.uniform((LARGE,), np.int8), -2, 2),
    "clip strided": lambda: dmlops.clip(
        samples.uniform((1031, 1021), np.float32)[::-1, ::2], -2, 2
    ),
    "hard_sigmoid": lambda: dmlops.hard_sigmoid(samples.uniform((1031, 1021), np.float16).T),
    "batch_normalization": lambda: normalized((1, 3, 349_529), "float32", 1),  # few long rows
    "batch_normalization last": lambda: normalized((103, 1021, 11), "float16", 2),
    "softplus": lambda: dmlops.softplus(samples.uniform((131, 1021), np.float16).T),
    "log_softmax": lambda: dmlops.log_softmax(samples.uniform((1031, 1021), np.float32)),
    "log_softmax first": lambda: dmlops.log_softmax(samples.uniform((1031, 1021), np.float32), 0),
    "log_softmax one group": lambda: dmlops.log_softmax(samples.uniform((LARGE,), np.float32)),
    "log_softmax middle": lambda: dmlops.log_softmax(
        samples.uniform((7, 103, 1511), np.float16), 1
    ),
}


LONG = [row.function for row in ACTIVATIONS if row.work == "long"]


# The number of workers that a process starts for its first call.
WORKERS = {
    "dmlops.clip(x[:65_535], 0, 1)": 0,
    "dmlops.clip(x[:65_536], 0, 1)": 3,
    "dmlops.hard_sigmoid(x[:65_535])": 0,
    # The weight of long formulas counts toward the threshold.
    "dmlops.sigmoid(x[:16_383])": 0,
    **{f"dmlops.{name}(x[:16_384])": 3 for name in LONG},
    "dmlops.sigmoid(x[:32_768:2])": 3,
    "dmlops.sigmoid(x[:16_384].astype(np.float16))": 3,
    "normalized(22_000, 1, fused_activation=dmlops.ActivationReluOperatorDesc())": 0,
    "normalized(22_000, 1, fused_activation=dmlops.ActivationGeluOperatorDesc())": 3,
    # So does packing, most of all one element at a time.
    "dmlops.clip(x[:65_534:2], 0, 1)": 0,
    "dmlops.clip(x[::2], 0, 1)": 3,
    "dmlops.clip(x[:65_535:5], 0, 1)": 0,
    "dmlops.clip(x[::5], 0, 1)": 3,
    # A float16 element of a reduction counts as a float32 one, and a group as 8 elements more.
    "dmlops.softmax(x[:12_480].reshape(-1, 26))": 0,
    "dmlops.softmax(x[:12_480].reshape(-1, 24))": 3,
    "dmlops.softmax(x[:12_480].reshape(-1, 26).astype(np.float16))": 0,
    "dmlops.softmax(x[:12_480].reshape(-1, 24).astype(np.float16))": 3,
    # Parameters for each element count as traffic.
    "normalized(22_000, 22_000)": 3,
    "normalized(21_000, 21_000)": 0,
}


@functools.cache
def workers_started() -> dict[str, int]:
    """Return the number of threads that each call of WORKERS starts in a forked process."""
    script = f"""
        import os, numpy as np, dmlops
        x = np.zeros(1 << 16, np.float32)
        def normalized(elements, parameters, **fused):
            values = [np.ones(parameters, np.float32)] * 4
            return dmlops.batch_normalization(x[:elements], *values, **fused)
        dmlops.set_num_threads(4)
        for call in {list(WORKERS)}:
            if os.fork() == 0:
                before = set(os.listdir("/proc/self/task"))
                eval(call)
                os._exit(len(set(os.listdir("/proc/self/task")) - before))
            print(os.waitstatus_to_exitcode(os.wait()[1]))
        """
    run = python("-c", textwrap.dedent(script))
    assert run.returncode == 0, run.stderr
    return dict(zip(WORKERS, map(int, run.stdout.split()), strict=True))


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux alone counts them there")
@pytest.mark.parametrize(("call", "workers"), WORKERS.items())
def test_threads_from_enough_work_on(call: str, workers: int) -> None:
    assert workers_started()[call] == workers


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux alone counts them there")
def test_compiled_operators_start_as_many_as_functions() -> None:
    run = python("-W", "ignore", "workers.py")
    assert run.returncode == 0, run.stderr
    lines = [line.split(maxsplit=2) for line in run.stdout.splitlines()]
    assert not [line for line in lines if line[0] != line[1]]
    assert {line[0] for line in lines} == {"0", "3"}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux alone says and does it")
def test_workers_are_woken_on_other_processors() -> None:
    run_script(
        """
        import os, time, numpy as np, dmlops
        usable = os.sched_getaffinity(0)
        x = np.zeros(1 << 20, np.float32)
        dmlops.set_num_threads(2)
        before = set(os.listdir("/proc/self/task"))
        dmlops.clip(x, 0, 1)
        (worker,) = set(os.listdir("/proc/self/task")) - before
        first = os.sched_getaffinity(int(worker))  # it may have slept before it was called
        assert first <= usable and len(usable - first) <= 1
        for processor in sorted(usable)[:2]:
            os.sched_setaffinity(0, {processor})
            for _ in range(3):
                time.sleep(0.01)  # the worker sleeps
                dmlops.clip(x, 0, 1)
            assert os.sched_getaffinity(int(worker)) == first  # there was no other to choose
        os.sched_setaffinity(0, usable)
        for attempt in range(100 if len(usable) > 1 else 0):
            time.sleep(0.01)
            dmlops.clip(x, 0, 1)
            allowed = os.sched_getaffinity(int(worker))
            if allowed != usable: break  # it slept
        if len(usable) > 1:
            assert len(usable - allowed) == 1 and allowed < usable, (usable, allowed)
        """
    )


def test_set_and_get() -> None:
    for count in (*COUNTS, 1024):
        assert dmlops.set_num_threads(count) is None  # type: ignore[func-returns-value]
        assert dmlops.get_num_threads() == count
    numpy_count: Any = np.int64(3)
    dmlops.set_num_threads(numpy_count)
    assert dmlops.get_num_threads() == 3


def test_the_default_is_the_processors_that_may_be_used() -> None:
    run = python("-c", "import dmlops; print(dmlops.get_num_threads())")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert int(run.stdout) == usable
    for count in ("5", "1024"):
        code = "import dmlops; print(dmlops.get_num_threads())"
        assert python("-c", code, DMLOPS_NUM_THREADS=count).stdout == f"{count}\n"


@pytest.mark.parametrize("count", [0, -1, -(2**31), 1025, 2**40])
def test_counts_out_of_range(count: int) -> None:
    dmlops.set_num_threads(2)
    with pytest.raises(ValueError, match=rf"set_num_threads.*{count}"):
        dmlops.set_num_threads(count)
    assert dmlops.get_num_threads() == 2


@pytest.mark.parametrize("count", [1.5, 2.0, "2", None, [2], b"2"])
def test_counts_of_another_type(count: Any) -> None:
    with pytest.raises(TypeError, match=rf"n must be an integer .*, not {type(count).__name__}$"):
        dmlops.set_num_threads(count)


def test_more_threads_than_any_dimension_has_elements() -> None:
    x = samples.uniform((5,) * 8, np.float32).transpose(3, 1, 4, 0, 5, 2, 7, 6)
    memory = np.full(x.size + 2048, 7, np.float32)
    out = memory[1024:-1024].reshape(x.shape)
    for count in COUNTS:
        dmlops.set_num_threads(count)
        for source in (x, x[::-1, :, ::-1]):
            out[...] = 0
            dmlops.clip(source, -2, 2, out=out)
            assert_same_bits(out, np.clip(source, -2, 2), f"{count} threads")
            assert np.all(memory[:1024] == 7)
            assert np.all(memory[-1024:] == 7)


def test_calls_from_many_threads() -> None:
    dmlops.set_num_threads(3)
    expected = {name: call() for name, call in CALLS.items()}
    small = samples.uniform((50,), np.float32)
    expected_small = dmlops.log_softmax(small)

    def work(i: int) -> None:
        names = list(CALLS)
        for name in names[i:] + names[:i]:
            assert_same_bits(CALLS[name](), expected[name], f"thread {i}: {name}")
            assert_same_bits(dmlops.log_softmax(small), expected_small, f"thread {i}: small")

    with ThreadPoolExecutor(6) as pool:
        for result in [pool.submit(work, i) for i in range(6)]:
            result.result()


def test_the_count_may_change_during_calls() -> None:
    x = samples.uniform((LARGE,), np.float32)
    expected = dmlops.hard_sigmoid(x)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for count in COUNTS:
                dmlops.set_num_threads(count)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(50):
            assert_same_bits(dmlops.hard_sigmoid(x), expected)
    finally:
        stop.set()
        changer.join()


@pytest.mark.parametrize("isa", ["baseline"], indirect=True)  # the slowest
@pytest.mark.parametrize("entry", ["function", "dispatch", "chunk"])
def test_the_interpreter_runs_on_during_a_call(entry: str, isa: str) -> None:
    """If the calls held the GIL, the counter would advance once per call."""
    x = np.linspace(-4, 4, 4_000_000, dtype=np.float32).reshape(500, 8000)
    maxima, out = x.max(axis=1), np.empty_like(x)
    described = dmlops.BufferTensorDesc.from_array(x)
    gelu = dmlops.ActivationGeluOperatorDesc(input_tensor=described, output_tensor=described)
    compiled = dmlops.Device().compile(gelu)
    calls: dict[str, Callable[[], object]] = {
        "function": lambda: dmlops.gelu(x, out=out),
        "dispatch": lambda: compiled.dispatch([x], [out]),
        "chunk": lambda: _core.softmax_sums("log_softmax", x, maxima),
    }
    start, ticks = time.perf_counter(), 0

    def repeat() -> None:
        while time.perf_counter() < start + 0.2:
            calls[entry]()

    dmlops.set_num_threads(1)
    caller = threading.Thread(target=repeat)
    caller.start()
    while caller.is_alive():
        time.sleep(0.0005)
        ticks += 1
    # 40 ms per tick, since a sleep takes 15 ms on Windows and loaded machines add to it.
    assert ticks > (time.perf_counter() - start) / 0.04


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_under_signals() -> None:
    run_script(
        """
        import signal, numpy as np, dmlops
        ticks = 0
        def tick(*_):
            global ticks
            ticks += 1
        signal.signal(signal.SIGALRM, tick)
        x = np.arange(1_000_003, dtype=np.float32)
        expected = dmlops.hard_sigmoid(x)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        while ticks < 100:
            assert (dmlops.hard_sigmoid(x) == expected).all()
        signal.setitimer(signal.ITIMER_REAL, 0)
        """,
        DMLOPS_NUM_THREADS="3",
    )


FORK = """
    import os, sys, threading, numpy as np, dmlops
    x = np.arange(2_000_003, dtype=np.float32)
    expected = dmlops.hard_sigmoid(x, 1e-6, 0.1)  # the pool's threads start here

    def check():
        assert (dmlops.hard_sigmoid(x, 1e-6, 0.1) == expected).all()

    def in_child(work):
        child = os.fork()
        if child == 0:
            try:
                work()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("threads", ["1", "2", "7"])
def test_after_fork(threads: str) -> None:
    work = """
    for _ in range(5):
        in_child(lambda: (check(), in_child(check), check()))  # in a child, and in a child's child
        check()
    """
    run_script(FORK + work, DMLOPS_NUM_THREADS=threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_another_thread_calls() -> None:
    work = """
    stop = threading.Event()
    def busy():
        while not stop.is_set():
            check()
    others = [threading.Thread(target=busy) for _ in range(2)]
    for other in others: other.start()
    for _ in range(30):
        in_child(lambda: (check(), check()))
    stop.set()
    for other in others: other.join()
    """
    run_script(FORK + work, DMLOPS_NUM_THREADS="3")


def test_exit_with_idle_and_with_busy_threads() -> None:
    run_script("import numpy as np, dmlops; dmlops.clip(np.zeros(10**7, np.float32), 0, 1)")
    run_script(
        """
        import threading, numpy as np, dmlops
        x = np.zeros(10**6, np.float32)
        def busy():
            while True:
                dmlops.clip(x, 0, 1)
        threading.Thread(target=busy, daemon=True).start()
        dmlops.clip(x, 0, 1)
        """,
        DMLOPS_NUM_THREADS="3",
    )
