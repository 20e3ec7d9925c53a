"""The sub-command ``validate``: validates the operators of a JSON file."""

from __future__ import annotations

import argparse

from dmlops import _core
from dmlops._cli import DONE, REFUSED, one_line
from dmlops._device import required_feature_level
from dmlops._enums import FeatureLevel
from dmlops._operator_file.execute import REFUSALS
from dmlops._operator_file.model import Operator
from dmlops._operator_file.parse import read_model
from dmlops._run import add_file_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dmlops validate``."""
    parser.epilog = (
        "Exit status: 0 every operator is accepted, 1 an operator is refused, 2 any other error."
    )
    add_file_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print for each operator if it is accepted, and the lowest level that accepts it."""
    model = read_model(arguments.file)
    level: FeatureLevel = arguments.feature_level
    refused = [operator for operator in model.operators.values() if not _validate(operator, level)]
    return REFUSED if refused else DONE


def _validate(operator: Operator, level: FeatureLevel) -> bool:
    try:
        lowest = f"DML_FEATURE_{required_feature_level(operator.desc).name}"
    except REFUSALS:
        lowest = ""
    try:
        _core.validate(operator.desc, level)
    except REFUSALS as error:  # names the level that would accept it, if one does
        reason = _core.directml_names(str(error))
        line = f"{operator.name}: refused: {reason}{'' if lowest else '; no level accepts it'}"
        print(one_line(line))
        return False
    accepted = f"accepted at DML_FEATURE_{level.name}; the lowest is {lowest}"
    print(one_line(f"{operator.name}: {accepted}"))
    return True
