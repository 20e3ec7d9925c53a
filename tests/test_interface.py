"""Arguments of descriptors, devices and the runtime: names and numbers, and messages that help."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import samples
from descriptors import clip, tensor
from reference import assert_same_bits

import dmlops as _dmlops
from dmlops import BufferTensorDesc, Device, FeatureLevel, TensorDataType, TensorFlags

dmlops: Any = _dmlops  # so that type checkers let wrong calls pass
FLOAT32 = TensorDataType.FLOAT32
X = samples.uniform((2, 3), np.float32)


@pytest.mark.parametrize("name", ["FLOAT32", "float32", "DML_TENSOR_DATA_TYPE_FLOAT32", 1])
def test_data_types_by_name(name: Any) -> None:
    assert BufferTensorDesc(name, (6,)) == BufferTensorDesc(FLOAT32, (6,))
    assert dmlops.calc_buffer_tensor_size(name, (6,)) == 24


@pytest.mark.parametrize("name", ["3_0", "3.0", "LEVEL_3_0", "DML_FEATURE_LEVEL_3_0", 0x3000])
def test_feature_levels_by_name(name: Any) -> None:
    assert Device(name).feature_level is FeatureLevel.LEVEL_3_0


def test_flags_by_name() -> None:
    desc = BufferTensorDesc("INT8", (6,), flags="OWNED_BY_DML")
    assert desc.flags is TensorFlags.OWNED_BY_DML


CALLS: list[tuple[str, Callable[[], object]]] = [
    (
        r"BufferTensorDesc: data_type is 'FLOAT'; it must be one of .*FLOAT32",
        lambda: dmlops.BufferTensorDesc("FLOAT", (6,)),
    ),
    (
        r"BufferTensorDesc: data_type must be .* not type; use 'FLOAT16'$",
        lambda: dmlops.BufferTensorDesc(np.float16, (6,)),
    ),
    (
        r"BufferTensorDesc: data_type must be .*; use 'INT8'$",
        lambda: dmlops.BufferTensorDesc(np.dtype("i1"), (6,)),
    ),
    ("BufferTensorDesc: data_type is 99; .*FLOAT32", lambda: dmlops.BufferTensorDesc(99, (6,))),
    (
        "BufferTensorDesc: data_type must be .* not float",
        lambda: dmlops.BufferTensorDesc(1.5, (6,)),
    ),
    (
        r"BufferTensorDesc: sizes must be .* not int; write sizes=\(6,\)",
        lambda: dmlops.BufferTensorDesc(FLOAT32, 6),
    ),
    (
        r"BufferTensorDesc: strides must be .* not int; write strides=\(1,\)",
        lambda: dmlops.BufferTensorDesc(FLOAT32, (6,), strides=1),
    ),
    (
        r"BufferTensorDesc: sizes\[1\] must be an integer, not float",
        lambda: dmlops.BufferTensorDesc(FLOAT32, (6, 1.5)),
    ),
    (
        r"calc_buffer_tensor_size: sizes must be .*sizes=\(6,\)",
        lambda: dmlops.calc_buffer_tensor_size(FLOAT32, 6),
    ),
    (
        r"ActivationLogSoftmax1OperatorDesc: axes must be .*write axes=\(1,\)",
        lambda: dmlops.ActivationLogSoftmax1OperatorDesc(
            input_tensor=tensor(), output_tensor=tensor(), axes=1
        ),
    ),
    (
        "ElementWiseClip1OperatorDesc: min_max_data_type is 'INT9'; .*INT8",
        lambda: dmlops.ElementWiseClip1OperatorDesc(
            input_tensor=tensor(), output_tensor=tensor(), min_max_data_type="INT9", min=0, max=1
        ),
    ),
    ("Device: feature_level is '9_0'; .* 6_4", lambda: dmlops.Device("9_0")),
    ("Device: feature_level must be .* not NoneType", lambda: dmlops.Device(None)),
    ("BufferBinding: offset must be an integer, not str", lambda: dmlops.BufferBinding(X, "1")),
    ("set_num_threads: n must be an integer .* not str", lambda: dmlops.set_num_threads("2")),
    ("num_threads: n must be an integer .* not float", lambda: dmlops.num_threads(2.0)),
    ("num_threads: n must be from 1 to 1024, not 0", lambda: dmlops.num_threads(0)),
    (
        r"from_array: array must be .* not list; .*numpy\.asarray",
        lambda: BufferTensorDesc.from_array([1.0]),
    ),
    ("from_array: array is a masked", lambda: BufferTensorDesc.from_array(np.ma.array(X))),
]


@pytest.mark.parametrize(("words", "call"), CALLS, ids=[words for words, _ in CALLS])
def test_messages(words: str, call: Callable[[], object]) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_from_array_of_buffers_and_tensors() -> None:
    assert BufferTensorDesc.from_array(bytearray(3)) == BufferTensorDesc("UINT8", (3,))
    assert BufferTensorDesc.from_array(np.float32(1)) == BufferTensorDesc("FLOAT32", (1,))
    torch = pytest.importorskip("torch")
    expected = BufferTensorDesc("FLOAT32", (3, 2), strides=(1, 3))
    assert BufferTensorDesc.from_array(torch.zeros((2, 3)).T) == expected
    with pytest.raises(TypeError, match=r"dtype bfloat16.*array\.float\(\)"):
        BufferTensorDesc.from_array(torch.zeros(2, dtype=torch.bfloat16))


def test_from_array_of_dask() -> None:
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match=r"from_array: array must be .*array\.compute\(\)"):
        BufferTensorDesc.from_array(da.from_array(X))


# Shapes of bindings


def test_arrays_of_another_shape_are_not_bound() -> None:
    compiled = Device().compile(clip(BufferTensorDesc.from_array(X)))
    out = np.zeros_like(X)
    words = r"{}_tensor is bound to an array of shape {}; the tensor has sizes \(2, 3\).*reshape"
    for shape in ((3, 2), (1, 6), (1, 2, 3), (6, 1)):
        text = str(shape).replace("(", r"\(").replace(")", r"\)")
        for i, name in enumerate(("input", "output")):
            arrays = [X, out]
            arrays[i] = arrays[i].reshape(shape)
            with pytest.raises(dmlops.BindingError, match=words.format(name, text)):
                compiled.dispatch(arrays[:1], arrays[1:])
    with pytest.raises(dmlops.BindingError, match=r"shape \(3, 2\)"):
        compiled.dispatch([memoryview(X.tobytes()).cast("f", (3, 2))], [out])
    assert not out.any()
    buffers: tuple[Any, ...] = (X, X.reshape(6), X.view(np.uint8), X.tobytes())
    for buffer in (*buffers, dmlops.BufferBinding(X.reshape(3, 2))):
        out[...] = 0
        compiled.dispatch([buffer], [out])
        assert_same_bits(out, dmlops.clip(X, 0, 6))


@pytest.mark.parametrize("dtype", ["int64", "bool", "complex64"])
def test_arrays_of_another_dtype_are_not_bound(dtype: str) -> None:
    half = X.astype(np.float16)
    compiled = Device().compile(clip(BufferTensorDesc.from_array(half)))
    other, out = half.real.astype(dtype), np.zeros_like(half)
    errors = (dmlops.BindingError, TypeError)
    with pytest.raises(errors, match=r"input_tensor .*float16") as caught:
        compiled.dispatch([other], [out])
    fix = re.search(r"convert it with \w+(\.astype\(numpy.\w+\))", str(caught.value))
    assert (fix is None) == (dtype == "complex64")
    if fix is not None:
        compiled.dispatch([eval(f"other{fix[1]}", {"numpy": np, "other": other})], [out])
    with pytest.raises(errors, match=r"output_tensor .*float16") as caught:
        compiled.dispatch([half], [other])
    assert "convert" not in str(caught.value)


def test_the_advice_for_bindings_of_another_byte_order_works() -> None:
    half = X.astype(np.float16)
    compiled = Device().compile(clip(BufferTensorDesc.from_array(half)))
    for dtype in (np.float16, np.float32, np.int32):
        other, out = half.astype(np.dtype(dtype).newbyteorder()), np.zeros_like(half)
        with pytest.raises(TypeError, match=r"input_tensor .* byte order") as caught:
            compiled.dispatch([other], [out])
        fix = re.search(r"convert it with (input_tensor\.astype.*)$", str(caught.value))
        assert fix is not None
        compiled.dispatch([eval(fix[1], {"numpy": np, "input_tensor": other})], [out])


def test_bytes_are_bound_as_they_are() -> None:
    compiled = Device().compile(clip(BufferTensorDesc.from_array(X)))
    numbers, out = X.view(np.int32), np.zeros_like(X)
    words = r"convert it with array\.astype\(numpy\.float32\), or, to bind its bytes as they are, "
    with pytest.raises(dmlops.BindingError, match=rf"{words}array\.view\(numpy\.uint8\)$"):
        compiled.dispatch([numbers], [out])
    compiled.dispatch([numbers.view(np.uint8).ravel()], [out])
    assert_same_bits(out, dmlops.clip(X, 0, 6))


def test_lists_are_not_bound() -> None:
    compiled = Device().compile(clip(BufferTensorDesc("FLOAT16", (2,))))
    out = np.zeros(2, np.float16)
    with pytest.raises(TypeError, match=r"numpy\.asarray\(input_tensor, numpy\.float16\)$"):
        compiled.dispatch([[1.0, 2.0]], [out])
    with pytest.raises(TypeError, match=r"output_tensor must be .*, not list$"):
        compiled.dispatch([out], [[1.0, 2.0]])


def test_masked_arrays_are_not_bound() -> None:
    compiled = Device().compile(clip(BufferTensorDesc.from_array(X)))
    masked = np.ma.masked_less(X, 0)
    for value in (masked, dmlops.BufferBinding(masked)):
        with pytest.raises(TypeError, match="input_tensor is a masked array"):
            compiled.dispatch([value], [np.empty_like(X)])


# Compiled operators


def test_compiled_operators_have_weak_references() -> None:
    compiled = Device().compile(clip(BufferTensorDesc.from_array(X)))
    reference = weakref.ref(compiled)
    assert reference() is compiled
    del compiled
    gc.collect()
    assert reference() is None


def test_compiled_operators_can_be_pickled() -> None:
    compiled = Device("5_1").compile(clip(BufferTensorDesc.from_array(X)))
    for other in (pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)):
        assert other.desc == compiled.desc
        assert other.feature_level is FeatureLevel.LEVEL_5_1
        out = np.empty_like(X)
        other.dispatch([X], [out])
        assert_same_bits(out, dmlops.clip(X, 0, 6))


def test_pickled_with_what_they_own() -> None:
    owned = BufferTensorDesc.from_array(X, flags="OWNED_BY_DML")
    desc = dmlops.ElementWiseClipOperatorDesc(
        input_tensor=owned, output_tensor=BufferTensorDesc.from_array(X), min=0, max=6
    )
    compiled = pickle.loads(pickle.dumps(Device().compile(desc, initial=[X])))
    out = np.empty_like(X)
    compiled.dispatch([None], [out])
    assert_same_bits(out, dmlops.clip(X, 0, 6))


# Threads


def test_number_of_threads_of_a_block() -> None:
    before = dmlops.get_num_threads()
    with dmlops.num_threads(3):
        assert dmlops.get_num_threads() == 3
        with dmlops.num_threads(np.int64(2)):
            assert dmlops.get_num_threads() == 2
            seen: list[int] = []
            thread = threading.Thread(target=lambda: seen.append(dmlops.get_num_threads()))
            thread.start()
            thread.join()
            assert seen == [before]
        assert dmlops.get_num_threads() == 3
        with pytest.raises(KeyError), dmlops.num_threads(4):
            raise KeyError
        assert dmlops.get_num_threads() == 3
        large = samples.uniform((1 << 20,), np.float32)
        result = dmlops.gelu(large)
    assert dmlops.get_num_threads() == before
    assert_same_bits(result, dmlops.gelu(large))


def test_threads_share_the_object_of_a_block() -> None:
    """Each thread restores its own number, whichever of them leaves the block first."""
    shared, before = dmlops.num_threads(2), dmlops.get_num_threads()
    both_inside, first_left = (threading.Barrier(2, timeout=60) for _ in range(2))
    seen: dict[str, int] = {}

    def first() -> None:
        with dmlops.num_threads(4):
            with shared:
                both_inside.wait()
            seen["first"] = dmlops.get_num_threads()
        first_left.wait()

    def second() -> None:
        with shared:
            both_inside.wait()
            first_left.wait()
            seen["inside"] = dmlops.get_num_threads()
        seen["second"] = dmlops.get_num_threads()

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"first": 4, "inside": 2, "second": before}


def test_blocks_that_end_out_of_order() -> None:
    """Interleaved coroutines and generators leave no number behind."""
    before = dmlops.get_num_threads()

    def block(count: int) -> Iterator[None]:
        with dmlops.num_threads(count):
            yield

    blocks = [block(count) for count in (2, 3)]
    for generator in blocks:
        next(generator)
    for generator, rest in zip(blocks, (3, before), strict=True):
        assert next(generator, "ended") == "ended"
        assert dmlops.get_num_threads() == rest
    begun_elsewhere = block(2)
    thread = threading.Thread(target=lambda: next(begun_elsewhere))
    thread.start()
    thread.join()
    with dmlops.num_threads(1):
        assert next(begun_elsewhere, "ended") == "ended"
        assert dmlops.get_num_threads() == 1
    assert dmlops.get_num_threads() == before
