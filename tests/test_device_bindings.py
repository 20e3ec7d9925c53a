"""Bindings of compiled operators: accepted ones, and refusals before a byte is written."""

from __future__ import annotations

import array
import ctypes
import mmap
from collections.abc import Callable
from multiprocessing import shared_memory
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from bound_memory import CLIP, CLIPPED, DLPack, X, refused
from descriptors import batch_normalization, clip, tensor

import dmlops
from dmlops import BindingError, BufferBinding, BufferTensorDesc, Device

Array = npt.NDArray[Any]


def _bytearray(values: Array) -> Any:
    return bytearray(values.tobytes())


def _array(values: Array) -> Any:
    return array.array("f", values.tolist())


def _mmap(values: Array) -> Any:
    memory = mmap.mmap(-1, values.nbytes)
    memory[:] = values.tobytes()
    return memory


def _shared(values: Array) -> Any:
    memory = shared_memory.SharedMemory(create=True, size=values.nbytes)
    memory.unlink()  # the mapping stays until it is closed
    _SHARED.append(memory)  # whose end would close it
    buffer = memory.buf
    assert buffer is not None
    buffer[: values.nbytes] = values.tobytes()
    return buffer[: values.nbytes]


_SHARED: list[shared_memory.SharedMemory] = []

_MEMORY: dict[str, Callable[[Array], Any]] = {
    "ndarray": np.copy,
    "bytes of ndarray": lambda values: values.copy().view(np.uint8),
    "bytearray": _bytearray,
    "memoryview": lambda values: memoryview(_bytearray(values)),
    "array.array": _array,
    "mmap": _mmap,
    "shared memory": _shared,
    "BufferBinding": lambda values: BufferBinding(values.copy()),
    "BufferBinding of ctypes": lambda values: BufferBinding(
        ctypes.create_string_buffer(values.tobytes(), values.nbytes)
    ),
    "BufferBinding of DLPack": lambda values: BufferBinding(DLPack(values.copy())),
    "BufferBinding of structures": lambda values: BufferBinding(
        values.copy().view([("a", ">i2"), ("b", "S2")])
    ),
    "BufferBinding in Fortran order": lambda values: BufferBinding(
        np.asfortranarray(values.reshape(3, 2, order="F"))
    ),
    "DLPack": lambda values: DLPack(values.copy()),
}


def _values(memory: Any) -> Array:
    if isinstance(memory, BufferBinding):
        memory = memory.buffer
        if isinstance(memory, np.ndarray):
            memory = memory.reshape(-1, order="A").view(np.float32)
    if isinstance(memory, DLPack):
        return memory.values
    return np.frombuffer(memory, np.float32)


@pytest.mark.parametrize("kind", _MEMORY)
@pytest.mark.parametrize("form", ["list", "tuple", "dict", "keywords"])
def test_kinds_of_memory(kind: str, form: str) -> None:
    source, target = _MEMORY[kind](X), _MEMORY[kind](np.zeros_like(X))
    if form == "dict":
        CLIP.dispatch({"input_tensor": source}, {"output_tensor": target})
    elif form == "keywords":
        CLIP.dispatch(outputs=[target], inputs=[source])
    else:
        sequence = {"list": list, "tuple": tuple}[form]
        CLIP.dispatch(sequence([source]), sequence([target]))
    assert (_values(target) == CLIPPED).all()
    assert (_values(source) == X).all()


def test_bytes_are_inputs_only() -> None:
    out = np.zeros_like(X)
    CLIP.dispatch([X.tobytes()], [out])
    assert (out == CLIPPED).all()
    refused("output_tensor is bound to memory that is read-only", [X], [X.tobytes()])


def test_read_only_outputs() -> None:
    out = np.zeros_like(X)
    out.flags.writeable = False
    refused("output_tensor is bound to memory that is read-only", [X], [out])
    refused("read-only", [X], [BufferBinding(out)])
    assert not out.any()


def test_memory_of_buffer_bindings() -> None:
    refused("not contiguous", [X], [BufferBinding(np.zeros((6, 2), np.float32)[:, 0])])
    for memory in (np.zeros(3, object), (ctypes.py_object * 3)()):
        with pytest.raises(TypeError, match="output_tensor is bound to memory that holds Python"):
            CLIP.dispatch([X], [BufferBinding(memory)])


