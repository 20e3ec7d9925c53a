"""The picture and the tables of the page on speed, from what `dmlops bench --json` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dmlops._bench import picture, table

FOLDER = "speed"
RUNS = ("intel-1", "intel-2", "intel-16", "amd-1", "amd-2")  # the first one is drawn


def figures(folder: str | Path, run: str) -> dict[str, Any]:
    """Return what the benchmark measured."""
    result: dict[str, Any] = json.loads((Path(folder) / FOLDER / f"{run}.json").read_text())
    return result


def draw(app: Sphinx) -> None:
    """Draw the benchmark's own picture beside the page."""
    picture.write(Path(app.srcdir) / "speed.svg", figures(app.srcdir, RUNS[0]))


class SpeedTable(SphinxDirective):
    """The means of groups of cases on several machines, and what these are."""

    def run(self) -> list[nodes.Node]:
        """Return the table and the lines below it."""
        results = [figures(self.env.srcdir, run) for run in RUNS]
        for run in RUNS:
            self.env.note_dependency(f"{FOLDER}/{run}.json")
        first = results[0]
        heads = [f"{maker(result)}, {threads(result)}" for result in results]
        heads.insert(1, f"memcpy, {maker(first)}")
        lines = [f"| cases | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
        for groups in zip(*(result["groups"] for result in results), strict=True):
            ratios = [table.ratio(group["ratio"]) for group in groups]
            ratios.insert(1, table.ratio(groups[0]["roofline"]))
            lines.append(f"| {groups[0]['title']} | {' | '.join(ratios)} |")
        lines += ["", *(f"- {measured_on(result)}" for result in results)]
        return self.parse_text_to_nodes("\n".join(lines))


def maker(result: dict[str, Any]) -> str:
    """Return whose processor it is."""
    name: str = result["machine"]["cpu"]
    return name.replace("(R)", " ").split()[0]


def threads(result: dict[str, Any]) -> str:
    """Return how many threads ran."""
    count = result["settings"]["threads"]
    return "1 thread" if count == 1 else f"{count} threads"


def measured_on(result: dict[str, Any]) -> str:
    """Return a sentence on machine, threads and versions."""
    peers = ", ".join(f"{name} {version}" for name, version in result["peers"].items())
    machine, isa = result["machine"]["cpu"], result["dmlops"]["isa"]
    return f"{machine}, {threads(result)}, {isa}: {peers}."


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw before the pages are read."""
    app.connect("builder-inited", draw)
    app.add_directive("speed-table", SpeedTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
