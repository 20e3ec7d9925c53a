"""Compares two runs of the benchmark programs and prints the changes beyond noise.

python bench/compare.py BEFORE AFTER [--threshold PERCENT]

A run is a JSON file of one program, or a folder of these, as the target `bench` writes it. A row
has changed if the ranges of its repetitions do not overlap, which happens by chance once in 1,700
times with seven repetitions per run, and if its minimum changed by more than the threshold. Exit
status: 0, or 1 if a row became slower.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path

Times = dict[str, list[float]]  # seconds of each repetition, by row
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def main(words: list[str] | None = None) -> int:
    """Print the comparison and return the exit status."""
    parser = argparse.ArgumentParser(
        description="Compares two runs, and prints the changes beyond noise."
    )
    parser.add_argument("before", type=Path, help="JSON file, or folder of them")
    parser.add_argument("after", type=Path, help="JSON file, or folder of them")
    parser.add_argument("--threshold", type=float, default=3.0, metavar="PERCENT")
    arguments = parser.parse_args(words)
    before, after = read(arguments.before), read(arguments.after)
    common = [name for name in before if name in after]
    if not common:
        parser.error("the two runs have no row in common")

    memory = [name for name in common if name.startswith("memcpy/")]
    if memory:
        print(f"memcpy: {mean_change(before, after, memory):.3f} times the previous time\n")
    moved = [name for name in common if has_changed(before[name], after[name], arguments.threshold)]
    moved.sort(key=lambda name: change(before[name], after[name]))
    for name in moved:
        ratio = change(before[name], after[name])
        word = "faster" if ratio < 1 else "SLOWER"
        old, new = min(before[name]), min(after[name])
        print(f"{word}  {ratio:6.3f}  {old * 1e6:12.3f} -> {new * 1e6:12.3f} us  {name}")
    all_rows = mean_change(before, after, common)
    print(f"\n{len(moved)} of {len(common)} rows changed; all rows: {all_rows:.3f}")
    for label, only in (("before", before.keys() - after.keys()), ("after", after.keys() - before)):
        if only:
            print(f"only {label}: {', '.join(sorted(only))}")
    return int(any(change(before[name], after[name]) > 1 for name in moved))


def read(path: Path) -> Times:
    """Return the times of all repetitions in a file, or in all files of a folder."""
    times: Times = {}
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        for row in json.loads(file.read_text())["benchmarks"]:
            if row.get("run_type", "iteration") == "iteration" and "error_message" not in row:
                name = row.get("run_name", row["name"])
                clock = "real_time" if name.endswith("/real_time") else "cpu_time"
                seconds = row[clock] * SECONDS[row["time_unit"]]
                times.setdefault(name, []).append(seconds)
    return times


def change(before: list[float], after: list[float]) -> float:
    """Return the ratio of the minimum times, after to before; noise only adds to times."""
    return min(after) / min(before)


def mean_change(before: Times, after: Times, names: Iterable[str]) -> float:
    """Return the geometric mean of the changes."""
    logarithms = [math.log(change(before[name], after[name])) for name in names]
    return math.exp(sum(logarithms) / len(logarithms))


def has_changed(before: list[float], after: list[float], threshold: float) -> bool:
    """Return True if the ranges do not overlap and the change exceeds the threshold."""
    apart = max(before) < min(after) or max(after) < min(before)
    return apart and abs(change(before, after) - 1) > threshold / 100


if __name__ == "__main__":
    sys.exit(main())