class Name(str):
    """A key that differs from others of the same characters."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


def test_a_tensor_that_is_bound_twice() -> None:
    heap, out = np.zeros(1 << 20, np.uint8), np.zeros_like(X)
    first = BufferBinding(heap, 1 << 19)
    refused(
        "output_tensor is bound twice by outputs",
        [X],
        {"output_tensor": first, Name("output_tensor"): out},
    )
    assert not heap.any()
    assert not out.any()


def test_batch_normalization_inputs_by_order_and_by_name() -> None:
    x = np.full((1, 2, 1, 1), 10, np.float32)
    parameters = {"mean": 4, "variance": 9, "scale": 5, "bias": 0.5}
    arrays = {f"{n}_tensor": np.full_like(x, v) for n, v in parameters.items()}
    described = BufferTensorDesc.from_array(x)
    compiled = Device().compile(batch_normalization(described, epsilon=0.0))
    first, second = np.zeros_like(x), np.zeros_like(x)
    compiled.dispatch([x, *arrays.values()], [first])
    named = dict(reversed([("input_tensor", x), *arrays.items()]))
    compiled.dispatch(named, {"output_tensor": second})
    assert (first == 10.5).all()
    assert (second == 10.5).all()


def test_number_of_bindings() -> None:
    out = np.zeros_like(X)
    for inputs in ([], [X, X], [X] * 100):
        refused(
            f"{len(inputs)} inputs are bound, but the operator has 1: input_tensor", inputs, [out]
        )
    for outputs in ([], [out, out]):
        refused(
            f"{len(outputs)} outputs are bound, but the operator has 1: output_tensor", [X], outputs
        )
    x = BufferTensorDesc.from_array(X)
    optional = dmlops.MeanVarianceNormalization2OperatorDesc(
        input_tensor=x, output_tensor=x, axes=(0,)
    )
    with pytest.raises(BindingError) as caught:
        Device().compile(optional).dispatch([X], [out])
    assert str(caught.value) == (
        "MeanVarianceNormalization2OperatorDesc: 1 input is bound, but the operator has 3: "
        "input_tensor, scale_tensor, bias_tensor; "
        "pass None or an empty binding for tensors that the descriptor lacks"
    )
    Device().compile(optional).dispatch([X, None, None], [np.empty_like(X)])
    refused("input_tensor is not bound", [None], [out])
    refused("input_tensor is not bound", {}, [out])
    refused("output_tensor is not bound", [X], [None])
    assert not out.any()


def test_names_of_bindings() -> None:
    out = np.zeros_like(X)
    refused("inputs has the key 'input'; it takes input_tensor", {"input": X}, [out])
    refused("outputs has the key 1; it takes output_tensor", [X], {1: out})
    refused("inputs has the key", {"output_tensor": X}, [out])


@pytest.mark.parametrize("wrong", [None, X, 5, "x", {1, 2}])
def test_bindings_that_are_no_sequence(wrong: Any) -> None:
    with pytest.raises(TypeError, match="inputs must be a list, tuple or dict"):
        CLIP.dispatch(wrong, [X.copy()])


def test_arguments() -> None:
    with pytest.raises(TypeError, match="missing required argument 'outputs'"):
        CLIP.dispatch([X])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        CLIP.dispatch([X], out=[X])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="input_tensor must be a numpy"):
        CLIP.dispatch([[1.0, 2.0]], [X.copy()])
    with pytest.raises(TypeError, match="cannot create"):
        type(CLIP)()


def test_too_small() -> None:
    out = np.zeros_like(X)
    message = "tensor is bound to 20 bytes; it needs 24"
    refused("input_" + message, [X[:5]], [out])
    refused("output_" + message, [X], [out[:5]])
    refused("is bound to 0 bytes", [X[:0]], [out])
    refused("is bound to 20 bytes", [BufferBinding(X, size_in_bytes=20)], [out])
    refused("24 bytes at offset 16; the buffer has 24", [BufferBinding(X, 16)], [out])
    for offset, size in [(2**63, 2**63), (2**64 - 16, 32), (16, 2**64 - 1)]:
        refused("the buffer has 24", [BufferBinding(X, offset, size)], [out])
    assert not out.any()


def test_total_tensor_size_in_bytes_must_be_bound() -> None:
    large = tensor((6,), total_tensor_size_in_bytes=256)
    compiled = Device().compile(clip(large, output_tensor=tensor((6,))))
    out = np.zeros_like(X)
    refused("input_tensor is bound to 252 bytes; it needs 256", [bytes(252)], [out], compiled)
    compiled.dispatch([X.tobytes() + bytes(232)], [out])
    assert (out == CLIPPED).all()


def test_bytes_of_rounding_up_need_not_exist() -> None:
    values = np.array([-1, 2, 7], np.float16)
    described = BufferTensorDesc.from_array(values)
    Device().compile(clip(described)).dispatch([values], [values])
    assert values.tolist() == [0, 2, 6]


def test_buffers_have_the_sizes_of_directml() -> None:
    """A buffer's size is a multiple of 4; an array that is bound directly may end earlier."""
    described = tensor((5,), "UINT8")
    compiled = Device().compile(clip(described))
    x, out = np.array([1, 2, 9, 4, 5], np.uint8), np.zeros(12, np.uint8)
    to = [BufferBinding(out)]
    refused(
        "to 8 bytes at offset 0; the buffer has 5; to bind all of it, pass it without",
        [BufferBinding(x)],
        to,
        compiled,
    )
    refused("to 5 bytes; it needs 8", [BufferBinding(x, 0, 5)], to, compiled)
    refused(
        "to 10 bytes; the size of a buffer must be a multiple of 4",
        [x],
        [BufferBinding(out, 0, 10)],
        compiled,
    )
    assert not out.any()
    compiled.dispatch([x], to)
    assert out.tolist() == [1, 2, 6, 4, 5, 0, 0, 0, 0, 0, 0, 0]
    compiled.dispatch([bytes(x)], [x])
    assert x.tolist() == [1, 2, 6, 4, 5]
    owned = tensor((5,), "UINT8", flags=dmlops.TensorFlags.OWNED_BY_DML)
    desc = clip(owned, output_tensor=described)
    with pytest.raises(BindingError, match="to 10 bytes; the size of a buffer"):
        Device().compile(desc, initial=[BufferBinding(out, 0, 10)])
    Device().compile(desc, initial=[x])


