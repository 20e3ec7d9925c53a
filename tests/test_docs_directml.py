"""The pages about DirectML match the library: levels, names, and the output of commands."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from descriptors import LEVELS, TABLE, refusal, tensor
from operator_files import EXAMPLES, c_name

import dmlops
from dmlops import FeatureLevel, OperatorType, TensorDataType
from dmlops._cli import main

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():  # as in an sdist
    pytest.skip("the documentation is not here", allow_module_level=True)
PAGE = (DOCS / "directml.md").read_text()
FILES = (DOCS / "operator_files.md").read_text()


def _rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without backquotes."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    rows = [[cell.strip().replace("`", "") for cell in line.split("|")[1:-1]] for line in lines]
    return [rows[0], *rows[2:]]


# Feature levels

_SETS = {
    "floats": ["FLOAT32", "FLOAT16"],
    "signed32": ["INT8", "INT16", "INT32"],
    "ints32": ["INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"],
    "ints64": ["INT64", "UINT64"],
}


Accepted = tuple[FeatureLevel, str, int]


def _accepted(row: list[str], columns: list[FeatureLevel]) -> Iterator[Accepted]:
    """Yield the combinations that a row of the page accepts: level, data type, dimension count."""
    accepted: set[tuple[str, int]] = set()
    for level in LEVELS:
        if level in columns:
            cell = row[columns.index(level)]
            if cell == "-":
                continue
            types, _, span = cell.rpartition(", ")
            first, _, last = span.partition("-")
            for name in types.split():
                ranks = range(int(first), int(last or first) + 1)
                accepted |= {(data_type, rank) for data_type in _SETS[name] for rank in ranks}
        yield from ((level, *each) for each in accepted)


def _levels_of_the_page() -> dict[OperatorType, set[Accepted]]:
    header, *rows = _rows("Feature levels")
    columns = [FeatureLevel[f"LEVEL_{name.replace('.', '_')}"] for name in header[1:]]
    result = {row[0]: set(_accepted(row[1:], columns)) for row in rows}
    others = result.pop("every other activation")
    return {operator: result.pop(operator.name, others) for operator in OperatorType} | {
        OperatorType[name]: accepted for name, accepted in result.items()
    }


@pytest.mark.parametrize("operator", TABLE)
def test_feature_levels(operator: str) -> None:
    make = TABLE[operator][0]
    accepted = set()
    for rank in range(1, 9):
        sizes = (1,) * rank
        for data_type in TensorDataType.__members__:
            desc = make(tensor(sizes, data_type))
            accepted |= {(at, data_type, rank) for at in LEVELS if refusal(desc, at) is None}
    assert accepted == _levels_of_the_page()[make(tensor()).operator_type]


# Names


def test_structs() -> None:
    pairs = [(row[0], row[1]) for row in _rows("Structs")[1:] if row[1].endswith("OperatorDesc")]
    expected = {}
    for operator in OperatorType:
        camel = "".join(word.capitalize() for word in operator.name.split("_"))
        expected[f"DML_{operator.name}_OPERATOR_DESC"] = f"{camel}OperatorDesc"
    assert dict(pairs) == expected
    for external, name in pairs:
        assert getattr(dmlops, name).operator_type.name in external


def test_fields() -> None:
    listed = set()
    for external, name, _ in _rows("Fields")[1:]:
        assert [c_name(field) for field in name.split(", ")] == external.split(", ")
        listed |= set(name.split(", "))
    classes = [getattr(dmlops, name) for name in dmlops.__all__ if name.endswith("OperatorDesc")]
    classes += [dmlops.BufferTensorDesc, dmlops.ScaleBias]
    assert listed == {field.name for cls in classes for field in dataclasses.fields(cls)}


def test_enumerations() -> None:
    for external, name in _rows("Enumerations")[1:]:
        enumeration, member = name.split(".")
        assert external.endswith(f"_{member}") or external.endswith(member)
        assert member in getattr(dmlops, enumeration).__members__


def test_calls() -> None:
    calls = re.findall(r"([A-Z]\w+)(?:\.(\w+))?\(", " ".join(row[1] for row in _rows("Calls")))
    assert len(calls) >= 4
    for name, method in calls:
        assert not method or callable(getattr(getattr(dmlops, name), method))


# Operator files


def test_commands_on_the_page(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(DOCS.parent)
    blocks = re.findall(r"```console\n(.*?)```", FILES, re.DOTALL)
    runs = [run for block in blocks for run in block.split("$ ")[1:]]
    assert len(runs) == 2
    for run in runs:
        command, _, expected = run.partition("\n")
        program, *words = shlex.split(command)
        assert program == "dmlops"
        main(words)
        assert capsys.readouterr().out == expected


def test_the_file_on_the_page_is_the_example() -> None:
    shown = re.findall(r"```json\n(.*?)```", FILES, re.DOTALL)
    assert json.loads(shown[0]) == json.loads((EXAMPLES / "clip.json").read_text())
