"""The sub-command ``run``: one operator, or several, out of a JSON file."""

from __future__ import annotations

import argparse
from pathlib import Path

from dmlops._enums import FeatureLevel
from dmlops._operator_file.execute import run as run_model
from dmlops._operator_file.parse import read_model


def feature_level(text: str) -> FeatureLevel:
    """Return the level of "5_1", "5.1" or "DML_FEATURE_LEVEL_5_1"; argparse reports the errors."""
    short = text.removeprefix("DML_FEATURE_").removeprefix("LEVEL_").replace(".", "_")
    try:
        return FeatureLevel[f"LEVEL_{short}"]
    except KeyError:
        known = ", ".join(level.name.removeprefix("LEVEL_") for level in FeatureLevel)
        raise argparse.ArgumentTypeError(f"{text!r} is none of {known}") from None


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what all commands on operator files take."""
    parser.add_argument("file", metavar="FILE.json", help="the operator file; - is standard input")
    parser.add_argument(
        "--feature-level",
        metavar="LEVEL",
        type=feature_level,
        default=FeatureLevel.LEVEL_6_4,
        help="of the device, as 3_0 or DML_FEATURE_LEVEL_3_0 (default: 6_4)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dmlops run``."""
    parser.epilog = "Exit status: 0 done, 1 refused by a rule of DirectML, 2 the file is wrong."
    add_file_arguments(parser)
    parser.add_argument(
        "--folder",
        metavar="PATH",
        type=Path,
        help="where relative paths in the file start from (default: where the file is)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the commands of the file."""
    run_model(read_model(arguments.file, arguments.folder), arguments.feature_level)
    return 0
