"""The stack that kernels need, which keep their blocks on it."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest
from subprocesses import run_script

from dmlops import _core

MODULE = Path(str(_core.__file__)).read_bytes()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc sets the default stack")
def test_workers_have_stacks_that_kernels_fit() -> None:
    run_script(
        """
        import ctypes, numpy as np, dmlops
        from dmlops import _core
        libc = ctypes.CDLL(None)
        attributes = ctypes.create_string_buffer(64)
        libc.pthread_attr_init(attributes)
        libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(128 * 1024))  # musl's default
        assert libc.pthread_setattr_default_np(attributes) == 0
        dmlops.set_num_threads(4)
        x = np.ones((300, 640), np.float32)
        ones = np.ones((1, 640), np.float32)
        for isa in dmlops.available_isas():
            _core.set_isa(isa)
            for function in (dmlops.softmax, dmlops.log_softmax, dmlops.hardmax):
                function(x, axes=0), function(x, axes=1)
            for c in (64, 640):
                y, one = x[:, :c], ones[:, :c]
                _, mean, variance = dmlops.batch_normalization_training(y, one, one)
                dmlops.batch_normalization_training_grad(y, y, mean, variance, one)
        """
    )


@pytest.mark.skipif(sys.platform != "linux", reason="Python's own frames may be larger")
@pytest.mark.skipif(b"__asan_init" in MODULE, reason="sanitizers enlarge frames")
def test_a_calling_thread_needs_512_kib_of_stack() -> None:
    run_script(
        """
        import threading, numpy as np, dmlops
        from dmlops import _core

        def call():
            for isa, dtype in ((i, t) for i in dmlops.available_isas() for t in ("f4", "f2")):
                _core.set_isa(isa)
                last = np.ones((3, 1700, 16), dtype).transpose(0, 2, 1)  # results in memory's order
                shapes = ((1, 5000), 1), ((5000, 3), 0), ((2, 2500, 16), (0, 1))
                for x, axes in ((last, (1, 2)), *((np.ones(s, dtype), axes) for s, axes in shapes)):
                    one = np.ones_like(x.sum(axes, keepdims=True))
                    for function in (dmlops.softmax, dmlops.log_softmax, dmlops.hardmax):
                        function(x, axes)
                    dmlops.mean_variance_normalization(x, axes=axes)
                    dmlops.batch_normalization_training(x, one, one, fused_activation="relu")
                    dmlops.batch_normalization_grad(x, x, one, one, one)
                    dmlops.batch_normalization_training_grad(x, x, one, one, one)

        dmlops.set_num_threads(2)
        _core.set_split_threshold(256)
        threading.stack_size(544 * 1024)  # with 32 KiB for the interpreter
        done = []
        thread = threading.Thread(target=lambda: (call(), done.append(True)))
        thread.start(), thread.join()
        assert done
        """
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the rest of a stack")
@pytest.mark.skipif(b"__asan_init" in MODULE, reason="sanitizers enlarge frames")
@pytest.mark.parametrize("kib", range(144, 512, 24))
def test_operators_that_are_not_refused_fit(kib: int) -> None:
    run_script(
        f"""
        import threading, numpy as np, dmlops
        from dmlops import _core

        def attempt(function, *arguments, **options):
            try:
                function(*arguments, **options)
            except ValueError as error:
                assert "the calling thread has" in str(error)

        def call():
            for isa, dtype in ((i, t) for i in dmlops.available_isas() for t in ("f4", "f2")):
                _core.set_isa(isa)
                x = np.ones((21, 1120), dtype).T
                out = np.empty(x.shape, dtype)
                p = np.ones((1120, 1), dtype)
                each = np.ones((1120, 21), dtype)
                for parameters in ((p, p, p, p), (each, each, each, p)):
                    attempt(dmlops.batch_normalization, x, *parameters, out=out)
                    attempt(
                        dmlops.batch_normalization, x, *parameters, fused_activation="tanh", out=out
                    )
                attempt(dmlops.softmax, x, axes=0, out=out)
                attempt(dmlops.log_softmax, x, axes=0, out=out)
                attempt(dmlops.mean_variance_normalization, x, each, axes=0, out=out)
                attempt(dmlops.batch_normalization_training_grad, x, each, p, p, p)
            done.append(True)

        dmlops.set_num_threads(1)
        threading.stack_size({kib} * 1024)
        done = []
        thread = threading.Thread(target=call)
        thread.start(), thread.join()
        assert done
        """
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the rest of a stack")
@pytest.mark.skipif(b"__asan_init" in MODULE, reason="sanitizers enlarge frames")
def test_threads_with_small_stacks() -> None:
    """An operator that does not fit is refused before it writes; small dense calls need little."""
    run_script(
        """
        import threading, numpy as np, dmlops

        def refused(function, *arrays, **options):
            try:
                function(*arrays, **options)
            except ValueError as error:
                return "the calling thread has" in str(error)
            return False

        def call():
            x = np.full((300, 640), 7, np.float32)
            out = np.zeros((640, 300), np.float32).T
            one = np.ones((1, 640), np.float32)
            assert refused(dmlops.tanh, x[::2, ::2])
            for function in (dmlops.softmax, dmlops.hardmax, dmlops.mean_variance_normalization):
                assert refused(function, x, axes=1, out=out)
            assert refused(dmlops.batch_normalization_training, x, one, one)
            assert refused(dmlops.softmax, x[:2, :9])
            tensor = dmlops.BufferTensorDesc.from_array(x)
            desc = dmlops.ActivationSoftmaxOperatorDesc(input_tensor=tensor, output_tensor=tensor)
            assert refused(dmlops.Device().compile(desc).dispatch, [x], [x.copy()])
            assert (x == 7).all() and not out.any()
            assert (dmlops.clip(x[0], 0, 6) == 6).all()
            done.append(True)

        threading.stack_size(100 * 1024)
        done = []
        thread = threading.Thread(target=call)
        thread.start(), thread.join()
        assert done
        """
    )
