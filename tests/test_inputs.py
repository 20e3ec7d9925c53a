"""Inputs other than plain arrays: the buffer protocol, DLPack, and NumPy's subclasses."""

from __future__ import annotations

import array
import ctypes
import gc
import math
import sys
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from bound_memory import DLPack
from reference import assert_same_bits

import dmlops

Array = npt.NDArray[Any]
TYPECODES = {"f": "float32", "b": "int8", "B": "uint8", "h": "int16", "H": "uint16", "i": "int32"}
TYPECODES |= {
    "I": "uint32",
    "q": "int64",
    "Q": "uint64",
    "l": f"int{8 * ctypes.sizeof(ctypes.c_long)}",
}


class OldExporter(DLPack):
    """An object that offers DLPack before 1.0: only the option `stream`, the old capsule."""

    def __dlpack__(self, stream: object = None) -> Any:  # type: ignore[override]
        return self.values.__dlpack__()


class ElsewhereExporter(OldExporter):
    """An object that offers DLPack on CUDA: device type 2, in the field after the data pointer."""

    def __dlpack__(self, stream: object = None) -> Any:  # type: ignore[override]
        capsule = super().__dlpack__()
        get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
        get_pointer.restype = ctypes.c_void_p
        get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        address = get_pointer(capsule, b"dltensor")
        ctypes.c_int32.from_address(address + ctypes.sizeof(ctypes.c_void_p)).value = 2
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


@pytest.mark.parametrize("code", TYPECODES)
def test_array_array(code: str) -> None:
    values = array.array(code, [0, 1, 2, 3, 100])
    result = dmlops.clip(values, 1, 3)
    assert type(result) is np.ndarray
    assert result.dtype == TYPECODES[code]
    assert result.tolist() == [1, 1, 2, 3, 3]
    assert values.tolist() == [0, 1, 2, 3, 100]


def test_memoryviews() -> None:
    raw = bytearray(range(24))
    table = memoryview(raw).cast("B", (4, 6))
    assert dmlops.clip(table, 3, 9).tolist() == np.arange(24).clip(3, 9).reshape(4, 6).tolist()
    assert (
        dmlops.clip(memoryview(raw)[::-2], 3, 9).tolist()
        == np.arange(23, -1, -2).clip(3, 9).tolist()
    )
    assert dmlops.clip(memoryview(bytes(raw)), 3, 9).tolist() == np.arange(24).clip(3, 9).tolist()
    assert dmlops.clip(raw, 3, 9).tolist() == np.arange(24).clip(3, 9).tolist()
    floats = memoryview(np.arange(6, dtype=np.float32).tobytes()).cast("f", (2, 3))
    assert_same_bits(dmlops.log_softmax(floats), dmlops.log_softmax(np.asarray(floats)))
    half = memoryview(np.arange(6, dtype=np.float16))  # type: ignore[arg-type]
    assert dmlops.hard_sigmoid(half).dtype == np.float16


def test_ctypes_arrays() -> None:
    table: Any = ctypes.c_float * 3 * 2
    assert dmlops.clip(table((1, 2, 3), (4, 5, 6)), 2, 5).tolist() == [[2, 2, 3], [4, 5, 5]]


def test_parameters_may_be_buffers() -> None:
    x = samples.uniform((4, 3), np.float32)
    values = [np.full((1, 3), v, np.float32) for v in (1, 2, 3, 4)]
    expected = dmlops.batch_normalization(x, *values)
    wrappers: tuple[Any, ...] = (memoryview, DLPack, OldExporter)
    for wrap in wrappers:
        assert_same_bits(dmlops.batch_normalization(wrap(x), *map(wrap, values)), expected)


@pytest.mark.parametrize("exporter", [DLPack, OldExporter])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint16", "int64", "uint64"])
def test_dlpack(exporter: type[DLPack], dtype: str) -> None:
    x = samples.any_bits((5, 7), dtype)
    for view in (x, x.T, x[::2, 1:], x[:, ::-1], x[:0], x[2, 3, ...], np.zeros((1, 5, 1), dtype)):
        assert_same_bits(dmlops.clip(exporter(view), 2, 9), dmlops.clip(view, 2, 9))


def test_buffers_that_numpy_cannot_read() -> None:
    released = memoryview(bytearray(4))
    released.release()
    pointers = (ctypes.pointer(ctypes.c_float(1)), (ctypes.c_void_p * 2)())
    value: Any
    for value in (released, *pointers):
        with pytest.raises(BufferError, match=r"relu: input cannot be .*the buffer protocol: "):
            dmlops.relu(value)
        with pytest.raises(BufferError, match=r"relu: out cannot be .*the buffer protocol: "):
            dmlops.relu(np.zeros(2, np.float32), out=value)


