"""The caller's floating-point state (rounding, flushing) changes no result and is not changed."""

from __future__ import annotations

import ctypes
import platform
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from operators import OPERATORS, operator_names
from reference import assert_same_bits
from subprocesses import python

import dmlops

Array = npt.NDArray[Any]

# fenv_t of x86-64 glibc: seven words of the old unit, then MXCSR.
FENV_BYTES, MXCSR_OFFSET = 32, 28
STATES = {
    "round down": 0x2000,
    "round up": 0x4000,
    "truncate, flush both": 0xE040,
}

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="sets the processor's state by the layout of glibc's fenv_t on x86-64",
)


@contextmanager
def float_state(bits: int) -> Iterator[None]:
    """Set bits of MXCSR; expect to find them as they were set."""
    libm = ctypes.CDLL("libm.so.6")
    usual, changed, after = (ctypes.create_string_buffer(FENV_BYTES) for _ in range(3))
    assert libm.fegetenv(usual) == 0
    changed.raw = usual.raw
    control = ctypes.c_uint32.from_buffer(changed, MXCSR_OFFSET)
    control.value |= bits
    assert libm.fesetenv(changed) == 0
    try:
        yield
        assert libm.fegetenv(after) == 0
    finally:
        assert libm.fesetenv(usual) == 0
    found = ctypes.c_uint32.from_buffer(after, MXCSR_OFFSET)
    sticky = 0x3F  # flags of past operations, not modes
    assert found.value & ~sticky == control.value & ~sticky


def inputs(dtype: str, count: int) -> Array:
    """Return ordinary values and, among them, subnormal ones."""
    x = samples.uniform((3, count), dtype, -2, 2)
    if np.dtype(dtype).kind == "f":
        x[:, ::5] = np.finfo(dtype).tiny * x[:, ::5]
    return x


def test_the_state_is_truly_set() -> None:
    tiny, third = np.array([1e-40], np.float32), np.array([1 / 3], np.float32)
    with float_state(STATES["truncate, flush both"]):
        flushed = tiny * np.float32(1)
    assert flushed[0] == 0
    with float_state(STATES["round up"]):
        up = third * third
    with float_state(STATES["round down"]):
        down = third * third
    assert up[0] > down[0]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", operator_names())
def test_results_do_not_depend_on_the_state(name: str, state: str) -> None:
    operator, dtype = OPERATORS[name]
    for count, threads in ((1, 1), (77, 1), (200_003, 1), (200_003, 5)):
        dmlops.set_num_threads(threads)
        x = inputs(dtype, count)
        expected, result = operator(x), np.empty_like(x)
        with float_state(STATES[state]):
            operator(x, out=result)
        assert_same_bits(result, expected, f"{name}, {state}, {count} elements, {threads} threads")


def test_workers_do_not_inherit_the_state() -> None:
    """The first call copies an overlapping input, for which it creates workers."""
    script = """
        import numpy as np, dmlops, test_float_state as t
        x = -np.geomspace(1e-42, 1, 1_000_003, dtype=np.float32)
        values, slope, result = x[:-1].copy(), np.full(1, 0.3, np.float32), x[1:]
        with t.float_state(t.STATES["truncate, flush both"]):
            dmlops.parameterized_relu(x[:-1], slope, out=result)
        dmlops.set_num_threads(1)
        expected = dmlops.parameterized_relu(values, slope)
        t.assert_same_bits(result, expected, "the first call")
        """
    run = python("-c", textwrap.dedent(script), DMLOPS_NUM_THREADS="3")
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("state", STATES)
def test_parameters_are_rounded_alike_in_every_state(state: str) -> None:
    x = samples.uniform((99,), np.float32)
    half = x.astype(np.float16)
    channel, variance = x[:1], abs(x[:1])

    def results() -> list[Array]:
        return [
            dmlops.hard_sigmoid(x, 0.1, 0.3),
            dmlops.clip(x, -0.1, 0.3),
            dmlops.clip(half, -0.1, 0.3),
            dmlops.clip(x, scale_bias=dmlops.ScaleBias(0.1, 0.3)),
            dmlops.batch_normalization(x, channel, variance, channel, channel, 0.1),
        ]

    expected = results()
    with float_state(STATES[state]):
        actual = results()
    for i, (one, other) in enumerate(zip(actual, expected, strict=True)):
        assert_same_bits(one, other, f"call {i}, {state}")
