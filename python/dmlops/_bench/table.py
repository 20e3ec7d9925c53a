"""The tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dmlops._bench.groups import LIMITS, Record
from dmlops._bench.peers import OURS, ROOFLINE
from dmlops._text import aligned

MICRO = 1e6
EXPLANATION = """\
Minima in microseconds. best/dmlops: the best peer's time as a multiple of ours (above 1: dmlops is
faster). memcpy/dmlops: the time of copying as many bytes as a multiple of ours. -: see below."""


DRAWN = """\
memcpy: a dense copy of as many bytes as the output has. The JSON file has all cells. The cell S:K
again: dmlops bench --random N --seed S --only K"""


def cells(records: Sequence[Record], peers: Iterable[str]) -> str:
    """Return the table with a line for each cell, which ends with the layout if it was drawn."""
    names = [name for name in peers if name not in (OURS, ROOFLINE)]
    lines = [["cell", *names, OURS, ROOFLINE, "best/dmlops", "memcpy/dmlops", ""]]
    for record in records:
        times = record["times"]
        figures = [
            f"{microseconds(times.get(name))}{'*' if name == record['best_peer'] else ' '}"
            for name in names
        ]
        lines.append(
            [
                record["name"],
                *figures,
                microseconds(times.get(OURS)),
                microseconds(times.get(ROOFLINE)),
                ratio(record["ratio"]),
                ratio(record["roofline"]),
                record["described"] if record["kinds"] else "",
            ]
        )
    return aligned(lines, left=(0, len(lines[0]) - 1))


def groups(averages: Iterable[dict[str, Any]]) -> str:
    """Return the table with a line for each group."""
    limits = [f"< {limit}" for limit in LIMITS]
    lines = [["geometric means", "cells", "best/dmlops", "memcpy/dmlops", *limits, "lowest", ""]]
    lines += [
        [
            group["title"],
            str(group["cells"]),
            ratio(group["ratio"]),
            ratio(group["roofline"]),
            *(f"{100 * share:.0f} %" for share in group["below"].values()),
            ratio(group["lowest"]),
            group["lowest_cell"],
        ]
        for group in averages
    ]
    return aligned(lines, left=(0, len(lines[0]) - 1))


def reasons(records: Iterable[Record]) -> str:
    """Return the reasons for which peers have no figure, with the cells concerned."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for name, reason in record["unavailable"].items():
            found.setdefault((name, reason), []).append(record["name"])
    return "\n".join(
        f"{name}: {reason} ({', '.join(where[:3])}{', ...' if len(where) > 3 else ''})"
        for (name, reason), where in sorted(found.items())
    )


def microseconds(figures: dict[str, Any] | None) -> str:
    """Return a time with three digits, or a dash."""
    return "-" if figures is None else digits(figures["min"] * MICRO)


def ratio(value: float | None) -> str:
    """Return a ratio with two decimals, or a dash."""
    return "-" if value is None else f"{value:.2f}"


def digits(value: float) -> str:
    """Return three significant digits, without an exponent."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
