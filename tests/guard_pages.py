"""Every operator on arrays and bindings against inaccessible pages; run as a program.

    python guard_pages.py [SHARE]    through every SHARE-th combination (default: through all)

Prints each step before running it, so that a crash shows its cause.
"""

from __future__ import annotations

import faulthandler
import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import samples
from activation_rows import ROWS
from descriptors import ACTIVATIONS, TABLE, accepts, data_types, operands, tensor
from guarded import GuardedMemory
from layouts import LAYOUTS, OUT_LAYOUTS, Layout, dense_strides, once
from reference import FLOATS, INTEGERS

import dmlops
from dmlops import _core

Array = npt.NDArray[Any]

# Several of the widest vectors of the smallest type, and unrolled rounds of the larger ones.
LENGTHS = {1: 200, 2: 140, 4: 140, 8: 80}
SHAPES = ((3, 5), (17, 4), (4, 33), (2, 3, 18), (2, 3, 2, 5), (65, 7), (2, 1, 2, 1, 2, 3))
LARGE = 300_007  # a prime; enough work for threads
SMALL = 64 * 1024
OPERANDS = 8
EVERY_SECOND = {layout.name: layout for layout in LAYOUTS}["every-second"]
THOROUGH = (
    "clip",
    "scaled",
    "hard_sigmoid",
    "tanh",
    "shrink",
    "identity",
    "log_softmax",
    "first",
    "all",
)

Operator = Callable[..., Array]  # (inputs, out=)


def _one(function: Callable[..., Array], **more: Any) -> Operator:
    return lambda arrays, out: function(arrays[0], **more, out=out)


def _all_of(function: Callable[..., Array], arrays: list[Array], out: Array, **more: Any) -> Array:
    return function(*arrays, **more, out=out)


def _over_all(function: Callable[..., Array], arrays: list[Array], out: Array) -> Array:
    return function(arrays[0], range(arrays[0].ndim), out=out)


def _normalize(activation: str, arrays: list[Array], out: Array) -> Array:
    return dmlops.batch_normalization(*arrays, fused_activation=ACTIVATIONS[activation](), out=out)


def _first_of(function: Callable[..., Any], arrays: list[Array], out: Array) -> Array:
    result: Array = function(*arrays, out=(out, None, None))[0]
    return result


def _mean_variance(arrays: list[Array], out: Array) -> Array:
    axes = range(arrays[0].ndim)
    return _all_of(dmlops.mean_variance_normalization, arrays, out, axes=axes)


def operators() -> Iterator[tuple[str, Operator, str, tuple[str, ...]]]:
    """Yield each function with its inputs and the data types that it takes.

    An input is "x" if it has the input's shape, "p" if it may be broadcast, and "1" if it has one
    element.
    """
    yield "clip", _one(dmlops.clip, min=1, max=5), "x", FLOATS + INTEGERS
    scale = dmlops.ScaleBias(1.5, -0.25)
    yield "clip scaled", _one(dmlops.clip, min=1, max=50, scale_bias=scale), "x", FLOATS + INTEGERS
    clip_grad = functools.partial(_all_of, dmlops.clip_grad, min=1, max=3)
    yield "clip_grad", clip_grad, "xx", FLOATS + INTEGERS
    relu_grad = functools.partial(_all_of, dmlops.relu_grad)
    yield "relu_grad", relu_grad, "xx", data_types("relu_grad")
    slopes = functools.partial(_all_of, dmlops.parameterized_relu)
    yield "parameterized_relu", slopes, "xp", data_types("parameterized_relu")
    for row in ROWS:
        yield row.name, _one(getattr(dmlops, row.name)), "x", data_types(row.name)
    for name in ACTIVATIONS:
        yield f"batch_normalization {name}", functools.partial(_normalize, name), "xpppp", FLOATS
    for function in (dmlops.log_softmax, dmlops.softmax, dmlops.hardmax):
        name = function.__name__
        yield name, _one(function), "x", FLOATS
        yield f"{name} first", _one(function, axes=0), "x", FLOATS
        yield f"{name} all", functools.partial(_over_all, function), "x", FLOATS
    mvn = dmlops.mean_variance_normalization
    yield "mean_variance_normalization", _one(mvn), "x", FLOATS
    yield "mean_variance_normalization last", functools.partial(_all_of, mvn), "xpp", FLOATS
    first = functools.partial(_all_of, mvn, axes=0)
    yield "mean_variance_normalization first", first, "xpp", FLOATS
    yield "mean_variance_normalization all", _mean_variance, "x11", FLOATS
    train = functools.partial(_first_of, dmlops.batch_normalization_training)
    yield "batch_normalization_training", train, "xpp", FLOATS
    yield "batch_normalization_training added", train, "xppx", FLOATS
    for gradient in (dmlops.batch_normalization_grad, dmlops.batch_normalization_training_grad):
        yield gradient.__name__, functools.partial(_first_of, gradient), "xxppp", FLOATS


