"""The comparison: its options, its problems, and a small run whose JSON is read again."""

import json
import math
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subprocesses import python

from dmlops._bench import choose, machine, table, timing
from dmlops._bench.cells import Layout, all_cells, clip, elementwise, problem
from dmlops._bench.groups import averages
from dmlops._bench.peers.base import Candidate, CannotDo, Peer
from dmlops._bench.peers.dmlops import Dmlops
from dmlops._bench.problem import Problem, View
from dmlops._bench.references import reference
from dmlops._cli import CommandError, main
from dmlops._text import aligned

COMPETITORS = {"dmlops", "memcpy", "numpy"}
FAST = timing.Effort(rounds=3, turn=1e-5, cell=0.01)
SMALL = Layout((8,))


def test_cells_have_different_names() -> None:
    names = [cell.name for cell in all_cells()]
    assert len(names) == len(set(names)) == 177


def test_choose() -> None:
    assert len(choose(quick=False, only=[])) == len(all_cells())
    assert {cell.layout for cell in choose(quick=False, only=["transpose"])} == {"transpose"}
    both = choose(quick=False, only=["clip/f16/c1m", "128x1000"])
    operators = {cell.operator for cell in both}
    assert operators == {"clip", "log_softmax", "softmax", "hardmax"}
    assert 0 < len(choose(quick=True, only=[])) < 50
    with pytest.raises(CommandError, match=r"'nothing'.*a valid name is clip/f32/c1"):
        choose(quick=False, only=["nothing"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--peers", "numpy,mathlab"], "mathlab unknown; the peers are numpy, torch"),
        (["--threads", "0"], "'0' is not a number from 1 to"),
        (["--threads", "100000"], "'100000' is not a number from 1 to"),
        (["--threads", "two"], "'two' is not a number from 1 to"),
    ],
)
def test_wrong_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["bench", *words])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("cell", choose(quick=True, only=["c1", "128x1000"]))
def test_dmlops_solves_the_problem(cell: Any) -> None:
    posed = cell.make()
    expected = reference(posed)
    candidates = list(Dmlops(1).candidates(posed))
    assert [timing.check(candidate, posed, expected) for candidate in candidates] == [""]


def test_problem_in_memory_order_is_the_same_work() -> None:
    layout = Layout((2, 3, 4, 5), View(axes=(0, 3, 1, 2)), same_order=True)
    posed = problem("clip", "f32", layout, {"min": -1.0, "max": 1.0})
    assert posed.input.shape == posed.output.shape == (2, 5, 3, 4)
    assert posed.input.strides == posed.output.strides
    dense = posed.in_memory_order()
    assert dense.view == View()
    assert np.shares_memory(dense.output, posed.output)
    np.testing.assert_array_equal(reference(dense).transpose(layout.view.axes), reference(posed))


def test_parameters_follow_the_memory_order() -> None:
    (cell,) = choose(quick=False, only=["batch_normalization/f32/nhwc"])
    dense = cell.make().in_memory_order()
    assert dense.arguments["mean"].shape == (1, 1, 1, 64)
    assert dense.arguments["relu"] is False


def test_traffic_counts_bytes_of_memory() -> None:
    arguments = {"min": 0, "max": 1}
    assert problem("clip", "i16", SMALL, arguments).traffic == 32
    every2nd = Layout((16,), View((slice(None, None, 2),)))
    assert problem("clip", "i16", every2nd, arguments).traffic == 48
    broadcast = Layout((8,), View(shape=(100, 8)))
    assert problem("clip", "i16", broadcast, arguments).traffic == 16 + 1600


def test_error_names_a_wrong_element() -> None:
    posed = clip("f32", "small", SMALL).make()
    expected = reference(posed)
    right = expected.astype(np.float32)
    assert posed.error(right, expected) == ""
    wrong = right.copy()
    wrong[3] += 0.01
    assert posed.error(wrong, expected).endswith(f" instead of {expected[3]:.7g}")
    wrong[3] = np.nan
    assert "nan instead of" in posed.error(wrong, expected)
    assert "float64" in posed.error(expected, expected)
    assert "shape (7,)" in posed.error(right[:7], expected)


def test_naive_sums_of_many_elements_are_taken() -> None:
    error = 300 * float(np.finfo(np.float32).eps)
    for length, wrong in ((100, True), (64 * 1000, False)):
        layout = Layout((1, length))
        posed = elementwise("log_softmax", "f32", "one", layout, {"axes": (1,)}).make()
        expected = reference(posed)
        near = (expected + error * (1 + np.abs(expected))).astype(np.float32)
        assert bool(posed.error(near, expected)) == wrong


class Stub(Peer):
    """A peer with one wrong statement, two right ones and an error."""

    module = "numpy"

    def clip(self, problem: Problem) -> Iterator[Candidate]:
        names = {"np": np, "x": problem.input, "y": problem.output, "lo": -1, "hi": 1}
        names["sleep"] = __import__("time").sleep
        yield Candidate("np.clip(x, lo, 2, out=y)", names)
        yield Candidate("sleep(0.001); np.clip(x, lo, hi, out=y)", names)
        yield Candidate("np.clip(x, lo, hi, out=y)", names)
        raise CannotDo("knows no more")


class Unable(Peer):
    """A peer whose statements fail or give wrong results."""

    module = "numpy"

    def clip(self, problem: Problem) -> Iterator[Candidate]:
        yield Candidate("undefined(x)", {})
        yield Candidate("0", {"x": problem.input})