class DLTensor(ctypes.Structure):
    """DLManagedTensor of DLPack, of a dense float64 vector."""

    _fields_ = (
        *(("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32)),
        *(("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)),
        *(("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)),
        *(("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)),
    )


def test_an_error_survives_a_deleter_in_python() -> None:
    deleted: list[int] = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleted.append)
    data = (ctypes.c_double * 3)()
    shape = (ctypes.c_int64 * 1)(3)
    device = (ctypes.c_int32 * 2)(1, 0)  # the CPU
    tensor = DLTensor(
        *(ctypes.addressof(data), device, 1, 2, 64, 1, ctypes.addressof(shape)),
        *(None, 0, None, ctypes.cast(deleter, ctypes.c_void_p).value),
    )
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )

    class Exporter:
        def __dlpack__(self, **_: Any) -> Any:
            return new(ctypes.addressof(tensor), b"dltensor", None)

        def __dlpack_device__(self) -> Any:
            return 1, 0

    with pytest.raises(TypeError, match="relu: input has dtype float64"):
        dmlops.relu(Exporter())
    assert len(deleted) == 1


def test_dlpack_is_released() -> None:
    class Tracked(np.ndarray[Any, Any]):
        """A subclass, since a plain array takes no weak reference to its end from DLPack."""

    x = np.arange(1000, dtype=np.float32).view(Tracked)
    gone = weakref.ref(x)
    count = sys.getrefcount(x)
    for _ in range(10):
        dmlops.clip(DLPack(x), 0, 1)
        with pytest.raises(TypeError, match="input has dtype float64"):
            dmlops.clip(DLPack(x.astype(np.float64)), 0, 1)
    assert sys.getrefcount(x) == count
    del x
    gc.collect()
    assert gone() is None


def test_references_are_released() -> None:
    x, out = np.zeros(10, np.float32), np.zeros(10, np.float32)
    before = sys.getrefcount(x), sys.getrefcount(out)
    for _ in range(10):
        dmlops.clip(x, 0, 1, out=out)
        dmlops.batch_normalization(x, x, x, x, x, out=out)
        with pytest.raises(ValueError, match="out"):
            dmlops.clip(x[:5], out=out)
        with pytest.raises(TypeError, match="min must be a number"):
            dmlops.clip(x, "a", out=out)  # type: ignore[call-overload]
    assert (sys.getrefcount(x), sys.getrefcount(out)) == before
    raw = bytearray(12)
    dmlops.clip(memoryview(raw), 0, 1)
    raw.append(0)  # refused while a buffer is held


def test_dlpack_elsewhere_is_refused() -> None:
    with pytest.raises((TypeError, ValueError, BufferError), match=r"clip.*input.*CPU"):
        dmlops.clip(ElsewhereExporter(np.zeros(3, np.float32)))


def test_numpy_subclasses_and_views_of_records(tmp_path: Path) -> None:
    records = np.zeros(9, [("tag", "u1"), ("value", "f4"), ("half", "f2")])
    records["value"], records["half"] = np.arange(9), np.arange(9)
    assert records["value"].strides == (7,)
    assert dmlops.clip(records["value"], 2, 5).tolist() == np.arange(9).clip(2, 5).tolist()
    assert dmlops.clip(records["half"], 2, 5).tolist() == np.arange(9).clip(2, 5).tolist()
    dmlops.clip(records["value"], 2, 5, out=records["value"])
    assert records["value"].tolist() == np.arange(9).clip(2, 5).tolist()
    assert records["half"].tolist() == list(range(9))
    assert not records["tag"].any()
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(4, 5))
    mapped[...] = np.arange(20).reshape(4, 5)
    assert dmlops.clip(mapped, 3, 8).tolist() == np.arange(20).clip(3, 8).reshape(4, 5).tolist()
    real = (np.arange(6) + 1j).astype(np.complex64).real
    assert dmlops.clip(real, 2, 4).tolist() == [2, 2, 2, 3, 4, 4]


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_numpy_scalars_become_numpy_scalars(kind: Any) -> None:
    x = kind(0.75)
    for function in (dmlops.gelu, dmlops.clip, dmlops.log_softmax):
        result = function(x)
        assert type(result) is kind
        assert_same_bits(np.asarray(result), function(np.array([x]))[0, ...])
    assert type(dmlops.batch_normalization(x, *[np.array(x)] * 4)) is kind
    array = np.array(x)
    assert type(dmlops.gelu(array)) is np.ndarray
    assert dmlops.gelu(x, out=array) is array
    with pytest.raises(TypeError, match=r"gelu: out .*numpy\.empty_like\(input\)"):
        dmlops.gelu(array, out=x)


def test_integer_scalars() -> None:
    result = dmlops.clip(np.uint8(9), 2, 6)
    assert type(result) is np.uint8
    assert result == 6


@pytest.mark.parametrize("code", "bBhHiIlLqQ")
def test_every_integer_type_of_c(code: str) -> None:
    """C has several types of the same size, which NumPy numbers apart."""
    x = np.arange(5).astype(code)
    result = dmlops.clip(x, 1, 3)
    assert result.dtype == x.dtype
    assert result.tolist() == [1, 1, 2, 3, 3]


def test_native_byte_order_by_any_name() -> None:
    native = "<" if sys.byteorder == "little" else ">"
    x = np.arange(5, dtype=f"{native}f4")
    assert dmlops.clip(x, 1, 3).tolist() == [1, 1, 2, 3, 3]


@pytest.mark.parametrize(
    "low", [True, np.float32(1), np.float64(1), np.int8(1), np.uint64(1), np.array(1.0)]
)
def test_bounds_of_any_numeric_kind(low: Any) -> None:
    assert dmlops.clip(np.arange(3, dtype=np.float32), low).tolist() == [1, 1, 2]
    assert dmlops.clip(np.arange(3, dtype=np.int16), low).tolist() == [1, 1, 2]


def test_float_limits_as_bounds_of_integers() -> None:
    x = np.array([-128, 0, 127], np.int8)
    assert dmlops.clip(x, -math.inf, math.inf).tolist() == [-128, 0, 127]
    assert dmlops.clip(x, math.nan, math.nan).tolist() == [-128, 0, 127]


def unrelated_dask() -> ModuleType:
    module = ModuleType("dask.array")
    module.Array = type("Array", (), {})  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize("module", [None, ModuleType("dask.array"), unrelated_dask()])
def test_a_dask_that_cannot_be_imported(
    module: ModuleType | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry None in sys.modules forbids the import; the argument is refused as usual."""
    for name in ("dask", "dmlops._dask"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "dask.array", module)
    with pytest.raises(TypeError, match=r"clip: input must be a numpy\.ndarray"):
        dmlops.clip([1.0])  # type: ignore[call-overload]
