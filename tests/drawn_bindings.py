"""Compiled operators on memory of any kind, size and overlap.

`cases` draws a valid descriptor and a binding for each of its tensors. `check` predicts from the
memory behind each binding whether the operator accepts it. An accepted call must give the result
of the function on dense copies and write no other byte; a refused call must write nothing. Every
heap ends with its last byte, so that the address sanitizer detects an access past it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from bound_memory import DLPack, layouts
from descriptors import TABLE, tensor, tensor_names
from hypothesis import strategies as st
from samples import uniform

import dmlops
from dmlops import BindingError, BufferBinding, BufferTensorDesc, Device, TensorFlags

Array = npt.NDArray[Any]
TYPES = {"clip": ("FLOAT32", "FLOAT16", "INT8", "UINT16", "INT64"), "relu": ("FLOAT32", "INT16")}
OPERATORS = ("clip", "relu", "log_softmax1", "batch_normalization")
PARAMETERS = tuple(f"{name}_tensor" for name in ("mean", "variance", "scale", "bias"))
CAPACITY = 1 << 14  # bytes of the largest heap

# The bytes of a heap from `begin` on: as packed elements, as bytes, as an array with the tensor's
# own strides, through other protocols, as a part of the heap.
USUAL = ("packed", "bytes", "strided", "strided", "memoryview", "DLPack", "part", "sized part")
UNUSUAL = ("bytearray", "read-only", "bytes object", "not contiguous", "float64", "swapped")
REFUSED = {
    "not contiguous": np.zeros((7, 2), np.float32)[:, 0],
    "float64": np.zeros(7),
    "swapped": np.zeros(7, ">i4"),
    "none": None,
    "number": 5,
    "list": [1.0],
}


@dataclass(frozen=True)
class Bound:
    """The binding of a tensor."""

    kind: str
    heap: int  # the index of the tensor that the heap was made for
    size: int  # of the heap, in bytes
    begin: int


@dataclass(frozen=True)
class Case:
    """An operator's descriptor, and a binding for each of its tensors, the output last."""

    desc: Any
    bounds: tuple[Bound, ...]
    named: bool


def dtype_of(x: BufferTensorDesc) -> np.dtype[Any]:
    """Return NumPy's data type."""
    return np.dtype(x.data_type.name.lower())


def steps_of(x: BufferTensorDesc) -> list[int]:
    """Return the strides in bytes."""
    packed = [math.prod(x.sizes[d + 1 :]) for d in range(len(x.sizes))]
    return [step * dtype_of(x).itemsize for step in x.strides or packed]


def extent(x: BufferTensorDesc) -> int:
    """Return the bytes from the first element to the end of the last."""
    reach = sum((n - 1) * step for n, step in zip(x.sizes, steps_of(x), strict=True))
    return reach + dtype_of(x).itemsize