@functools.cache
def uniform(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Return values that every operator takes; they are the same for each."""
    return samples.uniform(shape, dtype, 0.5, 4, seed)


def check(
    operator: Operator,
    shapes: Sequence[tuple[int, ...]],
    dtype: str,
    memory: list[GuardedMemory],
    layouts: tuple[Layout, Layout],
) -> None:
    """Expect the bits that ordinary memory gives, with every operand at a guard."""
    itemsize = np.dtype(dtype).itemsize
    values = [uniform(shape, dtype, i) for i, shape in enumerate(shapes)]
    steps = [layouts[0].strides(shape, itemsize) for shape in shapes]
    expected = None
    for at_end in (True, False):
        inputs = []
        for block, value, strides in zip(memory[1:], values, steps, strict=False):
            view = block.place(value.shape, dtype, strides, at_end)
            view[once(view)] = value[once(view)]
            inputs.append(view)
        if expected is None:  # both ends hold the same values
            expected = operator([x.copy() for x in inputs], np.empty(shapes[0], dtype)).tobytes()
        out = memory[0].place(shapes[0], dtype, layouts[1].strides(shapes[0], itemsize), at_end)
        out[...] = 77  # a missing write is seen
        operator(inputs, out)
        if out.tobytes() != expected:
            raise SystemExit(f"shape {shapes[0]}, {layouts[0]} to {layouts[1]}: wrong values")


def functions(memory: list[GuardedMemory], share: int) -> None:
    """Apply every function to runs of each length, and to every layout of some shapes."""
    dense, *_ = LAYOUTS
    runs = [(lay, dense) for lay in LAYOUTS] + [(dense, lay) for lay in OUT_LAYOUTS]
    turns = itertools.count()  # functions and data types begin at different combinations
    for name, operator, inputs, types in operators():
        for dtype in types:
            print(name, dtype, flush=True)
            begin = next(turns) % share
            lengths = range(LENGTHS[np.dtype(dtype).itemsize])
            cases = list(itertools.product(lengths, (dense, EVERY_SECOND)))
            for length, layout in cases[begin::share]:
                shapes = [(1,) if kind == "1" else (length,) for kind in inputs]
                check(operator, shapes, dtype, memory, (layout, dense))
            # The activations share their traversal: some of them go through every shape.
            brief = name.split()[-1] not in THOROUGH
            pairs = list(itertools.product(SHAPES[:2] if brief else SHAPES, runs))
            for shape, pair in pairs[begin::share]:
                last = (*(1 for _ in shape[:-1]), shape[-1])
                one = (1,) * len(shape)
                shapes = [{"x": shape, "p": last, "1": one}[kind] for kind in inputs]
                check(operator, shapes, dtype, memory, pair)
            for shape in SHAPES[:4] if "p" in inputs else ():
                check(operator, [shape] * len(inputs), dtype, memory, (dense, dense))


def large(memory: list[GuardedMemory], share: int) -> None:
    """Split enough work for threads, with both ends of every operand at a guard."""
    dense, *_ = LAYOUTS
    for name, operator, inputs, types in list(operators())[::share]:
        if name.startswith("batch_normalization ") and not name.endswith(("identity", "tanh")):
            continue
        for dtype, layout in itertools.product(types[:2], (dense, EVERY_SECOND)):
            print("large", name, dtype, layout, flush=True)
            shapes = [(LARGE,) if kind == "x" else (1,) for kind in inputs]
            check(operator, shapes, dtype, memory, (layout, dense))


def bindings(memory: list[GuardedMemory], share: int) -> None:
    """Bind exactly the bytes that each compiled operator needs."""
    device = dmlops.Device()
    types = [data_type for data_type in dmlops.TensorDataType if data_type.value != 0]
    turns = itertools.count()
    for name, (make, _) in TABLE.items():
        for data_type in types:
            if not accepts(name, device.feature_level, data_type.name, 2):
                continue
            print("dispatch", name, data_type.name, flush=True)
            dtype = np.dtype(data_type.name.lower())
            shapes = ((1, 1), (1, 3), (3, 5), (2, 33), (5, 67), (130, 3))
            for shape in shapes[next(turns) % min(share, 6) :: share]:
                dense = dense_strides(shape, 1)
                for strides in (None, dense[::-1], (shape[1] + 1, 1), (2, 2 * shape[0])):
                    x = tensor(shape, data_type.name)
                    y = tensor(shape, data_type.name, strides=strides) if strides else x
                    try:
                        compiled = device.compile(make(x, output_tensor=y))
                    except dmlops.ValidationError:  # strides that overlap
                        continue
                    dispatch(compiled, shape, strides, dtype, memory)


def dispatch(
    compiled: dmlops.CompiledOperator,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: np.dtype[Any],
    memory: list[GuardedMemory],
) -> None:
    """Bind the exact bytes at the end and at the begin of guarded memory."""
    count, outputs = operands(compiled.desc)
    size = shape[0] * shape[1]
    reach = size
    if strides is not None:
        reach = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    for at_end in (True, False):
        blocks = memory[1 : count + outputs]
        dense = [block.place((size,), dtype, (dtype.itemsize,), at_end) for block in blocks]
        inputs = dense[:count]
        for i, view in enumerate(inputs):
            view[...] = samples.uniform((size,), dtype, 0.5, 4, i)
        out = memory[0].place((reach * dtype.itemsize,), np.uint8, (1,), at_end)
        compiled.dispatch(inputs, [out, *dense[count:]])


def chunks(memory: list[GuardedMemory]) -> None:
    """Compute softmaxes in chunks, as for Dask, with every operand at a guard."""
    groups = (1, 31, 32, 33, 64, 70)
    names = ("softmax", "log_softmax")
    for name, dtype, count, at_end in itertools.product(names, FLOATS, groups, (True, False)):
        print("chunks", name, dtype, count, flush=True)
        x = copied(memory[0], samples.uniform((count, 65), dtype, -8, 8), at_end)
        top = copied(memory[1], x.max(axis=1).astype(np.float32), at_end)
        lanes, maxima = _core.softmax_sums(name, x, top)
        sums = lanes[:, 0]
        while sums.shape[1] > 1:
            half = sums.shape[1] // 2
            sums = sums[:, :half] + sums[:, half:]
        sums, maxima = copied(memory[2], sums[:, 0], at_end), copied(memory[3], maxima, at_end)
        results = _core.softmax_finish(name, x, top, sums, maxima)
        if not np.array_equal(results, getattr(dmlops, name)(x)):
            raise SystemExit(f"chunks of {count} groups: wrong values")


def copied(block: GuardedMemory, value: Array, at_end: bool) -> Array:
    """Return a copy at a guard."""
    view = block.place(value.shape, value.dtype, value.strides, at_end)
    view[...] = value
    return view


def main(share: int) -> None:
    """Run a share of the combinations."""
    faulthandler.enable()
    small = [GuardedMemory(SMALL) for _ in range(OPERANDS)]
    functions(small, share)
    bindings(small, share)
    chunks(small)
    large([GuardedMemory(16 * LARGE) for _ in range(OPERANDS)], share)
    print("done")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
