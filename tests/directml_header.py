"""The operators of DirectML.h, as the C++ tests' stand-in declares them from the documents."""

from __future__ import annotations

import re
from pathlib import Path


def _operators() -> dict[str, tuple[int, str]]:
    text = (Path(__file__).parent / "cpp/microsoft/DirectML.h").read_text(encoding="utf-8")
    found, level = {}, "1_0"
    for line in text.splitlines():
        if condition := re.fullmatch(r"#if DML_TARGET_VERSION >= 0x(\d)(\d)00", line):
            level = "_".join(condition.groups())
        elif line == "#endif":
            level = "1_0"
        elif row := re.fullmatch(r"  DML_OPERATOR_(\w+) = (\d+),", line):
            found[row[1]] = (int(row[2]), level)
    return found


# The value of each operator, and the feature level that adds it.
OPERATORS = _operators()
