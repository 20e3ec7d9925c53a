"""Objects that threads share while other threads change or release them.

Meant for free-threaded Python, where only the module synchronizes the calls; with the GIL, the same
must hold.
"""

from __future__ import annotations

import pickle
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from subprocesses import python

import dmlops
from dmlops import (
    ActivationLogSoftmax1OperatorDesc,
    BindingError,
    BufferTensorDesc,
    Device,
    TensorFlags,
)

Array = npt.NDArray[Any]

WORKERS = 6
REPEATS = 300
# A race drops a list's item between two instructions; 300 repetitions rarely hit the race.
MANY = 20_000 if sysconfig.get_config_var("Py_GIL_DISABLED") else REPEATS
SHAPE = (3, 5, 7)


def together(work: Callable[[int], None], *, beside: Callable[[int], None] | None = None) -> None:
    """Start `work` on all threads at once, while another repeats `beside`; raise their errors."""
    start, stop = threading.Barrier(WORKERS + (beside is not None)), threading.Event()

    def worker(i: int) -> None:
        start.wait()
        work(i)

    def other(beside: Callable[[int], None]) -> None:
        start.wait()
        k = 0
        while not stop.is_set():
            beside(k)
            k += 1

    with ThreadPoolExecutor(WORKERS + 1) as pool:
        changer = pool.submit(other, beside) if beside else None
        try:
            for result in [pool.submit(worker, i) for i in range(WORKERS)]:
                result.result()
        finally:
            stop.set()
        if changer:
            changer.result()


def desc(x: Array, flags: TensorFlags = TensorFlags.NONE) -> ActivationLogSoftmax1OperatorDesc:
    return ActivationLogSoftmax1OperatorDesc(
        input_tensor=BufferTensorDesc.from_array(x, flags=flags),
        output_tensor=BufferTensorDesc.from_array(x),
        axes=(0, 2),
    )


@pytest.fixture(scope="module")
def x() -> Array:
    return samples.uniform(SHAPE, np.float32)


@pytest.fixture(scope="module")
def expected(x: Array) -> Array:
    return dmlops.log_softmax(x, (0, 2))


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="has the lock")
def test_the_import_leaves_the_lock_off() -> None:
    run = python("-W", "error", "-c", "import dmlops, sys; print(sys._is_gil_enabled())")
    assert run.stdout == "False\n", run.stderr


def test_first_calls_at_once() -> None:
    """One-time initialization runs once, in one of the threads."""
    run = python(
        *("-W", "error", "-c"),
        f"""if True:
            import threading, numpy as np
            start, problems = threading.Barrier({WORKERS}), []
            x = np.linspace(-2, 2, 400_000, dtype=np.float32)
            def work():
                start.wait()
                import dmlops
                try:
                    y = dmlops.log_softmax(input=x, axes=0)
                    assert (dmlops.clip(input=x, min=0, max=1) == x.clip(0, 1)).all()
                    tensor = dmlops.BufferTensorDesc.from_array(x)
                    ready = dmlops.Device().compile(dmlops.ActivationLogSoftmaxOperatorDesc(
                        input_tensor=tensor, output_tensor=tensor))
                    out = np.empty_like(x)
                    ready.dispatch(inputs=[x], outputs=[out])
                    assert (out == y).all()
                except BaseException as problem:
                    problems.append(problem)
            threads = [threading.Thread(target=work) for _ in range({WORKERS})]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            assert not problems, problems
        """,
        DMLOPS_NUM_THREADS="3",
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_lists_that_another_thread_changes(x: Array, expected: Array) -> None:
    """A call uses the list's items at the time of reading, or is refused."""
    ready, owner = Device().compile(desc(x)), desc(x, TensorFlags.OWNED_BY_DML)
    axes: list[Any] = [0, 2]
    bound: list[Any] = [x]
    named: dict[str, Any] = {"input_tensor": x}

    def change(_: int) -> None:
        axes.clear()
        bound.clear()
        named.clear()
        axes.extend([0, 2])
        bound.append(x.copy())
        named["input_tensor"] = x.copy()

    def work(_: int) -> None:
        out = np.empty_like(x)
        calls: tuple[Callable[[], Any], ...] = (
            lambda: np.copyto(out, dmlops.log_softmax(x, axes)),
            lambda: ready.dispatch(bound, [out]),
            lambda: ready.dispatch(named, [out]),
            lambda: Device().compile(owner, initial=bound).dispatch([None], [out]),
        )
        for call in calls * MANY:
            out.fill(7)
            try:
                call()
            except (BindingError, IndexError, KeyError, RuntimeError, ValueError):
                assert (out == 7).all()
            else:
                # One of the two axes is a list of axes too.
                assert np.array_equal(out, expected) or call is calls[0]

    together(work, beside=change)
    assert np.array_equal(dmlops.log_softmax(x, axes), expected)


def test_operators_that_another_thread_drops(x: Array, expected: Array) -> None:
    """An operator that owns bytes is released during calls by other threads."""
    owner = desc(x, TensorFlags.OWNED_BY_DML)
    slot = [Device().compile(owner, initial=[x])]

    def replace(_: int) -> None:
        slot[0] = Device().compile(owner, initial=[x])

    def work(_: int) -> None:
        out = np.empty_like(x)
        for _ in range(REPEATS):
            out.fill(7)
            slot[0].dispatch([None], [out])
            assert np.array_equal(out, expected)

    together(work, beside=replace)


def test_descriptors_are_shared(x: Array) -> None:
    shared = desc(x)
    text, digest, raw = repr(shared), hash(shared), pickle.dumps(shared)
    device = Device()

    def work(i: int) -> None:
        for _ in range(REPEATS // 3):
            assert repr(shared) == text
            assert hash(shared) == digest
            assert pickle.loads(raw) == shared
            assert text in repr(device.compile(shared))
            with pytest.raises(dmlops.ValidationError, match=f"{i + 9}"):
                device.compile(
                    ActivationLogSoftmax1OperatorDesc(
                        input_tensor=shared.input_tensor,
                        output_tensor=shared.output_tensor,
                        axes=(i + 9,),
                    )
                )

    together(work)


def test_results_are_dropped_elsewhere(x: Array, expected: Array) -> None:
    """An array made by one thread, freed by another, while the thread count changes."""
    slots: list[Any] = [None] * WORKERS

    def configure(k: int) -> None:
        dmlops.set_num_threads(1 + k % 4)
        assert 1 <= dmlops.get_num_threads() <= 4
        assert dmlops.isa() in dmlops.available_isas()

    def work(i: int) -> None:
        for k in range(REPEATS):
            slots[(i + k) % WORKERS] = dmlops.log_softmax(x, (0, 2))
            view = slots[(i + 2 * k) % WORKERS]
            assert view is None or np.array_equal(view, expected)

    together(work, beside=configure)
