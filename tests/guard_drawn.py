"""Every operator on drawn layouts against inaccessible pages; run as a program.

    python guard_drawn.py [SHARE]    on one of SHARE layouts each (default: on all)

Functions, also with an input as the output, and compiled operators on exactly the bytes that they
need; on one thread and on several; on every instruction set and with every policy, which alternates
if SHARE is not 1. Prints each step before running it, so that a crash shows its cause.
"""

from __future__ import annotations

import faulthandler
import itertools
import sys
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import drawn_layouts
import numpy as np
import numpy.typing as npt
import samples
from descriptors import (
    ACTIVATIONS,
    SEVERAL_OUTPUTS,
    TABLE,
    activation,
    batch_normalization,
    clip1,
    operands,
    tensor,
    tensor_names,
)
from guarded import GuardedMemory
from layouts import once
from reference import FLOATS, INTEGERS
from variants import ISAS, POLICIES, small_shards, thresholds

import dmlops
from dmlops import _core

Array = npt.NDArray[Any]
Call = Callable[..., Any]  # (arrays, outs)

SEED = 20
# Numbers of layouts, their maximum numbers of elements, and bytes for each operand.
EXTENTS = ((800, 600, 1 << 17), (80, 8_000, 1 << 20), (10, 300_000, 1 << 23))
CANARIES = np.frombuffer(b"\xa5" * 8, np.uint64)


class Case:
    """An operator as a function and as a descriptor, its axes drawn for each shape."""

    def __init__(
        self, name: str, types: Sequence[str], inputs: int = 1, *, alike: bool = False
    ) -> None:
        self.name, self.types, self.inputs, self.alike = name, types, inputs, alike

    def shapes(
        self, random: Random, sizes: tuple[int, ...], axes: tuple[int, ...]
    ) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """Return the shapes of inputs and outputs."""
        if self.name in SEVERAL_OUTPUTS:
            groups = tuple(1 if axis in axes else size for axis, size in enumerate(sizes))
            whole = 2 if self.name.endswith("grad") else 1
            return [sizes] * whole + [groups] * (self.inputs - whole), [sizes, groups, groups]
        if self.alike:
            return [sizes] * self.inputs, [sizes]
        others = (
            tuple(n if random.random() < 0.5 else 1 for n in sizes) for _ in range(1, self.inputs)
        )
        return [sizes, *others], [sizes]

    def function(self, axes: tuple[int, ...]) -> Call:
        """Return the function on arrays."""
        if self.name == "clip":
            return lambda arrays, out: dmlops.clip(arrays[0], 1, 3, out=out)
        if self.name in REDUCTIONS:
            reduction = getattr(dmlops, self.name)
            return lambda arrays, out: reduction(arrays[0], axes=axes, out=out)
        if self.alike:
            more = {"min": 1, "max": 3} if self.name == "clip_grad" else {}
            return lambda arrays, out: getattr(dmlops, self.name)(*arrays, **more, out=out)
        if self.name == "batch_normalization":
            fused = ACTIVATIONS["tanh"]()
            return lambda arrays, out: dmlops.batch_normalization(
                *arrays, fused_activation=fused, out=out
            )
        if self.name in SEVERAL_OUTPUTS:
            return lambda arrays, out: getattr(dmlops, self.name)(*arrays, out=out)
        return lambda arrays, out: getattr(dmlops, self.name)(arrays[0], out=out)

    def descriptor(self, tensors: list[Any], outputs: list[Any], axes: tuple[int, ...]) -> Any:
        """Return the descriptor of the same call."""
        x, output = tensors[0], outputs[0]
        if self.name in SEVERAL_OUTPUTS:
            make = TABLE[self.name][0]
            every = tensor_names(make(x))
            given = [name for name in every if name != "fused_add_tensor"]
            fields: dict[str, Any] = dict.fromkeys(every)
            fields |= zip(given, [*tensors, *outputs], strict=True)
            return make(x, **fields, epsilon=1e-5)
        if self.name == "clip":
            return clip1(x, output_tensor=output, min=1, max=3)
        if self.name in REDUCTIONS:
            more = dict.fromkeys(("scale_tensor", "bias_tensor")) if "normal" in self.name else {}
            return TABLE[REDUCTIONS[self.name]][0](x, output_tensor=output, axes=axes, **more)
        if self.alike:
            more = {"min": 1, "max": 3} if self.name == "clip_grad" else {}
            second = (
                "slope_tensor" if self.name == "parameterized_relu" else "input_gradient_tensor"
            )
            make = TABLE["clip_grad1" if self.name == "clip_grad" else self.name][0]
            return make(x, **{second: tensors[1]}, **more, output_tensor=output)
        if self.name == "batch_normalization":
            names = ("input", "mean", "variance", "scale", "bias")
            fields = {f"{name}_tensor": t for name, t in zip(names, tensors, strict=True)}
            fused = ACTIVATIONS["tanh"]()
            return batch_normalization(
                x, **fields, output_tensor=output, fused_activation=fused, epsilon=1e-5
            )
        return activation(self.name)(x, output_tensor=output)


REDUCTIONS = {  # and their descriptors
    "log_softmax": "log_softmax1",
    "softmax": "softmax1",
    "hardmax": "hardmax1",
    "mean_variance_normalization": "mean_variance_normalization2",
}
CASES = (
    Case("clip", FLOATS + INTEGERS),
    Case("log_softmax", FLOATS * 4),
    *(Case(name, FLOATS) for name in REDUCTIONS if name != "log_softmax"),
    Case("clip_grad", FLOATS + INTEGERS, 2, alike=True),
    Case("relu_grad", (*FLOATS, "int8", "int32"), 2, alike=True),
    Case("parameterized_relu", (*FLOATS, "int16"), 2, alike=True),
    Case("batch_normalization", FLOATS, 5),
    Case("batch_normalization_training", FLOATS, 3),
    Case("batch_normalization_grad", FLOATS, 5),
    Case("batch_normalization_training_grad", FLOATS, 5),
    *(Case(name, FLOATS) for name in ("hard_sigmoid", "tanh", "gelu")),
    Case("shrink", ("int8", "uint16", "int32")),
)


