"""Operator files with much data: mapped results, dispatches in chunks, progress, interrupts."""

from __future__ import annotations

import errno
import io
import json
import os
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from descriptors import (
    AXES,
    FOUR_DIMENSIONS,
    ROWS_ONLY,
    SEVERAL_OUTPUTS,
    TABLE,
    batch_normalization,
    tensor,
    tensor_names,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from operator_files import Runner, copy_file, followed, put
from samples import uniform

from dmlops import BufferTensorDesc, Device
from dmlops._cli import main
from dmlops._operator_file import chunks, execute, progress, resources

Array = npt.NDArray[Any]


# Mapped results


def test_huge_results_are_mapped_to_their_file(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "HUGE", 1)
    made: list[Any] = []
    create = resources.create

    def remember(*arguments: Any) -> Any:
        made.append(create(*arguments))
        return made[-1]

    monkeypatch.setattr(execute, "create", remember)
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy"}
    file = followed(copy_file("FLOAT32", [3], [1, 2, 3]), write)
    seen = []
    dispatch = execute._dispatch

    def look(*args: Any) -> None:
        dispatch(*args)
        seen.append((type(made[0].array), len(list(runner.folder.glob(".*.part")))))

    monkeypatch.setattr(execute, "_dispatch", look)
    assert runner(file)[0] == 0
    assert seen == [(np.memmap, 1)]
    assert not list(runner.folder.glob(".*.part"))
    assert np.load(runner.folder / "y.npy").tolist() == [1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space cannot be reserved here")
@pytest.mark.parametrize("huge", [1, 2**28])
def test_a_full_disk_is_an_error(
    huge: int, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(resources, "HUGE", huge)
    monkeypatch.setattr(os, "posix_fallocate", full)
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy"}
    file = followed(copy_file("FLOAT32", [3], [1, 2, 3]), write)
    runner.refused(file, "y.npy: No space left")
    assert [path.name for path in runner.folder.iterdir()] == ["operator.json"]


@pytest.mark.parametrize("other", ["1.npy", "2.npy"])
def test_a_result_that_is_written_twice_is_right_both_times(
    other: str, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "HUGE", 1)
    first = {"type": "writeFile", "resource": "y", "targetPath": "1.npy"}
    second = {"type": "writeFile", "resource": "y", "targetPath": other}
    file = followed(copy_file("FLOAT32", [3], [1, 2, 3]), first)
    half = put(file, "dispatchables/copy/desc/Max", 2)["dispatchables"]["copy"]
    file = put(file, "dispatchables/half", half)
    again = {**file["commands"][0], "dispatchable": "half"}
    assert runner(followed(file, again, second))[0] == 0
    assert np.load(runner.folder / other).tolist() == [1, 2, 2]
    if other != "1.npy":
        assert np.load(runner.folder / "1.npy").tolist() == [1, 2, 3]


# Chunks


def _dense(desc: Any, seed: int) -> dict[str, Array]:
    result = {}
    for i, name in enumerate(tensor_names(desc)):
        described: BufferTensorDesc = getattr(desc, name)
        strides = described.strides or (1,) * len(described.sizes)
        reach = 1 + sum((n - 1) * s for n, s in zip(described.sizes, strides, strict=True))
        count = max(reach, int(np.prod(described.sizes)))
        low = 0.5 if i else -4
        dtype = described.data_type.name.lower()
        result[name] = uniform((count + count % 2,), dtype, low, 4, seed + i)
    return result


@st.composite
def _long(draw: st.DrawFn) -> Any:
    """Draw an operator on a tensor with one long dimension, dense or transposed."""
    sizes = draw(st.permutations([draw(st.integers(33, 90)), 3, draw(st.integers(1, 5))]))
    dtype = draw(st.sampled_from(["FLOAT32", "FLOAT16"]))
    x = tensor(sizes, dtype)
    strides = (1, sizes[0] * sizes[2], sizes[0])
    y = tensor(sizes, dtype, strides=draw(st.sampled_from([None, strides])))
    kind = draw(st.sampled_from(sorted({*TABLE} - {*ROWS_ONLY, *SEVERAL_OUTPUTS, FOUR_DIMENSIONS})))
    if kind in AXES:
        axes = draw(st.lists(st.integers(0, 2), min_size=1, unique=True))
        return TABLE[kind][0](x, output_tensor=y, axes=tuple(axes))
    if kind == "batch_normalization":
        own = [draw(st.sampled_from([1, n])) for n in sizes]
        parameters = dict.fromkeys(("mean_tensor", "scale_tensor"), tensor(own, dtype))
        return batch_normalization(x, output_tensor=y, **parameters)
    return TABLE[kind][0](x, output_tensor=y)


def _runs_in_chunks(desc: Any, seed: int) -> bool:
    """Return False if an operator is not split; expect the same bits from its chunks."""
    arrays = _dense(desc, seed)
    (out,) = (name for name in arrays if name.startswith("output"))
    inputs = {name: a for name, a in arrays.items() if name != out}
    Device().compile(desc).dispatch(inputs, [arrays[out]])
    again = {**inputs, out: _dense(desc, seed)[out]}
    parts = chunks.chunks(desc, again)
    for part in parts:
        output = part.bindings.pop(out)
        Device().compile(part.desc).dispatch(part.bindings, [output])
    if parts:
        assert again[out].tobytes() == arrays[out].tobytes()
        shares = [part.done for part in parts]
        assert shares == sorted(shares)
        assert shares[-1] == 1
    return bool(parts)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(desc=_long(), seed=st.integers(0, 9))
def test_chunks_give_the_same_bits(desc: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 48)
    sizes = desc.input_tensor.sizes
    longest = max(range(3), key=lambda axis: sizes[axis])
    assert _runs_in_chunks(desc, seed) == (longest not in getattr(desc, "axes", ()))


@pytest.mark.parametrize("cross_channel", [False, True])
@pytest.mark.parametrize("long_axis", range(4))
def test_chunks_of_four_dimensions(
    long_axis: int, cross_channel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 48)
    sizes = [40 if axis == long_axis else size for axis, size in enumerate((2, 3, 2, 5))]
    desc = TABLE[FOUR_DIMENSIONS][0](tensor(sizes), cross_channel=cross_channel)
    assert _runs_in_chunks(desc, 1) == (long_axis < (1 if cross_channel else 2))


@pytest.mark.parametrize("name", SEVERAL_OUTPUTS)
def test_several_outputs_are_not_split(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 48)
    desc = TABLE[name][0](tensor((90, 4)))
    assert not chunks.chunks(desc, _dense(desc, 1))


def test_chunks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 48)
    for sizes, cut in [((1, 1, 90, 4), True), ((1, 4, 90), False)]:
        desc = TABLE["log_softmax"][0](tensor(sizes))
        assert bool(chunks.chunks(desc, _dense(desc, 1))) == cut


def test_what_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bindings that a rule refuses are not split into chunks."""
    monkeypatch.setattr(chunks, "CHUNK", 48)
    desc = TABLE["relu"][0](tensor((200,)))
    array, other = np.zeros(200, np.float32), np.ones(200, np.float32)
    assert chunks.chunks(desc, {"input_tensor": array, "output_tensor": other})
    assert chunks.chunks(desc, {"input_tensor": array, "output_tensor": array})
    small = {"input_tensor": array[:199], "output_tensor": other}
    assert not chunks.chunks(desc, small)
    assert not chunks.chunks(desc, {"input_tensor": array.view(np.int32), "output_tensor": other})
    turned = TABLE["relu"][0](tensor((50, 4)), output_tensor=tensor((50, 4), strides=(1, 50)))
    assert not chunks.chunks(turned, {"input_tensor": array, "output_tensor": array})
    assert not chunks.chunks(TABLE["relu"][0](tensor((90,))), dict.fromkeys(small, array))


def test_a_file_runs_in_chunks(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 48)
    counted: list[int] = []
    cut = chunks.chunks

    def count(*arguments: Any) -> Any:
        parts = cut(*arguments)
        counted.append(len(parts))
        return parts

    monkeypatch.setattr(execute, "chunks", count)
    values = {"valueCount": 500, "valueStart": 0, "valueDelta": 1}
    file = followed(
        copy_file("FLOAT32", [500], values), {"type": "print", "resource": "y", "verbose": True}
    )
    assert runner.arrays(file)["y"].tolist() == list(range(500))
    assert counted == [11]
    # A tensor whose resource is too small is refused as a whole.
    size = "dispatchables/copy/desc/InputTensor/TotalTensorSizeInBytes"
    runner.refused(put(file, size, 2004), "needs 2004", status=1)


# Progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [_Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_progress_after_a_while(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_OF_SILENCE", 0.01)
    with progress.Progress("clip", stream) as shown:
        while "clip: 0 s" not in stream.getvalue():
            time.sleep(0.001)
        shown.reach(0.5)
        assert shown.line() == "clip: 50%, 0 s left"
        while stream.isatty() and "50%" not in stream.getvalue():
            time.sleep(0.001)
    text = stream.getvalue()
    assert text.endswith("\r\x1b[K") if stream.isatty() else text == "clip: 0 s\n"


def test_no_progress_of_short_work(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Progress("clip") as shown:
        shown.reach(0.5)
    assert capsys.readouterr().err == ""


def test_an_interrupt_ends_a_long_run(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(resources, "HUGE", 1)
    monkeypatch.setattr(execute, "chunks", interrupt)
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy"}
    path = runner.folder / "operator.json"
    path.write_text(json.dumps(followed(copy_file("FLOAT32", [3], [1, 2, 3]), write)))
    assert main(["run", str(path)]) == 130
    assert [path.name for path in runner.folder.iterdir()] == ["operator.json"]
