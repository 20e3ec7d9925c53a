"""The comparison's random cells: their layouts, the peers' results, and a small run."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from subprocesses import python

from dmlops._bench import draws, peers, timing
from dmlops._bench.cells import DTYPES, Cell
from dmlops._bench.groups import averages_of_drawn
from dmlops._bench.problem import Problem, View
from dmlops._bench.references import reference
from dmlops._cli import main

FAST = timing.Effort(rounds=1, turn=1e-6, cell=0.01)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw cells of few elements."""
    monkeypatch.setattr(draws, "BITS", (5.0, 10.0))


def expression(text: str) -> Any:
    """Return the array that a problem's description says, with the strides that it says."""
    array, _, strides = text.partition(", strides ")
    array, _, shape = array.partition(" broadcast to ")
    view = eval(array, {"empty": np.empty})
    view = np.broadcast_to(view, eval(shape)) if shape else view
    return view.shape, strides


def test_a_cell_depends_on_its_seed_and_number_alone() -> None:
    def told(cells: list[Cell]) -> list[tuple[str, str]]:
        return [(cell.name, cell.make().described) for cell in cells]

    few = told(draws.cells(5, 7, []))
    assert told(draws.cells(8, 7, []))[:5] == few
    assert told(draws.cells(1, 7, ["3"])) == [few[3]]
    assert [place for _, place in told(draws.cells(5, 8, []))] != [place for _, place in few]


def test_only() -> None:
    every = draws.cells(100, 1, [])
    assert len({cell.name for cell in every}) == 100
    chosen = draws.cells(100, 1, ["clip/f16", "reversed"])
    assert 0 < len(chosen) < 100
    for cell in chosen:
        assert cell.name.startswith("clip/f16") or "reversed" in cell.kinds
    assert [cell.layout for cell in draws.cells(10, 1, ["200", "5"])] == ["1:5", "1:200"]
    assert [cell.layout for cell in draws.cells(100, 1, ["3"])] == ["1:3"]  # not every f32
    name = every[3].name
    assert [cell.name for cell in draws.cells(100, 1, [name])] == [name]
    assert draws.cells(10, 1, ["nothing"]) == []


def test_every_kind_is_drawn() -> None:
    drawn = draws.cells(600, 2, [])
    kinds = {"dense", "step 2", "step 3", "step 4", "reversed", "padded", "broadcast"}
    kinds |= {"permuted, same order", "permuted, output dense"}
    assert {kind for cell in drawn for kind in cell.kinds} == kinds
    assert {cell.operator for cell in drawn} == set(draws.USUAL)
    more = draws.cells(200, 2, [], draws.OPERATORS)
    assert {cell.operator for cell in more} == set(draws.OPERATORS)
    assert {cell.dtype for cell in drawn} == set(DTYPES)


def test_drawn_layouts_are_within_the_limits() -> None:
    random, ranks = Random(3), set()
    for _ in range(500):
        layout, _ = draws.draw(random)
        ranks.add(len(layout.result))
        assert 1 << 13 <= math.prod(layout.result) <= 1 << 20
        assert math.prod(layout.shape) <= draws.LARGEST_BASE
    assert ranks == set(range(1, 7))


@pytest.mark.usefixtures("small")
def test_kinds_are_those_of_the_strides() -> None:
    for cell in draws.cells(200, 4, []):
        posed = cell.make()
        x = posed.input
        steps = [n for n, size in zip(x.strides, x.shape, strict=True) if size > 1]
        assert ("reversed" in cell.kinds) == any(step < 0 for step in steps), posed.described
        assert ("broadcast" in cell.kinds) == (0 in steps), posed.described
        if cell.kinds == ("dense",):
            assert posed.input.flags.c_contiguous
            assert posed.output.flags.c_contiguous
        if "permuted, output dense" in cell.kinds:
            assert posed.output.flags.c_contiguous
        assert posed.copied == posed.output.nbytes
        assert expression(posed.described)[0] == posed.input.shape


@pytest.mark.usefixtures("small")
def test_memory_order_is_the_same_work() -> None:
    for cell in draws.cells(200, 5, [], draws.OPERATORS):
        posed = cell.make()
        dense = posed.in_memory_order()
        assert dense.output.flags.c_contiguous
        assert np.shares_memory(dense.output, posed.output)
        expected = reference(posed)
        axes = posed.output_axes or tuple(range(expected.ndim))
        result = reference(dense).transpose(axes)
        if posed.operator in draws.USUAL:
            np.testing.assert_array_equal(result, expected)
        else:  # whose sums are in another order
            np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("part", [slice(None, None, -1), slice(5, None, -2), slice(4, 1, -1)])
