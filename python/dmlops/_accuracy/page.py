"""The tables: in the terminal, and in Markdown between two marks of a page."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

import dmlops
from dmlops._accuracy.measure import Line
from dmlops._accuracy.peers import OURS, PEERS
from dmlops._cli import CommandError
from dmlops._text import aligned

TITLES = {OURS: "dmlops", "numpy": "NumPy", "torch": "PyTorch", "onnxruntime": "ONNX Runtime"}
NAMES = (OURS, *PEERS)
BEGIN, END = "<!-- begin: dmlops accuracy -->", "<!-- end: dmlops accuracy -->"


def terminal(lines: Sequence[Line]) -> str:
    """Return the table as text, with the inputs of dmlops' largest errors."""
    head = ["row", "allowed", *NAMES, "", "largest error of dmlops at"]
    table = [head]
    for line in lines:
        note = "TOO LARGE" if not line.kept else "" if line.ahead else "a peer is better"
        worst = line.worst[OURS]
        figures = [figure(line, name) for name in NAMES]
        table.append([line.row.name, f"{line.allowed:.2f}", *figures, note, worst.where])
    return aligned(table, left=(0, len(head) - 2, len(head) - 1))


def figure(line: Line, name: str) -> str:
    """Return an error, or a dash if missing."""
    return digits(line.worst[name].ulp) if name in line.worst else "-"


def digits(ulp: float) -> str:
    """Return an error with two decimals, or two digits where it is large."""
    return "NaN" if np.isinf(ulp) else f"{ulp:.2f}" if ulp < 1000 else f"{ulp:.1e}"


def markdown(lines: Sequence[Line], versions: Mapping[str, str]) -> str:
    """Return a table for each data type and operator group, the best figures in bold."""
    used = ", ".join(f"{TITLES[name]} {version}" for name, version in versions.items())
    ahead = sum(line.ahead for line in lines)
    parts = [
        f"{used}; {platform.machine()} with {dmlops.isa()}. {len(lines)} rows; in {ahead} of them "
        "no peer's largest error is smaller than that of dmlops."
    ]
    for dtype in ("float32", "float16"):
        chosen = [line for line in lines if line.row.dtype == dtype]
        parts += [f"### {dtype}", table(chosen)] if chosen else []
    return "\n\n".join(parts)


def table(lines: Iterable[Line]) -> str:
    """Return a Markdown table; an operator's name stands in its first row only."""
    rows = [["operator", "inputs", "promised", *(TITLES[name] for name in NAMES)]]
    rows.append(["---", "---", *["---:"] * (len(NAMES) + 1)])
    for title, group in groupby(lines, lambda line: line.row.operator + line.row.arguments):
        for i, line in enumerate(group):
            figures = [figure(line, name) for name in NAMES]
            best = min((w.ulp for w in line.worst.values()), default=np.inf)
            figures = [f"**{text}**" if text == digits(best) else text for text in figures]
            promised = f"{line.allowed:.2f}"
            rows.append([f"`{title}`" if i == 0 else "", line.row.inputs, promised, *figures])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def parts(path: Path) -> tuple[str, str]:
    """Split a page at the two marks; return the text before and after them."""
    try:
        page = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CommandError(f"the page cannot be read: {error}") from error
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CommandError(f"{path} has no lines {BEGIN!r} and {END!r} to write between")
    return before, after


def write(path: Path, text: str) -> None:
    """Put the text between the two marks of the page."""
    before, after = parts(path)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def summary(lines: Sequence[Line]) -> str:
    """Return the sentence under the table."""
    behind = [line.row.name for line in lines if not line.ahead]
    text = f"{len(lines)} rows, of {sum(line.count for line in lines):,} results."
    return f"{text} A peer is better in {len(behind)}: {', '.join(behind)}." if behind else text


def reasons(lines: Sequence[Line]) -> str:
    """Return the distinct reasons for which peers have no figure."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for name, reason in line.missing.items():
            found.setdefault((name, reason), []).append(line.row.operator)
    return "\n".join(
        f"{name}: {reason} ({', '.join(sorted(set(where)))})"
        for (name, reason), where in sorted(found.items())
    )


def as_json(line: Line) -> dict[str, Any]:
    """Return the figures of a line."""
    return {
        "row": line.row.name,
        "allowed": line.allowed,
        "count": line.count,
        "ulp": {name: worst.ulp for name, worst in line.worst.items()},
        "missing": dict(line.missing),
    }
