"""The picture: largest float32 errors, a line for each operator and kind of input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dmlops._accuracy.measure import Line
from dmlops._accuracy.page import NAMES, TITLES
from dmlops._accuracy.peers import OURS
from dmlops._picture import save

COLORS = {OURS: "#0b6e4f", "numpy": "#4d77cf", "torch": "#d1495b", "onnxruntime": "#8d6a9f"}
MARKS = {OURS: "o", "numpy": "s", "torch": "^", "onnxruntime": "D"}
OFFSETS = {OURS: 0.0, "numpy": -0.25, "torch": 0.0, "onnxruntime": 0.25}  # so that all are seen
MANY = ("log_softmax", "batch_normalization")  # a line for each kind of input
LEAST, MOST = 0.3, 1e6  # ulp; larger and smaller errors are drawn at the edges


def write(path: Path, lines: Sequence[Line]) -> None:
    """Write the picture."""
    save(path, lambda: draw(lines), {"svg.hashsalt": "dmlops"}, bbox_inches="tight")


def draw(lines: Sequence[Line]) -> Figure:
    """Return the picture."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        if line.row.dtype == "float32":
            operator = line.row.operator
            name = f"{operator}: {line.row.inputs}" if operator in MANY else operator
            groups.setdefault(name, []).append(line)
    figure = Figure(figsize=(9, 0.27 * len(groups) + 1.4), dpi=100, facecolor="white")
    axes = figure.subplots()
    places = range(len(groups))
    for place, group in zip(places, groups.values(), strict=True):
        allowed = max(line.allowed for line in group)
        axes.plot([LEAST, allowed], [place, place], color="#d9e8df", lw=11, solid_capstyle="butt")
    for name in NAMES:
        errors, heights = [], []
        for place, group in zip(places, groups.values(), strict=True):
            found = [line.worst[name].ulp for line in group if name in line.worst]
            if found:
                errors.append(float(np.clip(max(found), LEAST, MOST)))
                heights.append(place + OFFSETS[name])
        size, order = (42, 4) if name == OURS else (20, 3)
        style: dict[str, Any] = {"color": COLORS[name], "marker": MARKS[name]}
        axes.scatter(errors, heights, s=size, zorder=order, label=TITLES[name], **style)
    axes.set_xscale("log")
    axes.set_xlim(LEAST, MOST * 1.3)
    ticks = [10.0**power for power in range(7)]
    axes.set_xticks(ticks, [*(f"{tick:,.0f}" for tick in ticks[:-1]), "no digit\nis right"])
    axes.set_yticks(list(places), list(groups), fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("largest error in float32, ulp (the band is the bound of dmlops)", fontsize=9)
    axes.grid(axis="x", color="#e5e5e5", zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False, labelsize=8)
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=len(NAMES), frameon=False, fontsize=9
    )
    return figure