def test_reversed_slices_for_peers_without_them(part: slice) -> None:
    base = np.arange(12).reshape(2, 6)
    view = View((slice(None), part), axes=(1, 0))
    forward, flipped = view.forward(base.shape)
    assert flipped == (0,)
    np.testing.assert_array_equal(np.flip(forward.of(base), flipped), view.of(base))
    (_, start), (_, end), (_, step) = view.ranges(base.shape)
    # As ONNX's Slice reads it: a negative end counts from the end, and is then limited to -1.
    end = max(end + 6, -1) if end < 0 else end
    np.testing.assert_array_equal(base[0, np.arange(start, end, step)], base[0, part])


def solved(name: str) -> Iterator[tuple[Problem, str]]:
    """Yield small drawn problems, and why a peer has no right result, if that is so."""
    loaded, _ = peers.load([name] if name in peers.PEERS else [], 1)
    for cell in draws.cells(20, 6, []) + draws.cells(50, 6, [], draws.OPERATORS):
        posed = cell.make()
        _, reasons = timing.entrants(posed, {name: loaded[name]}, FAST)
        yield posed, reasons.get(name, "")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["dmlops", "numpy"])
def test_drawn_problems_are_solved(name: str) -> None:
    for posed, reason in solved(name):
        assert reason == "", posed.described


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["torch", "jax", "onnxruntime", "openvino"])
def test_peers_solve_drawn_problems(name: str) -> None:
    library = pytest.importorskip(name)
    try:
        results = list(solved(name))
    finally:
        # Restores settings of the process that the peer changed.
        if name == "torch":
            library.set_grad_enabled(True)
        if name == "jax":
            library.config.update("jax_enable_x64", False)
    # Each lacks some operators and integers, or is wrong about them.
    for posed, reason in results:
        lacks = posed.base.dtype.kind != "f" or reason.startswith(("has no", "takes no"))
        lacks = lacks or (posed.operator not in draws.USUAL and name != "torch")
        assert reason == "" or lacks, (posed.described, reason)


def test_figures_of_drawn_cells() -> None:
    record = {"operator": "clip", "roofline": 0.5, "kinds": ["padded", "step 2"]}
    records = [
        {**record, "name": "a", "dtype": "f32", "ratio": 0.5},
        {**record, "name": "b", "dtype": "u8", "ratio": 0.9, "kinds": ["padded"]},
        {**record, "name": "c", "dtype": "f32", "ratio": 8.0},
        {**record, "name": "d", "dtype": "f32", "ratio": None},
    ]
    found = {group["title"]: group for group in averages_of_drawn(records)}
    assert found["all cells"]["below"] == {"0.95": 2 / 3, "0.8": 1 / 3}
    assert math.isclose(found["step 2"]["ratio"], 2.0)
    assert [found[title]["cells"] for title in ("clip", "u8", "clip/f32", "padded")] == [3, 1, 2, 3]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--random", "0"], "'0' is not a number from 1 up"),
        (["--random", "5", "--quick"], "not allowed with argument --random"),
        ([], "--seed goes with --random N"),
        (["--random", "5", "--operators", "relu,clip"], "relu unknown; the operators are clip"),
        (["--random", "5", "--picture", "a.png"], "--picture draws the named cells"),
        (
            ["--random", "5", "--only", "nothing", "--only", "1:2"],
            "no drawn cell is 'nothing' or '1:2'",
        ),
    ],
)
def test_wrong_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):
        assert main(["bench", *words, "--seed", "7"]) == 2
    assert message in capsys.readouterr().err


def test_operators_go_with_random(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--operators", "all"]) == 2
    assert "--operators goes with --random N" in capsys.readouterr().err


def test_a_small_run(tmp_path: Path) -> None:
    words = ["--random", "6", "--seed", "11", "--peers", "numpy", "--json", "figures.json"]
    # The run pins its process, so that it needs one of its own.
    finished = python("-m", "dmlops", "bench", *words, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    result = json.loads((tmp_path / "figures.json").read_text())
    assert result["settings"] == {"threads": 1, "quick": False, "random": 6, "seed": 11}
    ratios = [cell["ratio"] for cell in result["cells"]]
    assert ratios == sorted(ratios)
    assert len(ratios) == 6
    for cell in result["cells"]:
        assert cell["times"].keys() == {"dmlops", "memcpy", "numpy"}
        for text in (cell["name"], cell["described"]):
            assert text in finished.stderr
            assert text in finished.stdout
    assert "all cells" in finished.stdout
