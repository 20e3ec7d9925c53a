"""The sub-command ``run``: runs the operators of a JSON file."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from dmlops._cli import DONE
from dmlops._enums import FeatureLevel, member
from dmlops._operator_file.execute import run as run_model
from dmlops._operator_file.parse import read_model
from dmlops._operator_file.timing import MAX_ITERATIONS, Repetition
from dmlops._options import complete_values


def feature_level(text: str) -> FeatureLevel:
    """Return the level of "5_1", "5.1" or "DML_FEATURE_LEVEL_5_1"; argparse reports the errors."""
    try:
        return member("the level", FeatureLevel, text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that all commands on operator files share."""
    parser.add_argument("file", metavar="FILE.json", help="the operator file; - is standard input")
    level = parser.add_argument(
        "--feature-level",
        metavar="LEVEL",
        type=feature_level,
        default=FeatureLevel.LEVEL_6_4,
        help="the device's feature level, such as 3_0 or DML_FEATURE_LEVEL_3_0 (default: 6_4)",
    )
    complete_values(level, [each.name.removeprefix("LEVEL_") for each in FeatureLevel])


def iterations(text: str) -> int:
    """Return a number of iterations; argparse reports the errors."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_ITERATIONS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_ITERATIONS}")
    return int(text)


def seconds(text: str) -> float:
    """Return a duration; argparse reports the errors."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def milliseconds(text: str) -> float:
    """Return a duration in seconds; argparse reports the errors."""
    return seconds(text) / 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dmlops run``."""
    parser.epilog = "Exit status: 0 success, 1 refused by a rule of DirectML, 2 any other error."
    add_file_arguments(parser)
    parser.add_argument(
        "--folder",
        metavar="PATH",
        type=Path,
        help="the base of relative paths in the file (default: the file's folder)",
    )
    repetition = parser.add_mutually_exclusive_group()
    repetition.add_argument(
        *("-i", "--iterations", "--dispatch_iterations"),
        metavar="N",
        type=iterations,
        help="repeat each dispatch N times, and print the minimum and the median time",
    )
    repetition.add_argument(
        *("-t", "--seconds"),
        metavar="SECONDS",
        type=seconds,
        help="repeat each dispatch for SECONDS, "
        f"at most {MAX_ITERATIONS:,} times, and print the times",
    )
    repetition.add_argument(
        "--milliseconds_to_run",
        metavar="MS",
        type=milliseconds,
        dest="seconds",
        help="DxDispatch's option: --seconds in milliseconds",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the commands of the file."""
    repetition = None
    if arguments.iterations is not None or arguments.seconds is not None:
        repetition = Repetition(arguments.iterations, arguments.seconds)
    model = read_model(arguments.file, arguments.folder)
    run_model(model, arguments.feature_level, repetition)
    return DONE
