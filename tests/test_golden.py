"""Reproducibility: each golden digest, and bitwise identical results for every layout, length,
thread count and form of the call, on each instruction set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import golden
import numpy as np
import numpy.typing as npt
import pytest
from crossing import cross_layouts, packed
from descriptors import ACTIVATIONS, FURTHER, SEVERAL_OUTPUTS
from golden import DESCRIPTORS, OVER_AXES, Case
from golden_cases import LARGE, all_cases
from layouts import BY_NAME, LAYOUTS, OUT_LAYOUTS, SIZES, elements
from reference import FLOATS, INTEGERS, assert_same_bits
from variants import ISAS, POLICIES, Extent, pairwise

import dmlops

Array = npt.NDArray[Any]

CASES = golden.read()
GROUPS = sorted({(case.operator, case.dtype) for case in CASES})
MOST = elements(LARGE) // 2  # smaller cases are below the threshold for threads
THREADS = (1, 2, 3, 7, 16)
ELEMENTWISE = {case.operator for case in CASES} - {
    *("batch_normalization", *SEVERAL_OUTPUTS, *OVER_AXES)
}
# Layouts that a descriptor can express: non-negative strides in whole elements.
DESCRIBED = ("c", "transposed", "channels-last", "every-second", "padded-rows", "zero-first")

# The tests of a group run in a row, since they share its inputs, which `golden.values` keeps.
every_group = pytest.mark.parametrize(
    ("operator", "dtype"), GROUPS, ids=[f"{name}-{dtype}" for name, dtype in GROUPS], scope="module"
)


def cases_of(operator: str, dtype: str) -> list[Case]:
    return [case for case in CASES if (case.operator, case.dtype) == (operator, dtype)]


def is_large(case: Case) -> bool:
    return elements(case.shape) > MOST


def results(case: Case) -> tuple[list[Array], tuple[Array, ...]]:
    """Return the inputs and the results, whose digest must be the golden one."""
    inputs = case.inputs()
    result = case(*inputs)
    assert golden.digest(result) == case.digest, f"other bits than the golden ones: {case}"
    return inputs, result


def assert_same(actual: Sequence[Array], expected: Sequence[Array], context: object) -> None:
    for i, pair in enumerate(zip(actual, expected, strict=True)):
        assert_same_bits(*pair, f"{context}, output {i}")


@pairwise(group=GROUPS, isa=ISAS, policy=POLICIES)
def test_digests(group: tuple[str, str], isa: str, policy: str) -> None:
    for case in cases_of(*group):
        results(case)


def test_the_file_has_all_cases() -> None:
    assert [replace(case, digest="") for case in CASES] == list(all_cases())
    assert [Case.parse(str(case)) for case in CASES] == CASES


def test_every_operator_and_data_type_has_large_and_small_cases() -> None:
    found = Counter((case.operator, case.dtype, is_large(case)) for case in CASES)
    operators = {*DESCRIPTORS, *ACTIVATIONS, *FURTHER}
    expected = {(operator, dtype) for operator in operators for dtype in FLOATS}
    expected |= {(name, dtype) for name in ("clip", "clip_grad") for dtype in INTEGERS}
    signed = ("relu", "relu_grad", "parameterized_relu")
    expected |= {(name, dtype) for name in signed for dtype in ("int8", "int16", "int32")}
    assert expected <= set(GROUPS)
    missing = [
        (*group, large) for group in GROUPS for large in (True, False) if not found[(*group, large)]
    ]
    assert not missing


def test_a_digest_sees_every_bit_and_every_place() -> None:
    x = golden.values("any:1", (257,), "float32")
    expected = golden.digest([x])
    assert golden.digest([x[:100], x[100:]]) == expected
    for place in (0, 100, 256):
        for bit in (0, 15, 31):
            other = x.copy()
            other.view(np.uint32)[place] ^= np.uint32(1 << bit)
            assert golden.digest([other]) != expected
    assert golden.digest([x[::-1]]) != expected
    assert golden.digest([x[:-1]]) != expected


def test_recipes_by_hand() -> None:
    """Check the first values of splitmix64, and the recipes' values."""
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]  # of the seed 0
    assert golden.values("any:0", (3,), "uint64").tolist() == known
    assert golden.values("any:0", (3,), "uint8").tolist() == [0xE2, 0x6E, 0x06]
    bounded = golden.values("bounded:0:-2:2", (3,), "float32")
    exponents = [((h & 0xFFFF) * 4 >> 16) - 2 for h in known]
    mantissas = [((h >> 32) & 0x7FFFFF) * 2.0**-23 for h in known]
    pairs = zip(exponents, mantissas, strict=True)
    expected = [2.0**e * (1 + m) for e, m in pairs]
    assert bounded.tolist() == [-expected[0], *expected[1:]]
    mixed = golden.values("mixed:0:-2:2", (3,), "float32")
    assert mixed.view(np.uint32).tolist() == [
        known[0] >> 32,
        bounded.view(np.uint32)[1],
        known[2] >> 32,
    ]


