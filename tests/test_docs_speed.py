"""The tables that the page on performance is drawn from."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():  # as in an sdist
    pytest.skip("the documentation is not here", allow_module_level=True)
sys.path.insert(0, str(DOCS))

from extensions import speed_table  # noqa: E402

from dmlops._bench.cells import all_cells  # noqa: E402

TABLES = sorted((DOCS / "speed").glob("*.csv"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_cell_of_the_benchmark_is_in_the_table(path: Path) -> None:
    run = speed_table.read(path)
    assert [cell["name"] for cell in run["cells"]] == [cell.name for cell in all_cells()]
    assert all(cell["ratio"] > 0 and cell["roofline"] > 0 for cell in run["cells"])
    assert run["groups"][0]["cells"] == len(run["cells"])
    assert run["settings"]["threads"] == int(path.stem.split("-")[1])


def test_a_table_keeps_the_shortest_times(tmp_path: Path) -> None:
    coordinates = {"operator": "clip", "dtype": "f32", "layout": "c1"}
    times = {"dmlops": 2e-6, "memcpy": 1e-6, "numpy": 5e-6}  # no time of PyTorch's
    run: dict[str, Any] = {
        "machine": {"cpu": 'A "CPU", 2 GHz'},
        "settings": {"threads": 3},
        "dmlops": {"isa": "avx2"},
        "peers": {"dmlops": "1", "numpy": "2", "torch": "3"},
        "cells": [coordinates | {"times": {name: {"min": time} for name, time in times.items()}}],
    }
    path = tmp_path / "run.csv"
    speed_table.write(run, path)
    again = speed_table.read(path)
    (cell,) = again["cells"]
    assert cell == coordinates | {"name": "clip/f32/c1", "ratio": 2.5, "roofline": 0.5}
    assert again["machine"]["cpu"] == 'A "CPU", 2 GHz'
    assert {key: again[key] for key in ("settings", "dmlops", "peers")} == {
        key: run[key] for key in ("settings", "dmlops", "peers")
    }


def test_readme_has_the_means_of_the_tables() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (Intel|AMD), (\d+) threads? \|(.*)\|$", readme, re.MULTILINE)
    assert len(rows) == 3
    for vendor, threads, cells in rows:
        run = speed_table.read(DOCS / "speed" / f"{vendor.lower()}-{threads}.csv")
        means = {group["title"]: f"{group['ratio']:.2f}" for group in run["groups"]}
        titles = ("all cells", "clip", "hard_sigmoid", "batch_normalization", "log_softmax")
        assert [cell.strip() for cell in cells.split("|")] == [means[title] for title in titles]
