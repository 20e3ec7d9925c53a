"""The picture and the tables of the page on speed, from what `dmlops bench --json` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dmlops._bench import picture, table

FIGURES = "speed.json"


def figures(folder: str | Path) -> dict[str, Any]:
    """Return what the benchmark measured."""
    result: dict[str, Any] = json.loads((Path(folder) / FIGURES).read_text())
    return result


def draw(app: Sphinx) -> None:
    """Draw the benchmark's own picture beside the page."""
    picture.write(Path(app.srcdir) / "speed.svg", figures(app.srcdir))


class SpeedTable(SphinxDirective):
    """The means of groups of cases, and what they were measured on."""

    def run(self) -> list[nodes.Node]:
        """Return the table and the line below it."""
        self.env.note_dependency(FIGURES)
        result = figures(self.env.srcdir)
        rows = [
            (group["title"], table.ratio(group["ratio"]), table.ratio(group["roofline"]))
            for group in result["groups"]
        ]
        lines = ["| cases | best peer / dmlops | memcpy / dmlops |", "| --- | ---: | ---: |"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        return self.parse_text_to_nodes("\n".join([*lines, "", measured_on(result)]))


def measured_on(result: dict[str, Any]) -> str:
    """Return a sentence on machine, threads and versions."""
    peers = ", ".join(f"{name} {version}" for name, version in result["peers"].items())
    count = result["settings"]["threads"]
    threads = "1 thread" if count == 1 else f"{count} threads"
    return f"Measured on {result['machine']['cpu']}, {threads}, {result['dmlops']['isa']}: {peers}."


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw before the pages are read."""
    app.connect("builder-inited", draw)
    app.add_directive("speed-table", SpeedTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
