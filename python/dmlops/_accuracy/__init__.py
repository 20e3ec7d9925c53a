"""The sub-command ``accuracy``: options and control flow."""

from __future__ import annotations

import argparse
import json
from importlib import import_module

from dmlops._accuracy import page, peers, rows
from dmlops._accuracy.measure import measure
from dmlops._cli import DONE, CommandError, RefusedError, progress
from dmlops._options import (
    PICTURES,
    check_peers,
    check_picture,
    choice_of,
    complete_values,
    output_file,
    select,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dmlops accuracy``."""
    parser.epilog = (
        "Peers that are not installed are left out unless --peers names them;"
        " pip install 'dmlops[bench]' installs them."
    )
    parser.add_argument("--quick", action="store_true", help="fewer elements, a few seconds")
    parser.add_argument(
        "--only",
        metavar="TEXT",
        action="append",
        default=[],
        help="only rows whose name contains TEXT, such as tanh or float16; may be repeated",
    )
    compared = parser.add_argument(
        "--peers",
        type=choice_of(peers.PEERS, "peers"),
        metavar="NAMES",
        help=f"comma-separated list of {', '.join(peers.PEERS)} (default: all installed peers)",
    )
    complete_values(compared, peers.PEERS)
    parser.add_argument("--json", type=output_file(), metavar="FILE", help="write all measurements")
    parser.add_argument(
        "--page", type=output_file(), metavar="FILE", help="write the table into this Markdown page"
    )
    parser.add_argument(
        "--picture", type=output_file(*PICTURES), metavar="FILE", help="draw the largest errors"
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure the chosen rows; fail if a result of dmlops is less accurate than promised."""
    check_picture(arguments.picture)
    if arguments.page:
        page.parts(arguments.page)
    chosen = select(arguments.only, rows.all_rows(), "row")

    competitors, missing = peers.load(arguments.peers or list(peers.PEERS))
    check_peers(arguments.peers, missing)
    for name, reason in missing.items():
        progress(f"{name}: {reason}")
    lines = []
    for number, row in enumerate(chosen, 1):
        progress(f"[{number}/{len(chosen)}] {row.name}")
        lines.append(measure(row, competitors, rows.QUICK if arguments.quick else rows.FULL))

    versions = {name: competitor.version for name, competitor in competitors.items()}
    try:
        if arguments.json:
            result = {"versions": versions, "rows": [page.as_json(line) for line in lines]}
            arguments.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
        if arguments.page:
            page.write(arguments.page, page.markdown(lines, versions))
        if arguments.picture:
            import_module("dmlops._accuracy.picture").write(arguments.picture, lines)
    except OSError as error:
        raise CommandError(f"cannot write: {error}") from error
    print(page.terminal(lines), page.reasons(lines), page.summary(lines), sep="\n\n")
    broken = [line.row.name for line in lines if not line.kept]
    if broken:
        raise RefusedError(f"less accurate than promised: {', '.join(broken)}")
    return DONE
