"""The sub-command ``bench``: its options, and the choice of cells."""

from __future__ import annotations

import argparse
import os
import random
from importlib import import_module

from dmlops._bench import draws
from dmlops._bench.cells import Cell, all_cells
from dmlops._bench.peers import PEERS
from dmlops._cli import DONE, CommandError
from dmlops._options import (
    PICTURES,
    check_picture,
    choice_of,
    complete_values,
    output_file,
    select,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dmlops bench``."""
    parser.epilog = (
        "Peers that are not installed are left out unless --peers names them;"
        " pip install 'dmlops[bench]' installs them."
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="few cells, less than a minute")
    which.add_argument(
        "--random",
        type=count,
        metavar="N",
        help="N cells with random operators, data types and layouts, sorted by ratio",
    )
    parser.add_argument(
        "--seed", type=int, metavar="S", help="seed of the random cells (default: random)"
    )
    drawn = parser.add_argument(
        "--operators",
        type=operators,
        metavar="NAMES",
        help="comma-separated list that --random draws from, or all"
        f" (default: {', '.join(draws.USUAL)})",
    )
    complete_values(drawn, ("all", *draws.OPERATORS))
    parser.add_argument(
        "--only",
        metavar="TEXT",
        action="append",
        default=[],
        help="only cells whose name contains TEXT, such as clip/f16 or transpose; may be repeated;"
        " with --random, also a kind of layout, such as reversed, or the number of a cell",
    )
    parser.add_argument(
        "--threads",
        type=thread_count,
        default=1,
        metavar="N",
        help="threads of each competitor (default: 1)",
    )
    compared = parser.add_argument(
        "--peers",
        type=choice_of(PEERS, "peers"),
        metavar="NAMES",
        help=f"comma-separated list of {', '.join(PEERS)} (default: all installed peers)",
    )
    complete_values(compared, PEERS)
    parser.add_argument("--json", type=output_file(), metavar="FILE", help="write all measurements")
    parser.add_argument(
        "--picture",
        type=output_file(*PICTURES),
        metavar="FILE",
        help="draw the ratios and, with additional measurements, the bandwidth by size",
    )


def count(text: str) -> int:
    """Return a number of cells."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def operators(text: str) -> list[str]:
    """Return the operators to draw from."""
    return list(draws.OPERATORS) if text == "all" else choice_of(draws.OPERATORS, "operators")(text)


def thread_count(text: str) -> int:
    """Return a number of threads, at most the number of processors."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if not text.isdecimal() or not 1 <= int(text) <= (available or 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {available}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the comparison."""
    if arguments.random is None:
        if arguments.seed is not None:
            raise CommandError("--seed goes with --random N")
        if arguments.operators is not None:
            raise CommandError("--operators goes with --random N; --only selects named cells")
        chosen = choose(quick=arguments.quick, only=arguments.only)
    else:
        if arguments.picture:
            raise CommandError("--picture draws the named cells, not those of --random")
        if arguments.seed is None:
            arguments.seed = random.randrange(1, 100_000)
        chosen = draws.cells(
            arguments.random, arguments.seed, arguments.only, arguments.operators or draws.USUAL
        )
        if not chosen:
            raise CommandError(f"no drawn cell is {' or '.join(map(repr, arguments.only))}")
    check_picture(arguments.picture)
    import_module("dmlops._bench.program").run(arguments, chosen)
    return DONE


def choose(*, quick: bool, only: list[str]) -> list[Cell]:
    """Return the cells that the options select."""
    return select(only, [cell for cell in all_cells() if cell.quick or not quick], "cell")
