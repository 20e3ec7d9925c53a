"""The comparison itself, from the peers to the table, the JSON file and the picture."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

import dmlops
from dmlops._bench import cells, groups, machine, peers, table, timing
from dmlops._bench.peers.base import Peer
from dmlops._bench.problem import Problem
from dmlops._cli import CommandError, RefusedError, progress
from dmlops._options import check_peers
from dmlops._text import counted

SCHEMA = 1  # of the JSON file
WORST = 20  # drawn cells that are shown at least
PAUSE = 3e-3  # with several threads, between turns: longer than OpenMP's threads spin


def run(arguments: argparse.Namespace, chosen: list[cells.Cell]) -> None:
    """Measure the cells, print the tables, write the files.

    Progress goes to standard error, results go to standard output.
    """
    machine.limit_spinning(arguments.threads)
    processors = machine.pin(arguments.threads)
    named = list(peers.PEERS) if arguments.peers is None else arguments.peers
    loaded, missing = peers.load(named, arguments.threads)
    check_peers(arguments.peers, missing)
    for name, reason in missing.items():
        progress(f"{name}: {reason}")

    drawn = arguments.random is not None
    effort = timing.MANY if drawn else timing.QUICK if arguments.quick else timing.FULL
    records = measure(chosen, loaded, effort, arguments.threads)
    if drawn:
        records.sort(key=lambda entry: math.inf if entry["ratio"] is None else entry["ratio"])
    curves = cells.sweep() if arguments.picture else []
    result = {
        "schema": SCHEMA,
        "dmlops": dmlops.build_info(),
        "machine": machine.describe(processors),
        "settings": {"threads": arguments.threads, "quick": arguments.quick}
        | ({"random": arguments.random, "seed": arguments.seed} if drawn else {})
        | ({"operators": arguments.operators} if arguments.operators else {}),
        "peers": {name: peer.version for name, peer in loaded.items() if peer.checked},
        "missing": missing,
        "cells": records,
        "groups": list((groups.averages_of_drawn if drawn else groups.averages)(records)),
        "sweep": measure(curves, loaded, effort, arguments.threads),
    }
    if arguments.json:
        write(arguments.json, json.dumps(result, indent=1))
    if arguments.picture:
        import_module("dmlops._bench.picture").write(arguments.picture, result)
    print(report(result))
    failed = [entry["name"] for entry in records if peers.OURS in entry["unavailable"]]
    if failed:
        raise RefusedError(f"dmlops itself has no right result for {', '.join(failed)}")


def measure(
    chosen: Iterable[cells.Cell], loaded: dict[str, Peer], effort: timing.Effort, threads: int
) -> list[dict[str, Any]]:
    """Return the records of the cells, with a line of progress for each."""
    chosen, begin = list(chosen), time.perf_counter()
    records = []
    for number, cell in enumerate(chosen, 1):
        problem = cell.make()
        with np.errstate(all="ignore"):  # warnings of NumPy as a peer
            competitors, unavailable = timing.entrants(problem, loaded, effort)
            timing.measure(competitors, effort, pause=PAUSE if threads > 1 else 0)
        entry = record(cell, problem, competitors, unavailable)
        records.append(entry)
        elapsed = time.perf_counter() - begin
        best = f"{table.ratio(entry['ratio'])} x {entry['best_peer']}" if entry["ratio"] else ""
        layout = f"  {problem.described}" if cell.kinds else ""
        progress(f"[{number:3}/{len(chosen)} {elapsed:4.0f} s] {cell.name:36} {best}{layout}")
    return records


def record(
    cell: cells.Cell,
    problem: Problem,
    competitors: list[timing.Competitor],
    unavailable: dict[str, str],
) -> dict[str, Any]:
    """Return a cell's figures in the form of the JSON file."""
    by_name = {each.name: each for each in competitors}
    ours = by_name.get(peers.OURS)
    others = [each for each in competitors if each.name not in (peers.OURS, peers.ROOFLINE)]
    best = min(others, key=lambda each: each.min, default=None)
    return {
        "name": cell.name,
        "operator": cell.operator,
        "dtype": cell.dtype,
        "layout": cell.layout,
        "kinds": list(cell.kinds),
        "described": problem.described,
        "shape": list(problem.output.shape),
        "traffic": problem.traffic,
        "best_peer": best.name if best else None,
        "ratio": best.min / ours.min if best and ours else None,
        "paired_ratio": timing.paired_ratio(ours, best) if best and ours else None,
        "roofline": by_name[peers.ROOFLINE].min / ours.min if ours else None,
        "times": {name: timing.as_json(each) for name, each in by_name.items()},
        "unavailable": unavailable,
    }


def report(result: dict[str, Any]) -> str:
    """Return the text that is printed at the end."""
    host, info = result["machine"], result["dmlops"]
    threads = result["settings"]["threads"]
    used = ", ".join(f"{name} {version}" for name, version in result["peers"].items())
    shown = result["cells"]
    if "random" in result["settings"]:
        slow = [entry for entry in shown if entry["ratio"] and entry["ratio"] < groups.LIMITS[0]]
        shown = shown[: max(len(slow), WORST)]
    parts = [
        table.cells(shown, result["peers"]),
        table.EXPLANATION,
        table.DRAWN if "random" in result["settings"] else "",
        table.reasons(result["cells"]),
        "\n".join(f"{name}: {reason}" for name, reason in result["missing"].items()),
        table.groups(result["groups"]),
        f"{host['cpu']}, {counted(threads, 'thread')}, dmlops on {info['isa']}; {used}",
    ]
    return "\n\n".join(part for part in parts if part)


def write(path: Any, text: str) -> None:
    """Write a file; raise CommandError with the reason if it cannot be written."""
    try:
        path.write_text(text + "\n")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error}") from error