def test_offsets_are_multiples_of_16() -> None:
    heap = np.zeros(32, np.float32)
    heap[4:10] = X
    CLIP.dispatch([BufferBinding(heap, 16)], [BufferBinding(heap, 64, 24)])
    assert (heap[16:22] == CLIPPED).all()
    before = heap.copy()
    for offset in (1, 4, 8, 20):
        refused(
            f"input_tensor is bound at offset {offset}, which is not a multiple of 16",
            [BufferBinding(heap, offset)],
            [BufferBinding(heap, 64)],
        )
        refused("output_tensor", [X], [BufferBinding(heap, offset)])
    assert (heap == before).all()


def test_guaranteed_base_offset_alignment() -> None:
    aligned = tensor((6,), guaranteed_base_offset_alignment=64)
    compiled = Device().compile(clip(aligned, output_tensor=tensor((6,))))
    heap, out = np.zeros(64, np.float32), np.zeros_like(X)
    compiled.dispatch([BufferBinding(heap, 64)], [out])
    refused("not a multiple of 64", [BufferBinding(heap, 48)], [out], compiled)


@pytest.mark.parametrize("value", [{"offset": -1}, {"offset": 2**64}, {"size_in_bytes": -4}])
def test_buffer_binding_of_negative_place(value: dict[str, int]) -> None:
    with pytest.raises(BindingError, match=next(iter(value))):
        BufferBinding(X, **value)
    with pytest.raises(TypeError, match="offset must be an integer, not float"):
        BufferBinding(X, 1.5)  # type: ignore[arg-type]


def test_data_type_of_an_array() -> None:
    """An array of float64 where float32 is described is a mistake; bytes are not."""
    wide = X.astype(np.float64)
    out = np.zeros_like(X)
    refused("input_tensor is bound to an array of float64; the tensor is of float32", [wide], [out])
    refused("array of int32", [X.view(np.int32)], [out])
    refused("array of float64", [array.array("d", wide.tolist())], [out])
    CLIP.dispatch([X.view(np.int8)], [BufferBinding(out.view(np.int32))])
    assert (out == CLIPPED).all()


@pytest.mark.parametrize("strides", [(8, 1), (1, 3), (12, 2), (0, 1)])
def test_arrays_with_the_tensors_strides(strides: tuple[int, int]) -> None:
    base = np.arange(-8, 24, dtype=np.float32)
    view = np.lib.stride_tricks.as_strided(base, (2, 3), [4 * s for s in strides])
    described = BufferTensorDesc.from_array(view)
    assert described.strides in (strides, None)
    out = np.zeros((2, 3), np.float32)
    compiled = Device().compile(clip(described, output_tensor=tensor((2, 3))))
    compiled.dispatch([view], [out])
    assert (out == np.clip(view, 0, 6)).all()


def test_arrays_that_are_not_contiguous() -> None:
    out = np.zeros_like(X)
    for wrong in (np.zeros(12, np.float32)[::2], np.zeros(6, np.float32)[::-1]):
        refused("not contiguous.*from_array", [wrong], [out])
        refused("not contiguous", [X], [wrong])
        refused("not contiguous", [BufferBinding(wrong)], [out])
    fortran = np.zeros((2, 3), np.float32, order="F")
    compiled = Device().compile(clip(tensor((2, 3))))
    refused("not contiguous", [fortran], [out], compiled)
    assert not out.any()


def test_padding_bytes_are_never_written() -> None:
    described = tensor((2, 2, 3), "FLOAT16", strides=(20, 2, 5), total_tensor_size_in_bytes=128)
    x = np.arange(-6, 6, dtype=np.float16).reshape(2, 2, 3)
    heap = np.full(64, 99, np.float16)
    compiled = Device().compile(clip(tensor((2, 2, 3), "FLOAT16"), output_tensor=described))
    compiled.dispatch([x], [heap])
    view = np.lib.stride_tricks.as_strided(heap, (2, 2, 3), (40, 4, 10))
    assert (view == np.clip(x, 0, 6)).all()
    view[...] = 99
    assert (heap == 99).all()


def test_compiled_operator_says_what_it_is() -> None:
    assert CLIP.desc == clip(tensor((6,)))
    assert CLIP.feature_level is dmlops.FeatureLevel.LEVEL_6_4
    assert repr(CLIP) == f"<CompiledOperator {CLIP.desc!r}>"
    with pytest.raises(AttributeError):
        CLIP.desc = None  # type: ignore[misc, assignment]
