"""A run of ``dmlops bench`` as a compact table, which the page on performance is drawn from.

``python docs/extensions/speed_table.py RUN.json docs/speed/NAME.csv`` converts what
``dmlops bench --json RUN.json`` wrote. The table keeps the machine, the versions, and the shortest
time of each competitor; ratios and means are computed from these.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

from dmlops._bench.groups import averages
from dmlops._bench.peers import OURS, ROOFLINE

MICRO = 1e6
COORDINATES = ("operator", "dtype", "layout")
NOT_PEERS = (OURS, ROOFLINE)


def write(run: dict[str, Any], path: Path) -> None:
    """Write a run: lines of ``# key: JSON``, then times in microseconds, one row per cell."""
    about = {
        "cpu": run["machine"]["cpu"],
        "threads": run["settings"]["threads"],
        "isa": run["dmlops"]["isa"],
        "peers": run["peers"],
    }
    competitors = [OURS, ROOFLINE, *(name for name in run["peers"] if name != OURS)]
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {key}: {json.dumps(value)}\n" for key, value in about.items())
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*COORDINATES, *competitors])
        for cell in run["cells"]:
            times = (cell["times"].get(name) for name in competitors)
            shortest = ("" if each is None else f"{each['min'] * MICRO:.4g}" for each in times)
            rows.writerow([*(cell[key] for key in COORDINATES), *shortest])


def read(path: Path) -> dict[str, Any]:
    """Return a run as ``dmlops bench --json`` has it, as far as the table keeps it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    about = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    values: dict[str, Any] = {key: json.loads(value) for key, value in about.items()}
    cells = [_cell(row) for row in csv.DictReader(lines[len(about) :])]
    return {
        "machine": {"cpu": values["cpu"], "caches": {}},
        "settings": {"threads": values["threads"]},
        "dmlops": {"isa": values["isa"]},
        "peers": values["peers"],
        "cells": cells,
        "groups": list(averages(cells)),
        "sweep": [],
    }


def _cell(row: dict[str, str]) -> dict[str, Any]:
    coordinates = {key: row.pop(key) for key in COORDINATES}
    times = {name: float(text) for name, text in row.items() if text}
    ours, peers = times[OURS], [time for name, time in times.items() if name not in NOT_PEERS]
    return coordinates | {
        "name": "/".join(coordinates.values()),
        "ratio": min(peers) / ours if peers else None,
        "roofline": times[ROOFLINE] / ours,
    }


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    write(json.loads(source.read_text(encoding="utf-8")), target)