def placed(
    random: Random, memory: GuardedMemory, sizes: tuple[int, ...], dtype: str, **kind: bool
) -> Array:
    """Return a view of a drawn layout at one of the guards."""
    itemsize = np.dtype(dtype).itemsize
    while True:
        strides = drawn_layouts.strides(random, sizes, itemsize, **kind)
        if drawn_layouts.reach(sizes, strides, itemsize) <= memory.bytes.size:
            return memory.place(sizes, dtype, strides, random.random() < 0.5)


def fill(view: Array, seed: int) -> None:
    """Store values; where elements share memory, one of them."""
    view[once(view)] = samples.uniform(view.shape, view.dtype, 0.5, 4, seed)[once(view)]


def has_repeats(view: Array) -> bool:
    """Return whether several elements share memory."""
    return any(step == 0 and n > 1 for n, step in zip(view.shape, view.strides, strict=True))


def bytes_of(view: Array) -> Array:
    """Return exactly the bytes from a view's first element to its last."""
    size = drawn_layouts.reach(view.shape, view.strides, view.dtype.itemsize)
    whole = np.lib.stride_tricks.as_strided(view[(slice(0, 1),) * view.ndim], (1,), (1,))
    raw: Array = whole.view(np.uint8)
    return np.lib.stride_tricks.as_strided(raw, (size,), (1,))


def described(
    case: Case, arrays: list[Array], outs: list[Array], axes: tuple[int, ...]
) -> Any | None:
    """Return the operator's descriptor, or None if no descriptor allows these tensors."""
    views = [*arrays, *outs]
    if 0 in outs[0].shape:
        return None
    if any(step < 0 or step % view.itemsize != 0 for view in views for step in view.strides):
        return None
    tensors = [
        tensor(
            view.shape,
            view.dtype.name.upper(),
            strides=tuple(step // view.dtype.itemsize for step in view.strides),
        )
        for view in views
    ]
    return case.descriptor(tensors[: len(arrays)], tensors[len(arrays) :], axes)


def check(
    case: Case,
    dtype: str,
    random: Random,
    elements: int,
    memory: list[GuardedMemory],
    *,
    policies: Sequence[str],
) -> None:
    """Expect the bits of dense arrays in ordinary memory, and no write between elements."""
    sizes = drawn_layouts.shape(random, elements)
    reverse = random.random() < 0.5
    rank = len(sizes)
    axes = tuple(random.sample(range(rank), random.randint(1, min(rank, 3))))
    of_inputs, of_outputs = case.shapes(random, sizes, axes)
    written, read = memory[: len(of_outputs)], memory[len(of_outputs) :]
    inputs = []
    for block in written:
        block.words[...] = CANARIES
    for i, own in enumerate(of_inputs):
        inputs.append(placed(random, read[i], own, dtype, output=False, reverse=reverse))
        fill(inputs[-1], i)
    outs = [
        placed(random, block, own, dtype, output=True, reverse=reverse)
        for block, own in zip(written, of_outputs, strict=True)
    ]
    print(case.name, dtype, sizes, axes, *(v.strides for v in (*inputs, *outs)), flush=True)
    dense = [np.array(view, order="C") for view in inputs]
    function, given = case.function(axes), tuple(outs) if len(outs) > 1 else outs[0]
    with dmlops.num_threads(1):
        results = function(dense, None)
    expected = [x.tobytes() for x in (results if len(outs) > 1 else (results,))]
    replaceable = [x for x in inputs if x.shape == outs[0].shape and not has_repeats(x)]
    desc = described(case, inputs, outs, axes)
    if desc is not None:
        absent = [None] * (operands(desc)[0] - len(inputs))
        bindings = [*map(bytes_of, inputs), *absent], [*map(bytes_of, outs)]
    for isa, policy, threads in itertools.product(ISAS, policies, (1, 3)):
        print(isa, policy, threads, flush=True)
        _core.set_isa(isa)
        with thresholds(policy), small_shards(threads):
            function(inputs, given)
            compare(outs, expected)
            for x in replaceable:
                values = x.copy()
                function(inputs, (x, *outs[1:]) if len(outs) > 1 else x)
                compare([x, *outs[1:]], expected)
                x[...] = values
            if desc is not None:
                dmlops.Device().compile(desc).dispatch(*bindings)
                compare(outs, expected)
    if any((block.words != CANARIES).any() for block in written):
        raise SystemExit("bytes between the elements were written, in one of these steps")


def compare(outs: list[Array], expected: list[bytes]) -> None:
    """Expect the results; store canaries again, so that the next call's missing writes are seen."""
    for out, right in zip(outs, expected, strict=True):
        if out.tobytes() != right:
            raise SystemExit("wrong values")
        out[...] = CANARIES.view(out.dtype)[0]


def main(share: int) -> None:
    """Run a share of the layouts."""
    faulthandler.enable()
    turns = itertools.cycle([[name] for name in POLICIES] if share > 1 else [[*POLICIES]])
    for draws, elements, capacity in EXTENTS:
        memory = [GuardedMemory(capacity) for _ in range(8)]
        for case in CASES:
            for k, dtype in enumerate(case.types):
                random = Random(f"{SEED} {case.name} {k} {elements}")
                for _ in range(-(-draws // share)):
                    check(case, dtype, random, elements, memory, policies=next(turns))
    print("done")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