def required(x: BufferTensorDesc) -> int:
    """Return the bytes that an array must have."""
    return extent(x) if total(x) == -(-extent(x) // 4) * 4 else total(x)


def total(x: BufferTensorDesc) -> int:
    """Return the bytes that a buffer of DirectML must have."""
    given = x.total_tensor_size_in_bytes
    return -(-extent(x) // 4) * 4 if given is None else given


@st.composite
def tensors(draw: st.DrawFn, sizes: tuple[int, ...], dtype: str, output: bool) -> BufferTensorDesc:
    """Draw a layout, a total size and an alignment; inputs may be owned."""
    strides = draw(layouts(sizes, output))
    minimum = -(-extent(tensor(sizes, dtype, strides=strides)) // 4) * 4
    totals = (None, None, minimum, minimum + 4, max(minimum, 4096), 1 << 33, 1 << 63, 2**64 - 1)
    return tensor(
        sizes,
        dtype,
        strides=strides,
        total_tensor_size_in_bytes=draw(st.sampled_from(totals)),
        guaranteed_base_offset_alignment=draw(st.sampled_from((0, 0, 16, 64))),
        flags=TensorFlags(not output and draw(st.integers(0, 3)) == 0),
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a valid descriptor, and bindings of which some do not fit."""
    operator = draw(st.sampled_from(OPERATORS))
    dtype = draw(st.sampled_from(TYPES.get(operator, ("FLOAT32", "FLOAT16"))))
    sizes = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    more: dict[str, Any] = {"output_tensor": draw(tensors(sizes, dtype, True))}
    for name in PARAMETERS if operator == "batch_normalization" else ():
        own = tuple(draw(st.sampled_from((1, size))) for size in sizes)
        more[name] = draw(tensors(own, dtype, False))
    desc = TABLE[operator][0](draw(tensors(sizes, dtype, False)), **more)
    bounds: list[Bound] = []
    for i, name in enumerate(tensor_names(desc)):
        x = getattr(desc, name)
        kind = draw(st.sampled_from(USUAL))
        if draw(st.integers(0, 15)) == 0:
            kind = draw(st.sampled_from((*UNUSUAL, *REFUSED)))
        begin = 16 * draw(st.integers(0, 4)) + draw(st.sampled_from((0, 0, 0, 0, 4, 1)))
        size = draw(st.sampled_from((extent(x), required(x), total(x))))
        size += begin + draw(st.sampled_from((0, 0, 0, 0, 16, 64, 3, -1)))
        bound = Bound(kind, i, min(size, CAPACITY), begin)
        if name == "output_tensor" and draw(st.integers(0, 3)) == 0:  # memory of an input
            other = draw(st.sampled_from(bounds))
            begin = draw(st.sampled_from((other.begin, other.begin, begin)))
            kind = draw(st.sampled_from((other.kind, kind)))
            bound = Bound(kind, other.heap, other.size, begin)
        bounds.append(bound)
    return Case(desc, tuple(bounds), draw(st.booleans()))


class Memory:
    """A binding, and the bytes behind it: `size` bytes of `heap` from `begin` on."""

    def __init__(self, bound: Bound, x: BufferTensorDesc, heaps: list[Array]) -> None:
        self.x, self.heap, self.begin = x, heaps[bound.heap], bound.begin
        part, dtype = self.heap[bound.begin :], dtype_of(x)
        packed = part[: part.size // dtype.itemsize * dtype.itemsize].view(dtype)
        kind = bound.kind
        self.valid = kind not in REFUSED
        self.value: Any = REFUSED.get(kind, packed)
        self.size = packed.nbytes
        if kind == "strided" and part.size >= extent(x):
            self.value = np.ndarray(x.sizes, dtype, part, strides=steps_of(x))
            self.size = extent(x)
        elif kind in ("bytes", "memoryview", "bytearray", "bytes object"):
            makers: dict[str, Any] = {"memoryview": memoryview, "bytearray": bytearray}
            makers["bytes object"] = bytes
            self.value = makers.get(kind, np.asarray)(part)
            self.size = part.size
            if kind in ("bytearray", "bytes object"):  # copies
                heaps.append(np.frombuffer(self.value, np.uint8))
                self.heap, self.begin = heaps[-1], 0
        elif kind in ("part", "sized part"):
            size = None if kind == "part" else max(part.size - 16, 0)
            self.value = BufferBinding(self.heap, bound.begin, size)
            self.size = total(x) if size is None else size
            alignment = max(16, x.guaranteed_base_offset_alignment)
            self.valid = self.size <= part.size and bound.begin % alignment == 0
            self.valid = self.valid and bound.begin <= self.heap.size
            self.valid = self.valid and self.size >= total(x) and self.size % 4 == 0
        elif kind == "DLPack":
            self.value = DLPack(packed)
        self.writable = kind not in ("read-only", "bytes object")
        if kind == "read-only":
            packed.setflags(write=False)
        self.valid = self.valid and self.size >= required(x)

    def elements(self, heap: Array) -> Array:
        """Return the tensor's elements in the heap, or in a copy of it."""
        x = self.x
        return np.ndarray(x.sizes, dtype_of(x), heap, self.begin, steps_of(x))

    def may_share(self, output: Memory, in_place: bool) -> bool:
        """Return True if an input may share the output's memory."""
        begin, end = self.begin, self.begin + self.size
        if self.heap is not output.heap:
            return True
        if end <= output.begin or output.begin + output.size <= begin:
            return True
        steps = [
            [step for n, step in zip(m.x.sizes, steps_of(m.x), strict=True) if n > 1]
            for m in (self, output)
        ]
        same = (begin, self.size) == (output.begin, output.size)
        return in_place and same and steps[0] == steps[1]


def function(desc: Any, inputs: list[Any]) -> Array:
    """Return the function's result on dense arrays."""
    name = type(desc).__name__
    if name == "ElementWiseClipOperatorDesc":
        return np.asarray(dmlops.clip(inputs[0], desc.min, desc.max))
    if name == "ActivationReluOperatorDesc":
        return np.asarray(dmlops.relu(inputs[0]))
    if name == "BatchNormalizationOperatorDesc":
        x, mean, variance, scale, bias = inputs
        return np.asarray(
            dmlops.batch_normalization(x, mean, variance, scale, bias, epsilon=desc.epsilon)
        )
    return np.asarray(dmlops.log_softmax(inputs[0], desc.axes))


def run(case: Case, memories: dict[str, Memory]) -> None:
    """Compile and dispatch."""
    bound = {name: memory.value for name, memory in memories.items()}
    output = bound.pop("output_tensor")
    owned = {name: value for name, value in bound.items() if getattr(case.desc, name).flags}
    given = {name: value for name, value in bound.items() if name not in owned}
    if case.named:
        Device().compile(case.desc, owned).dispatch(given, {"output_tensor": output})
        return
    initial = [owned.get(name) for name in bound] if owned else None
    Device().compile(case.desc, initial).dispatch([given.get(name) for name in bound], [output])


def check(case: Case) -> None:
    """Expect success or refusal, as the memory behind each binding implies."""
    names = tensor_names(case.desc)
    tensors = [getattr(case.desc, name) for name in names]
    heaps = [np.zeros(max(bound.size, 0), np.uint8) for bound in case.bounds]
    for i, (heap, bound, x) in enumerate(zip(heaps, case.bounds, tensors, strict=True)):
        part = heap[bound.begin :]
        part[...] = uniform((part.size,), dtype_of(x), 0.5, 4, i).view(np.uint8)[: part.size]
    memories = {
        name: Memory(bound, x, heaps)
        for name, bound, x in zip(names, case.bounds, tensors, strict=True)
    }
    before = [heap.copy() for heap in heaps]
    *inputs, output = memories.values()
    in_place = len(inputs) == 1 and not hasattr(case.desc, "axes")
    accepted = all(memory.valid for memory in memories.values()) and output.writable
    accepted = accepted and all(
        memory.x.flags or memory.may_share(output, in_place) for memory in inputs
    )
    expected = None
    if accepted:
        dense = [np.array(memory.elements(memory.heap), order="C") for memory in inputs]
        expected = function(case.desc, dense)
    refusal = ""
    try:
        run(case, memories)
    except (BindingError, TypeError) as error:
        refusal = str(error)
    if expected is None:
        assert refusal.startswith(type(case.desc).__name__), refusal or "not refused"
    else:
        assert not refusal
        result = output.elements(output.heap)
        assert result.tobytes() == expected.tobytes()
        for i, heap in enumerate(heaps):
            if heap is output.heap:
                output.elements(before[i])[...] = result
    for heap, untouched in zip(heaps, before, strict=True):
        assert (heap == untouched).all(), "other bytes were written"