@every_group
@pytest.mark.usefixtures("isa", "policy")
def test_threads(operator: str, dtype: str, extent: Extent) -> None:
    for case in filter(is_large, cases_of(operator, dtype)):
        dmlops.set_num_threads(1)
        inputs, expected = results(case)
        for count in extent.of(THREADS[1:], 4):
            dmlops.set_num_threads(count)
            assert_same(case(*inputs), expected, f"{case}, {count} threads")
            for name, out in (("transposed", "c"), ("every-second", "transposed")):
                target = BY_NAME[out].place(case.shape, dtype)
                x = BY_NAME[name].view(inputs[0])
                context = f"{case}, {count} threads, {name} to {out}"
                assert_same(case(x, *inputs[1:], out=target.view), expected, context)


@every_group
@pytest.mark.usefixtures("isa", "policy")
def test_layouts(operator: str, dtype: str, extent: Extent) -> None:
    """Each layout of the input, with changing layouts of the output, and in place."""
    dmlops.set_num_threads(1)
    for number, case in enumerate(case for case in cases_of(operator, dtype) if not is_large(case)):
        inputs, expected = results(case)

        def operate(
            x: Array, *, out: Array | None = None, case: Case = case, more: list[Array] = inputs[1:]
        ) -> Array:
            return case(x, *more, out=out)[0]

        for i, layout in extent.of(enumerate(LAYOUTS), 10):
            out = OUT_LAYOUTS[(i + number) % len(OUT_LAYOUTS)]
            cross_layouts(operate, inputs[0], case, [layout], [out])
            if layout in OUT_LAYOUTS:
                x = layout.place(case.shape, dtype).fill(inputs[0])
                assert_same(case(x.view, *inputs[1:], out=x.view), expected, f"{case} in place")


@every_group
@pytest.mark.usefixtures("isa", "policy")
def test_lengths(operator: str, dtype: str, extent: Extent) -> None:
    """Check slices of the elements, or of the groups."""
    dmlops.set_num_threads(1)
    for case in cases_of(operator, dtype):
        inputs, expected = results(case)
        if operator in ELEMENTWISE:
            flat, whole = [x.ravel() for x in inputs], expected[0].ravel()
            for size in extent.of(SIZES, 8):
                start = size % 5
                part = slice(start, start + size)
                result = case(*(x[part] for x in flat))
                assert_same(result, [whole[part]], f"{case}, elements {part}")
            continue
        kept = list(range(len(case.shape)))
        if operator in OVER_AXES:
            kept = [axis for axis in kept if axis not in case.axes()]
        elif operator in SEVERAL_OUTPUTS:
            kept = list(case.axes())
        for axis in kept:
            size = case.shape[axis]
            for count in {1, 2, size // 2, size - 1}:
                cut = tuple(
                    slice(size - count, size) if i == axis else slice(None)
                    for i in range(len(case.shape))
                )
                chunks = [x[cut] if x.shape[axis] == size else x for x in inputs]
                right = [x[cut] if x.shape[axis] == size else x for x in expected]
                assert_same(case(*chunks), right, f"{case}, the last {count} along axis {axis}")


@every_group
@pytest.mark.usefixtures("isa", "policy")
def test_descriptors(operator: str, dtype: str, extent: Extent) -> None:
    device = dmlops.Device()
    dmlops.set_num_threads(3)
    for number, case in enumerate(cases_of(operator, dtype)):
        inputs, expected = results(case)
        dense = [name for name in DESCRIBED if not BY_NAME[name].overlaps]
        for i, name in extent.of(enumerate(DESCRIBED), 6):
            layout = BY_NAME[name]
            views = [layout.view(x) for x in inputs]
            right = case(*map(packed, views)) if layout.overlaps else expected
            target = BY_NAME[dense[(i + number) % len(dense)]]
            placed = [target.place(x.shape, dtype) for x in expected]
            outputs = [x.view for x in placed]
            desc = case.descriptor(views, outputs)
            device.compile(desc).dispatch(case.bindings(views), outputs)
            assert_same(outputs, right, f"{case}, descriptor, {name}")
            for output in placed:
                output.assert_canaries(case)
