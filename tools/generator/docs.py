"""Generated lists in files that are otherwise written by hand, between two marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from .common import ACTIVATIONS, LEVELS, OPERATORS
from .cpp import FUSABLE


def replaced(page: str, name: str, text: str) -> str:
    """Return the page with the part between its marks replaced."""
    begin, end = rf"[^\n]*begin: {name}, by tools/generate.py[^\n]*\n", rf"[^\n]*end: {name}\b"
    result, count = re.subn(
        f"({begin})(?:.*?\n)?({end})",
        lambda match: f"{match[1]}{text}\n{match[2]}",
        page,
        count=1,
        flags=re.DOTALL,
    )
    if count != 1:
        raise SystemExit(f"{count} parts are marked 'begin: {name}, by tools/generate.py'")
    return result


def summary(folder: str, names: Iterable[str]) -> str:
    """Return a list for autosummary."""
    listed = "\n".join(f"   {name}" for name in names)
    head = "```{eval-rst}\n.. currentmodule:: dmlops\n.. autosummary::\n"
    return f"{head}   :toctree: {folder}\n\n{listed}\n```"


def operators() -> str:
    """Return the functions other than activations."""
    names = dict.fromkeys(row.function for row in OPERATORS if not row.activation)
    return summary("operators", names)


def activations() -> str:
    """Return the activations that can be fused."""
    return summary("operators", sorted(row.function for row in FUSABLE))


def unfusable() -> str:
    """Return the activations that cannot be fused."""
    return summary("operators", sorted(row.function for row in ACTIVATIONS if not row.fusable))


def descriptors() -> str:
    """Return the descriptors."""
    others = [row.desc for row in OPERATORS if not row.fusable]
    return summary("descriptors", [*others, *sorted(row.desc for row in FUSABLE)])


def structs() -> str:
    """Return the rows of the table of structs."""
    rows = [*(r for r in OPERATORS if not r.fusable), *sorted(FUSABLE, key=lambda r: r.name)]
    lines = [f"| `{row.struct}` | `{row.desc}` |" for row in rows]
    return "\n".join(["| DirectML | dmlops |", "| --- | --- |", *lines])


_SETS = {
    "kFloats": ["floats"],
    "kSigned32": ["floats", "signed32"],
    "kNumbers32": ["floats", "ints32"],
    "kNumbers64": ["floats", "ints32", "ints64"],
}


def levels() -> str:
    """Return the table of feature levels."""
    common = next(row for row in ACTIVATIONS if row.function == "elu").supports
    rows = [row for row in OPERATORS if not (row.fusable and row.supports == common)]
    head = ["operator", *(level.replace("_", ".") for level in LEVELS)]
    lines = [head, ["---"] * len(head)]
    lines += [[f"`{row.name}`", *_cells(row.supports)] for row in rows]
    lines.append(["every other activation", *_cells(common)])
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  ", "| ") for cells in lines)


def _cells(supports: tuple[Any, ...]) -> list[str]:
    by_level = {support.since: support for support in supports}
    previous = {after.since: before for before, after in pairwise(supports)}
    cells = []
    for level in LEVELS:
        support = by_level.get(level)
        if support is None:
            cells.append("-" if level < supports[0].since else "")
            continue
        names = _SETS[support.types.cpp]
        before = previous.get(level)
        ranks = (support.min_rank, support.max_rank)
        if before is not None and (before.min_rank, before.max_rank) == ranks:
            names = [name for name in names if name not in _SETS[before.types.cpp]]
        span = "-".join(str(rank) for rank in dict.fromkeys(ranks))
        cells.append(f"{' '.join(names)}, {span}")
    return cells


def bounds() -> str:
    """Return the table of the activations' error bounds."""
    lines = ["| activations | largest error |", "| --- | --- |"]
    for promise in sorted({row.promise for row in ACTIVATIONS}):
        found = sorted(row.function for row in ACTIVATIONS if row.promise == promise)
        lines.append(f"| {', '.join(f'`{name}`' for name in found)} | {promise:g} ulp |")
    return "\n".join(lines)


def names() -> str:
    """Return the public names that come from the table."""
    found = {name for row in OPERATORS for name in (row.desc, row.function)}
    return "\n".join(["__all__ += [", *(f'    "{name}",' for name in sorted(found)), "]"])


def counted(page: str) -> str:
    """Return a page with the number of operators in its sentence about them."""
    return re.sub(r"(?<=These are )\d+(?= of DirectML's)", str(len(OPERATORS)), page)


COUNTED = ("README.md", "docs/index.md")

PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "docs/operators.md": {
        "operators": operators,
        "activations": activations,
        "unfusable": unfusable,
    },
    "docs/descriptors.md": {"descriptors": descriptors},
    "python/dmlops/__init__.py": {"operators": names},
    "docs/accuracy.md": {"bounds": bounds},
    "docs/directml.md": {"structs": structs, "levels": levels},
}
