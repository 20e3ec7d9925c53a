"""Every function on dask arrays: lazy results, bit-identical to unchunked ones; refusals."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from dask_arrays import expect, intermediate_blocks
from reference import FLOATS, as_tuple, assert_same_bits
from subprocesses import python

import dmlops as _dmlops
from dmlops import _activations
from dmlops._table import ROWS

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dask_base = pytest.importorskip("dask.base")

dmlops: Any = _dmlops  # its types are those of NumPy arrays
Array = npt.NDArray[Any]

ACTIVATIONS = _activations.__all__
CHUNKS = (4, (2, 5, 8), ((2, 7, 2), 3, -1), -1, "auto")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


# By blocks


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_activations(name: str, dtype: str) -> None:
    function = getattr(dmlops, name)
    x = samples.uniform((11, 5, 8), dtype)
    for chunks in CHUNKS:
        lazy = da.from_array(x, chunks=chunks)
        expect(function(lazy), lazy, function(x), chunks)
    lazy = da.from_array(x, chunks=3)
    for order in (lazy.T, lazy[::-1, ::2], lazy.astype(dtype)[..., None], lazy[0, 0, 0]):
        expect(function(order), order, function(order.compute()))


def test_parameters_reach_the_blocks() -> None:
    x = samples.uniform((9, 9), np.float32)
    lazy = da.from_array(x, chunks=4)
    expect(dmlops.leaky_relu(lazy, 0.3), lazy, dmlops.leaky_relu(x, 0.3))
    expect(dmlops.leaky_relu(lazy, alpha=0.3), lazy, dmlops.leaky_relu(x, 0.3))
    expect(dmlops.leaky_relu(input=lazy, alpha=0.3), lazy, dmlops.leaky_relu(x, 0.3))
    expect(dmlops.linear(lazy, 2, beta=1, out=None), lazy, dmlops.linear(x, 2, 1))


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "uint16", "int64", "uint64"])
def test_clip(dtype: str) -> None:
    x = samples.any_bits((40, 30), dtype)
    lazy = da.from_array(x, chunks=(7, 30))
    expect(dmlops.clip(lazy, 2, 9), lazy, dmlops.clip(x, 2, 9))
    scale_bias = dmlops.ScaleBias(0.5, 3)
    expected = dmlops.clip(x, max=9, scale_bias=scale_bias)
    expect(dmlops.clip(lazy, max=9, scale_bias=scale_bias), lazy, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 5, 1), (1, 1, 1), (4, 5, 6), (4, 1, 6)], ids=str)
@pytest.mark.parametrize("lazy_parameters", [True, False])
def test_batch_normalization(dtype: str, shape: tuple[int, ...], lazy_parameters: bool) -> None:
    x = samples.uniform((4, 5, 6), dtype)
    values = [samples.uniform(shape, dtype, 0.5, 2, seed=i) for i in range(4)]
    given: list[Any] = [da.from_array(v, chunks=3) for v in values] if lazy_parameters else values
    fused = dmlops.ActivationLeakyReluOperatorDesc(alpha=0.1)
    for chunks in (1, (3, 2, 4), -1):
        lazy = da.from_array(x, chunks=chunks)
        result = dmlops.batch_normalization(lazy, *given, 1e-3, fused_activation=fused)
        expected = dmlops.batch_normalization(x, *values, 1e-3, fused_activation=fused)
        expect(result, lazy, expected, chunks)
    if lazy_parameters:  # a NumPy input
        result = dmlops.batch_normalization(x, *given)
        assert_same_bits(result.compute(), dmlops.batch_normalization(x, *values))


@pytest.mark.parametrize("dtype", [*FLOATS, "int16"])
@pytest.mark.parametrize("name", ["clip_grad", "relu_grad", "parameterized_relu"])
def test_functions_of_two_arrays(name: str, dtype: str) -> None:
    bounds = {"min": -1, "max": 2} if name == "clip_grad" else {}
    function = partial(getattr(dmlops, name), **bounds)
    x, other = (samples.uniform((6, 10), dtype, seed=seed) for seed in (0, 1))
    others = [other, other[:, :1], other[:1]] if name == "parameterized_relu" else [other]
    for chunks in (3, (6, 4), ((2, 4), (1, 9))):
        lazy = da.from_array(x, chunks=chunks)
        for values in others:
            for given in (values, da.from_array(values, chunks=(4, 5))):
                expect(function(lazy, given), lazy, function(x, values), (chunks, values.shape))
    lazy = da.from_array(x[:1], chunks=((0, 1, 0), (4, 0, 6)))
    expect(function(lazy, other[:1]), lazy, function(x[:1], other[:1]))


# log_softmax


def check_log_softmax(x: Array, chunks: Any, axes: Any) -> None:
    lazy = da.from_array(x, chunks=chunks)
    expect(
        dmlops.log_softmax(lazy, axes), lazy, dmlops.log_softmax(x, axes), (x.shape, chunks, axes)
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [0.01, 1, 40])
def test_log_softmax_over_chunked_axes(dtype: str, scale: float) -> None:
    """The sum's parts, with and without the rounding errors, for groups of every size."""
    for elements in (2, 64, 65, 4096, 4097, 8192, 20000):
        x = samples.uniform((2, elements), dtype, -scale, scale)
        x[1, elements // 2] = 2 * scale
        for chunk in (elements // 2, 1000, 4096, 5000):
            if chunk < elements:
                check_log_softmax(x, (1, chunk), 1)
                check_log_softmax(x.T, (chunk, 2), 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_log_softmax_over_every_set_of_axes(dtype: str) -> None:
    x = samples.uniform((5, 12, 6, 70), dtype, -8, 8)  # all: 25200 elements
    for count in (1, 2, 3, 4):
        for axes in itertools.combinations(range(4), count):
            for chunks in ((5, 5, 6, 70), (3, 8, 4, 33), (5, 12, 2, 64)):
                check_log_softmax(x, chunks, axes)
    check_log_softmax(x, 4, (-1, 1))
    check_log_softmax(x, 4, -2)


@pytest.mark.parametrize("name", ["softmax", "hardmax"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [8, 400])
def test_softmax_and_hardmax_over_chunked_axes(name: str, dtype: str, scale: float) -> None:
    x = samples.uniform((5, 40, 170), dtype, -scale, scale)  # all: 34000 elements
    function, sets = getattr(dmlops, name), (0, -1, (0, 2), (1, 2), (0, 1, 2))
    for axes, chunks in itertools.product(sets, ((5, 40, 170), (3, 8, 33), (5, 1, 170))):
        lazy = da.from_array(x, chunks=chunks)
        expect(function(lazy, axes), lazy, function(x, axes), (name, axes, chunks))


@pytest.mark.parametrize("name", ["softmax", "hardmax"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_and_hardmax_of_special_values(name: str, dtype: str) -> None:
    """NaN, infinities, ties in different chunks, signed zeros, and any bits."""
    x = samples.uniform((9, 3000), dtype, -8, 8)
    x[0, [700, 2500]] = x[1, 2999] = np.nan
    x[1, 3] = x[2, [900, 1800]] = np.inf
    x[3] = -np.inf
    x[4] = np.where(x[4] > 0, 0.0, -0.0)
    x[5], x[6, [800, 1600, 2400]] = np.finfo(dtype).min, 9
    x[7] = samples.any_bits((3000,), dtype)
    x[8, 1234] = 60  # beside which the others vanish
    lazy = da.from_array(x, chunks=(3, 700))
    expect(getattr(dmlops, name)(lazy), lazy, getattr(dmlops, name)(x))


@pytest.mark.parametrize(
    "axes", [{0, 2}, [0, -1], range(0, 3, 2), np.array([2, 0]), {0: "a", 2: "c"}], ids=repr
)
@pytest.mark.parametrize("name", ["log_softmax", "hardmax", "mean_variance_normalization"])
def test_axes_of_any_iterable(name: str, axes: Any) -> None:
    """Every iterable that is accepted for NumPy arrays; iterators are read once."""
    function, x = getattr(dmlops, name), samples.uniform((3, 4, 5), np.float32)
    lazy = da.from_array(x, chunks=2)
    expected = function(x, axes=(0, 2))
    for given in (axes, iter(axes)):
        expect(function(lazy, axes=given), lazy, expected)


def test_log_softmax_of_long_groups() -> None:
    x = samples.uniform((300_000,), np.float32)
    for chunks in (100_000, 65_536, ((1, 299_998, 1),), ((7, 150_000, 149_993),)):
        check_log_softmax(x, chunks, 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_log_softmax_of_special_values(dtype: str) -> None:
    x = samples.uniform((6, 9000), dtype)
    x[0, 5], x[1, 8999], x[2, 4500], x[3] = np.nan, np.inf, -np.inf, -np.inf
    x[4], x[4, 5700] = -np.inf, 3
    x[5] = samples.any_bits((9000,), dtype)
    check_log_softmax(x, (2, 2100), 1)
    check_log_softmax(np.zeros((3, 9000), dtype), (2, 2100), 1)


@pytest.mark.parametrize("scale", [1, 100, 1e10, 1e35])
def test_finite_elements_raise_no_warning(scale: float) -> None:
    """The sums of exp(x) are infinite, and NumPy adds them; warnings are errors in the tests."""
    x = (np.random.default_rng(0).standard_normal(4100) * scale).astype(np.float32)
    check_log_softmax(x, 1100, 0)


def test_log_softmax_keeps_to_the_size_of_blocks() -> None:
    """Rechunking moves slices between adjacent chunks, and keeps narrow chunks small."""
    x = da.zeros((20, 100_000), chunks=(5, 10_000), dtype=np.float32)
    assert max(block.nbytes for block in intermediate_blocks(dmlops.log_softmax(x))) < 2 * 200_000
    narrow = da.zeros((2_000_000, 6), chunks=(1_000_000, 1), dtype=np.float32)
    with dask.config.set({"array.chunk-size": "4MiB"}):
        y = dmlops.log_softmax(narrow, 1)
    assert max(block.nbytes for block in intermediate_blocks(y)) <= 4 << 20


def test_empty_chunks_do_not_merge_the_others() -> None:
    x = da.zeros((400, 10_000), chunks=((100, 100, 0, 100, 100), 1000), dtype=np.float32)
    y = dmlops.log_softmax(x, (0, 1))
    assert y.chunks == x.chunks
    assert max(block.nbytes for block in intermediate_blocks(y)) < x.nbytes // 2


def test_empty() -> None:
    for shape in ((0,), (3, 0), (0, 3)):
        x = np.zeros(shape, np.float32)
        lazy = da.from_array(x, chunks=2)
        expect(dmlops.clip(lazy, 0, 1), lazy, x)
        for axis in range(len(shape)):
            expect(dmlops.log_softmax(lazy, axis), lazy, x)
            expect(dmlops.mean_variance_normalization(lazy, axes=axis), lazy, x)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if len(row.inputs) > 1])
def test_empty_numpy_arguments(name: str) -> None:
    """Dask chooses no chunks for an array of size 0 whose other sizes are large."""
    x = np.zeros((0, 1025, 2), np.float32)
    lazy = da.from_array(x, chunks=((0,), (1000, 25), (1, 1)))
    others = [
        x if tensor.like == "input_tensor" and not tensor.broadcast else x[:, :1]
        for tensor in ROWS[name].inputs[1:]
    ]
    bounds = {"min": 0, "max": 1} if name == "clip_grad" else {}
    function = partial(getattr(dmlops, name), **bounds)
    expected = as_tuple(function(x, *others))
    for given in ([lazy, *others], [x, *(da.from_array(a, chunks=a.shape) for a in others)]):
        for result, array in zip(as_tuple(function(*given)), expected, strict=True):
            assert_same_bits(result.compute(), array)


def test_chunks_of_unknown_size() -> None:
    x = samples.uniform((300, 4), np.float32)
    lazy = da.from_array(x, chunks=(100, 4))
    some, rows = lazy[lazy[:, 0] > 0], x[x[:, 0] > 0]
    assert_same_bits(dmlops.gelu(some).compute(), dmlops.gelu(rows))
    assert_same_bits(dmlops.log_softmax(some, 1).compute(), dmlops.log_softmax(rows, 1))
    values = [samples.uniform((1, 4), np.float32, 0.5, 2, seed=i) for i in range(4)]
    assert_same_bits(
        dmlops.batch_normalization(some, *values).compute(),
        dmlops.batch_normalization(rows, *values),
    )
    with pytest.raises(ValueError, match=r"log_softmax: .*unknown size.*compute_chunk_sizes"):
        dmlops.log_softmax(some, 0)
    known = some.compute_chunk_sizes()
    assert_same_bits(dmlops.log_softmax(known, 0).compute(), dmlops.log_softmax(rows, 0))


# Dask's requirements for functions of a collection


def all_functions() -> dict[str, Callable[[Any], Any]]:
    """Return each output of each function, with further arrays of the input or of numbers."""
    more = {
        "clip": {"min": -1, "max": 1, "scale_bias": dmlops.ScaleBias(2, 1)},
        "batch_normalization": {"fused_activation": dmlops.ActivationEluOperatorDesc(alpha=0.5)},
    }
    functions: dict[str, Callable[[Any], Any]] = {}
    for name, row in ROWS.items():
        call = partial(called, name, more.get(name, {}))
        if len(row.outputs) == 1:
            functions[name] = call
        else:
            for i, output in enumerate(row.outputs):
                functions[f"{name} ({output.parameter})"] = partial(nth, call, i)
    return functions


def called(name: str, keywords: dict[str, Any], x: Any) -> Any:
    others = (
        x
        if tensor.like == "input_tensor" and not tensor.broadcast
        else np.full((len(x), 1), i, np.float32)
        for i, tensor in enumerate(ROWS[name].inputs[1:])
        if not tensor.optional
    )
    return getattr(dmlops, name)(x, *others, **keywords)


def nth(function: Callable[[Any], Any], i: int, x: Any) -> Any:
    return function(x)[i]


@pytest.mark.parametrize("name", all_functions())
def test_names_are_deterministic(name: str) -> None:
    function = all_functions()[name]
    x = da.from_array(samples.uniform((8, 6), np.float32), chunks=(3, 6))
    first, second = function(x), function(x)
    assert first.name == second.name
    assert first.name.startswith(name.partition(" ")[0])
    assert function(x + 1).name != first.name
    with dask.config.set({"tokenize.ensure-deterministic": True}):
        assert dask_base.tokenize(function(x)) == dask_base.tokenize(first)
    assert_same_bits(pickle.loads(pickle.dumps(first)).compute(), first.compute())


def test_names_tell_parameters_apart() -> None:
    x = da.from_array(samples.uniform((8, 6), np.float32), chunks=3)
    names = {
        *(dmlops.leaky_relu(x, alpha).name for alpha in (0.1, 0.2)),
        *(dmlops.clip(x, *bounds).name for bounds in ((0, 1), (0, 2), (None, 1))),
        *(dmlops.log_softmax(x, axes).name for axes in (0, 1, (0, 1))),
    }
    assert len(names) == 8


def test_names_are_the_same_in_another_process() -> None:
    code = (
        "import dask.array as da, dmlops;"
        "x = da.ones((6, 9000), chunks=3000, dtype='float32');"
        "print(dmlops.clip(x, 0, 1).name, dmlops.log_softmax(x).name)"
    )
    runs = [python("-c", code, PYTHONHASHSEED=seed).stdout for seed in ("1", "2")]
    assert runs[0] == runs[1] != ""


def test_functions_are_fused_and_culled() -> None:
    x = da.ones((100, 100), chunks=10, dtype=np.float32)
    y = dmlops.clip(dmlops.relu(dmlops.gelu(x)), 0, 1)
    (fused,) = dask.optimize(y)
    assert len(dict(fused.__dask_graph__())) <= x.npartitions + 1
    (part,) = dask.optimize(y[:10, :10])
    assert len(dict(part.__dask_graph__())) <= 3


def test_nothing_is_computed_early() -> None:
    def fail(block: Array) -> Array:
        raise AssertionError("computed")

    x = da.ones((6, 6), chunks=3, dtype=np.float32).map_blocks(fail, dtype=np.float32)
    for function in all_functions().values():
        assert isinstance(function(x), da.Array)
    dmlops.log_softmax(x, (0, 1))


def test_dask_is_imported_by_its_users_only() -> None:
    code = (
        "import sys, numpy, dmlops; dmlops.clip(numpy.zeros(3, 'f4'));\n"
        "try: dmlops.clip([1.0])\n"
        "except TypeError: pass\n"
        "sys.exit('dask' in sys.modules or 'dmlops._dask' in sys.modules)"
    )
    assert python("-c", code).returncode == 0


@pytest.mark.parametrize(("name", "one"), [("log_softmax", 0), ("softmax", 1), ("hardmax", 1)])
def test_rank_0(name: str, one: float) -> None:
    assert getattr(dmlops, name)(da.from_array(np.array(3, np.float32))).compute() == one
