"""Resources: failures to get memory and threads, leaks, and the cost of the import."""

from __future__ import annotations

import sys
import sysconfig

import pytest
from subprocesses import run_script

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
    run_script(
        """
        import _testcapi, sys, types, numpy as np, dmlops
        from dmlops import BufferBinding, BufferTensorDesc, _core
        x, out = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), np.empty((2, 3), np.float32)
        tensor = BufferTensorDesc.from_array(x)
        described = dict(input_tensor=tensor, output_tensor=tensor, min=0.0, max=1.0)
        desc = dmlops.ElementWiseClipOperatorDesc(**described)
        other = BufferTensorDesc(tensor.data_type, (2, 4))
        wrong = dmlops.ElementWiseClipOperatorDesc(**(described | {"output_tensor": other}))
        owned = BufferTensorDesc.from_array(x, flags=dmlops.TensorFlags.OWNED_BY_DML)
        owning = dmlops.ElementWiseClipOperatorDesc(**(described | {"input_tensor": owned}))
        relu = dmlops.ActivationReluOperatorDesc()
        device = dmlops.Device()
        Lazy = type("Lazy", (), {})  # stands for a dask array
        lazy, refused, transposed = Lazy(), {"max": 1}, x.T
        sys.modules["dask.array"] = types.SimpleNamespace(Array=Lazy)
        sys.modules["dmlops._dask"] = types.SimpleNamespace(
            call=lambda name, given, named: NotImplemented if named == refused else given
        )
        assert dmlops.clip(lazy, 0) == (lazy, 0)
        compiled = device.compile(desc)
        calls = (
            (lambda: dmlops.clip(input=x, min=0, max=1), None),
            (lambda: dmlops.clip(x, 0, 1, scale_bias=dmlops.ScaleBias(1, 0)), None),
            (lambda: dmlops.clip(x[:, :-1], 0, 1, out=x[:, 1:]), None),
            (lambda: dmlops.log_softmax(x, [0, 1]), None),
            (lambda: dmlops.batch_normalization(x, x, x, x, x, fused_activation=relu), None),
            (lambda: device.compile(desc), None),
            (lambda: compiled.dispatch([x], [out]), None),
            (lambda: compiled.dispatch({"input_tensor": x}, [BufferBinding(out)]), None),
            (lambda: _core.validate(wrong, 0x6400), "ValidationError"),
            (lambda: dmlops.clip("text"), "TypeError"),
            (lambda: dmlops.clip(lazy, 0, max=2), None),
            (lambda: dmlops.clip(lazy, max=1), "TypeError"),
            (lambda: _core.compile(owning, 0x6400, ["text"]), "TypeError"),
            (lambda: _core.compile(owning, 0x6400, [transposed]), "BindingError"),
            (lambda: dmlops.log_softmax(x, 2), "ValueError"),
            (lambda: compiled.dispatch([], [out]), "BindingError"),
        )
        if sys.version_info[:2] != (3, 12):  # which crashes in any f-string, NumPy's too
            calls += ((lambda: repr(compiled), None),)
        failures = 0
        for k, (call, refusal) in enumerate(calls):
            for n in range(1, 150):
                raised = None
                try:
                    try:
                        _testcapi.set_nomemory(n, n + 1)
                        call()
                    finally:
                        _testcapi.remove_mem_hooks()
                except Exception as error:
                    raised = type(error).__name__
                assert raised in (refusal, "MemoryError"), (k, n, raised)
                failures += raised == "MemoryError"
        assert failures > 50, failures
        assert (dmlops.clip(x, 0, 1) == x.clip(0, 1)).all()
        """
    )


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
    """10^5 calls, uses of compiled operators and errors, after some that fill caches: less than a
    byte for each.
    """
    run_script(
        """
        import numpy as np, dmlops
        from dmlops import BufferTensorDesc, ElementWiseClipOperatorDesc, Device, ValidationError
        x, out = np.ones((2, 3), np.float32), np.empty((2, 3), np.float32)
        one = [np.ones((1, 3), np.float32)] * 4
        tensor = BufferTensorDesc.from_array(x)
        desc = ElementWiseClipOperatorDesc(
            input_tensor=tensor, output_tensor=tensor, min=0.0, max=1.0)
        owned = BufferTensorDesc.from_array(x, flags=dmlops.TensorFlags.OWNED_BY_DML)
        owner = ElementWiseClipOperatorDesc(
            input_tensor=owned, output_tensor=tensor, min=0.0, max=1.0)
        wrong = ElementWiseClipOperatorDesc(
            input_tensor=tensor, output_tensor=BufferTensorDesc(tensor.data_type, (2, 4)),
            min=0.0, max=1.0)
        device = Device()
        compiled = device.compile(desc)

        def refused(call):
            try:
                call()
            except (ValidationError, ValueError, TypeError):
                return
            raise SystemExit("not refused")

        calls = (
            lambda: dmlops.clip(x, 0, 1, out=out),
            lambda: dmlops.log_softmax(x, axes=[0, 1]),
            lambda: dmlops.batch_normalization(x, *one, out=out),
            lambda: dmlops.clip(memoryview(x), 0, 1),
        )
        operators = (
            lambda: device.compile(desc),
            lambda: device.compile(owner, initial=[x]).dispatch([None], [out]),
            lambda: compiled.dispatch(inputs=[x], outputs=[out]),
            lambda: compiled.dispatch(inputs={"input_tensor": x}, outputs=(out,)),
        )
        errors = (
            lambda: refused(lambda: device.compile(wrong)),
            lambda: refused(lambda: dmlops.clip("text")),
            lambda: refused(lambda: dmlops.log_softmax(x, axes=["a"])),
            lambda: refused(lambda: compiled.dispatch([x, x], [out])),
            lambda: refused(lambda: compiled.dispatch({"no_tensor": x}, [out])),
        )

        def resident():
            with open("/proc/self/smaps_rollup") as smaps:
                return sum(int(line.split()[1]) for line in smaps if line.startswith("Private_D"))

        for group in (calls, operators, errors):
            repeats = 100_000 // len(group)
            for call in group:
                for _ in range(2000):
                    call()
            before = resident()
            for call in group:
                for _ in range(repeats):
                    call()
            grown = 1024 * (resident() - before)
            assert grown < 100_000, f"{grown} bytes"
        """
    )


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
