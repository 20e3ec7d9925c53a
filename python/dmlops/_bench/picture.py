"""The comparison's picture: the ratio of each cell, and the bandwidth over the size."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from dmlops._bench.draws import USUAL
from dmlops._bench.groups import Record
from dmlops._bench.peers import OURS, ROOFLINE
from dmlops._picture import save
from dmlops._text import counted

COLORS = {
    OURS: "#c8102e",
    ROOFLINE: "#222222",
    "numpy": "#4c72b0",
    "torch": "#dd8452",
    "onnxruntime": "#55a868",
    "openvino": "#8172b3",
    "jax": "#937860",
    "numexpr": "#8c8c8c",
}
HIGHEST = 8.0  # ratios above it have one color
ROW, COLUMN = 0.25, 0.62  # inches


def write(path: Path, result: dict[str, Any]) -> None:
    """Write the picture."""
    save(path, lambda: draw(result))


def draw(result: dict[str, Any]) -> Figure:
    """Return the picture: ratios at the left, curves at the right."""
    records = [record for record in result["cells"] if record["ratio"] is not None]
    operators = [name for name in USUAL if any(r["operator"] == name for r in records)]
    rows = {name: len(axis(records, name, "layout")) for name in operators}
    height = max(7.0, ROW * sum(rows.values()) + 0.7 * len(operators) + 1.4)
    figure = Figure(figsize=(15, height), dpi=110, facecolor="white", layout="constrained")
    figure.suptitle(title(result), fontsize=10.5)
    left, right = figure.subfigures(1, 2, squeeze=False)[0]
    if operators:
        panels = left.subplots(
            len(operators), 1, squeeze=False, height_ratios=[rows[name] + 1 for name in operators]
        )
        for panel, name in zip(panels[:, 0], operators, strict=True):
            ratios(panel, [record for record in records if record["operator"] == name], name)
    dtypes = axis(result["sweep"], "clip", "dtype")
    if dtypes:
        for panel, dtype in zip(
            right.subplots(len(dtypes), 1, squeeze=False)[:, 0], dtypes, strict=True
        ):
            chosen = [record for record in result["sweep"] if record["dtype"] == dtype]
            bandwidth(panel, chosen, dtype, result["machine"]["caches"])
    return figure


def title(result: dict[str, Any]) -> str:
    """Return a title with the version, the machine and the threads."""
    threads = result["settings"]["threads"]
    versions = ", ".join(f"{name} {text.split('-')[0]}" for name, text in result["peers"].items())
    return (
        f"{result['machine']['cpu']}, {counted(threads, 'thread')}, dmlops on"
        f" {result['dmlops']['isa']}\n{versions}"
    )


def axis(records: list[Record], operator: str, name: str) -> list[str]:
    """Return the values of a coordinate, in the order of the cells."""
    return list(dict.fromkeys(r[name] for r in records if r["operator"] == operator))


def ratios(panel: Axes, records: list[Record], operator: str) -> None:
    """Show how many times faster than the best peer each cell is: layouts down, types across."""
    layouts, dtypes = axis(records, operator, "layout"), axis(records, operator, "dtype")
    values = np.full((len(layouts), len(dtypes)), np.nan)
    for record in records:
        place = layouts.index(record["layout"]), dtypes.index(record["dtype"])
        values[place] = record["ratio"]
        panel.text(
            place[1], place[0], f"{record['ratio']:.2g}", ha="center", va="center", fontsize=8
        )
    logarithms = np.log2(np.clip(values, 1 / HIGHEST, HIGHEST))
    norm = TwoSlopeNorm(0, -1, math.log2(HIGHEST))
    panel.imshow(logarithms, cmap="RdYlGn", norm=norm, aspect="auto", alpha=0.75)
    panel.set_xticks(range(len(dtypes)), dtypes, fontsize=8)
    panel.set_yticks(range(len(layouts)), layouts, fontsize=8)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    panel.set_title(f"{operator}: time of the best peer / time of dmlops", fontsize=9.5, loc="left")


def bandwidth(panel: Axes, records: list[Record], dtype: str, caches: dict[str, int]) -> None:
    """Show the bytes that each competitor reads and writes in a second, over the size."""
    names = dict.fromkeys(name for record in records for name in record["times"])
    for name in names:
        points = [
            (record["traffic"], record["traffic"] / record["times"][name]["min"] / 1e9)
            for record in records
            if name in record["times"]
        ]
        heavy = name in (OURS, ROOFLINE)
        panel.plot(
            *zip(*points, strict=True),
            color=COLORS[name],
            linewidth=2.2 if name == OURS else 1.4,
            linestyle="--" if name == ROOFLINE else "-",
            marker="o",
            markersize=3.5,
            zorder=3 if heavy else 2,
            label=name,
        )
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    lowest, highest = panel.get_xlim()
    for name, size in caches.items():
        if lowest < size < highest:
            panel.axvline(size, color="#bbbbbb", linestyle=":", zorder=1)
            panel.text(
                size,
                0.98,
                f" {name}",
                transform=panel.get_xaxis_transform(),
                va="top",
                color="#777777",
            )
    panel.xaxis.set_major_formatter(lambda size, _: size_text(size))
    panel.set_xlabel("bytes read and written")
    panel.set_ylabel("GB/s")
    panel.grid(alpha=0.25)
    panel.legend(fontsize=8, ncols=2)
    panel.set_title(f"clip, dense, {dtype}", fontsize=9.5, loc="left")


def size_text(size: float) -> str:
    """Return a number of bytes with a unit."""
    for unit, text in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {text}"
    return f"{size:g} B"
