"""The chart and the tables of the page on performance, from the runs in docs/speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import dmlops
from dmlops._bench import picture, table
from dmlops._text import counted
from extensions import speed_table

FOLDER = "speed"
RUNS = ("intel-1", "intel-2", "intel-16", "amd-1", "amd-2", "zen3-1")  # the first one is drawn


def figures(folder: str | Path, run: str) -> dict[str, Any]:
    """Return a run of the benchmark."""
    return speed_table.read(Path(folder) / FOLDER / f"{run}.csv")


def draw(app: Sphinx) -> None:
    """Draw the benchmark's own picture beside the page."""
    picture.write(Path(app.srcdir) / "speed.svg", figures(app.srcdir, RUNS[0]))


class SpeedTable(SphinxDirective):
    """Tables of mean ratios, by operator and by group of cases, and a list of the machines."""

    def run(self) -> list[nodes.Node]:
        """Return the tables and the lines below them."""
        results = [figures(self.env.srcdir, run) for run in RUNS]
        for run in RUNS:
            self.env.note_dependency(f"{FOLDER}/{run}.csv")
        first = results[0]
        heads = [f"{maker(result)}, {threads(result)}" for result in results]
        heads.insert(1, f"memcpy, {maker(first)}")
        rows: dict[str, list[str]] = {"operator": [], "cases": []}
        for groups in zip(*(result["groups"] for result in results), strict=True):
            ratios = [table.ratio(group["ratio"]) for group in groups]
            ratios.insert(1, table.ratio(groups[0]["roofline"]))
            title = groups[0]["title"]
            named = hasattr(dmlops, title)
            cells = " | ".join([f"`{title}`" if named else title, *ratios])
            rows["operator" if named or not rows["operator"] else "cases"].append(f"| {cells} |")
        lines = []
        for head, table_rows in rows.items():
            lines += [f"| {head} | {' | '.join(heads)} |", "| :--- |" + " ---: |" * len(heads)]
            lines += [*table_rows, ""]
        lines += [f"- {measured_on(result)}" for result in results]
        return self.parse_text_to_nodes("\n".join(lines))


def maker(result: dict[str, Any]) -> str:
    """Return the vendor of the processor, with the instruction set unless it is AVX-512."""
    name: str = result["machine"]["cpu"]
    vendor, isa = name.replace("(R)", " ").split()[0], result["dmlops"]["isa"]
    return vendor if isa == "avx512" else f"{vendor} with {isa.upper()}"


def threads(result: dict[str, Any]) -> str:
    """Return the number of threads, with the noun."""
    return counted(result["settings"]["threads"], "thread")


def measured_on(result: dict[str, Any]) -> str:
    """Return a line on the machine, the threads and the versions."""
    peers = ", ".join(f"{name} {version}" for name, version in result["peers"].items())
    machine, isa = result["machine"]["cpu"], result["dmlops"]["isa"]
    return f"{machine}, {threads(result)}, {isa}: {peers}."


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw the picture before Sphinx reads the pages."""
    app.connect("builder-inited", draw)
    app.add_directive("speed-table", SpeedTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