def test_fastest_correct_statement_is_taken() -> None:
    posed = clip("f32", "small", Layout((1000,))).make()
    peers = {"numpy": Stub(1), "torch": Unable(1)}
    competitors, reasons = timing.entrants(posed, peers, FAST)
    assert [(each.name, each.candidate.statement) for each in competitors] == [
        ("numpy", "np.clip(x, lo, hi, out=y)")
    ]
    assert "wrong: 77 instead of" in reasons["torch"]
    timing.measure(competitors, FAST)
    (only,) = competitors
    assert len(only.seconds) == 3
    assert 0 < only.min <= only.median


def test_hopeless_peers_have_fewer_turns() -> None:
    candidates = [Candidate("pass", {}), Candidate("pass", {}), Candidate("pass", {})]
    names = ("dmlops", "numpy", "torch")
    competitors = [
        timing.Competitor(name, candidate, seconds)
        for name, candidate, seconds in zip(names, candidates, (1.0, 1e-6, 1e-4), strict=True)
    ]
    timing.measure(competitors, timing.Effort(rounds=5, turn=1e-5, cell=1.0, few=2))
    assert [len(each.seconds) for each in competitors] == [5, 5, 2]


def test_averages() -> None:
    record = {"operator": "clip", "dtype": "f32", "roofline": 0.5}
    records = [
        {**record, "name": "a", "layout": "c1", "ratio": 2.0},
        {**record, "name": "b", "layout": "c1m", "ratio": 8.0},
        {**record, "name": "c", "layout": "c1m", "ratio": None},
    ]
    found = {group["title"]: group for group in averages(records)}
    assert math.isclose(found["all cells"]["ratio"], 4.0)
    assert found["all cells"]["lowest_cell"] == "a"
    assert found["dense, 64K and 1M elements, 32- and 64-bit"]["cells"] == 1


def test_every_cell_is_in_a_group() -> None:
    record = {"ratio": 1.0, "roofline": 1.0}
    for cell in all_cells():
        place = {"name": cell.name, "operator": cell.operator, "dtype": cell.dtype}
        titles = [group["title"] for group in averages([record | place | {"layout": cell.layout}])]
        assert len(titles) == 3, cell.name  # all cells, the operator, and one more


def test_table_figures() -> None:
    assert [table.digits(value) for value in (0.123, 9.87, 98.7, 9870.0)] == [
        "0.12", "9.87", "98.7", "9870"
    ]  # fmt: skip
    assert aligned([["a", "1"], ["bb", "22"]]) == "a    1\nbb  22"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_caches_and_cores() -> None:
    sizes = list(machine.caches().values())
    assert sizes == sorted(sizes)
    processors = sorted(os.sched_getaffinity(0))
    assert sorted(machine.one_per_core(processors)) == processors


def test_caches_of_unknown_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux omits a size that the firmware does not state."""
    monkeypatch.setattr(machine, "SYSTEM", tmp_path)
    assert machine.caches() == {}
    facts = {"level": "1", "type": "Data", "size": "32K"}
    for index, known in (("index0", facts), ("index1", {"level": "2", "type": "Unified"})):
        folder = tmp_path / "cpu0" / "cache" / index
        folder.mkdir(parents=True)
        for name, text in known.items():
            (folder / name).write_text(f"{text}\n")
    assert machine.caches() == {"L1": 32 << 10}


def test_json_of_a_small_run(tmp_path: Path) -> None:
    words = ["--quick", "--only", "clip/f32/c1", "--only", "128x1000", "--peers", "numpy"]
    words += ["--json", "figures.json"]
    # The run pins its process, so that it needs one of its own.
    finished = python("-m", "dmlops", "bench", *words, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert "clip/f32/c1m" in finished.stderr
    assert "geometric means" in finished.stdout

    result = json.loads((tmp_path / "figures.json").read_text())
    assert result["schema"] == 1
    assert result["settings"] == {"threads": 1, "quick": True}
    assert result["peers"]["numpy"] == np.__version__
    assert result["peers"].keys() == {"dmlops", "numpy"}
    assert result["machine"]["cpu"]
    names = [cell["name"] for cell in result["cells"]]
    assert names[:2] == ["clip/f32/c1", "clip/f32/c1m"]
    for cell in result["cells"]:
        assert cell["times"].keys() == COMPETITORS
        assert cell["unavailable"] == {}
        for figures in cell["times"].values():
            assert 0 < figures["min"] <= figures["median"]
            assert figures["statement"]
        best, ours = cell["times"]["numpy"]["min"], cell["times"]["dmlops"]["min"]
        assert cell["best_peer"] == "numpy"
        assert math.isclose(cell["ratio"], best / ours)
        assert math.isclose(cell["roofline"], cell["times"]["memcpy"]["min"] / ours)
        assert cell["traffic"] > 0


def test_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = import_module("dmlops._bench.picture")
    times = {name: {"min": 1e-6} for name in COMPETITORS}
    coordinates = {"operator": "clip", "dtype": "f32", "ratio": 2.0, "times": times}
    sizes = (1 << 12, 1 << 16, 1 << 20)
    sweep = [coordinates | {"layout": f"dense_{n}", "traffic": n} for n in sizes]
    result = {
        "cells": [coordinates | {"layout": "c1"}, coordinates | {"layout": "c2", "ratio": None}],
        "sweep": sweep,
        "machine": {"cpu": "a processor", "caches": {"L1": 1 << 15}},
        "settings": {"threads": 1},
        "peers": dict.fromkeys(COMPETITORS, "1.0"),
        "dmlops": {"isa": "baseline"},
    }
    picture.write(tmp_path / "picture.png", result)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(CommandError, match=r"the picture cannot be written: .*No such file"):
        picture.write(tmp_path / "missing" / "picture.png", result)
