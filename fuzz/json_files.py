"""Fuzzes operator files: random bytes, and mutations of the examples; needs atheris.

    python fuzz/json_files.py [libFuzzer options] CORPUS...

Each file is run, or refused with a message: no other exception, no crash.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import atheris

with atheris.instrument_imports(include=["dmlops"]):
    from dmlops import _cli, _run, _validate  # noqa: F401  the commands are imported late otherwise
    from dmlops._operator_file import execute

MEMORY = 1 << 30  # bytes: larger allocations must fail, since filling them would take seconds
EXAMPLES = [
    json.loads(path.read_text())
    for path in sorted((Path(__file__).parent.parent / "examples").glob("*.json"))
]
WORDS = (
    *("FLOAT32", "FLOAT16", "INT64", "UINT8", "INT4", "nan", "-inf", "", "input", "x" * 300),
    *("DML_TENSOR_FLAG_OWNED_BY_DML", "ELEMENT_WISE_CLIP", "DML_OPERATOR_BATCH_NORMALIZATION"),
    *("ACTIVATION_LOG_SOFTMAX1", "dispatch", "print", "/dev/null", "missing.npy", "\0", "\ud800"),
)
NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 255, 2**16, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 10**40, -(2**63)),
    *(0.5, 1e39, -1e-50, float("nan"), float("inf")),
)


def _value(data: atheris.FuzzedDataProvider, parts: list[Any]) -> Any:
    """Return a random JSON value, or a part of an example."""
    kind = data.ConsumeIntInRange(0, 7)
    if kind == 0:
        return data.PickValueInList(list(WORDS))
    if kind in (1, 2):
        return data.PickValueInList(list(NUMBERS))
    if kind == 3:
        return data.ConsumeInt(9)
    if kind == 4:
        return [data.ConsumeIntInRange(0, 9) for _ in range(data.ConsumeIntInRange(0, 10))]
    if kind == 5:
        return data.PickValueInList([None, True, False, {}, [], [[]], {"": {}}])
    return copy.deepcopy(data.PickValueInList(parts))


def _containers(value: Any) -> list[Any]:
    """Return every object and array inside a value."""
    if not isinstance(value, (dict, list)):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(container for item in inner for container in _containers(item))]


def _changed_example(data: atheris.FuzzedDataProvider) -> str:
    document = copy.deepcopy(data.PickValueInList(EXAMPLES))
    for _ in range(data.ConsumeIntInRange(0, 4)):
        parts = _containers(document)
        target = data.PickValueInList(parts)
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        if not keys:
            continue
        key = data.PickValueInList(keys)
        change = data.ConsumeIntInRange(0, 15)
        if change == 0:
            del target[key]
        elif change == 1 and isinstance(target, dict):
            target[data.PickValueInList(list(WORDS))] = target.pop(key)
        elif change < 4:
            target[key] = _value(data, parts)
        elif isinstance(target[key], (int, float)):
            target[key] = data.PickValueInList(list(NUMBERS))
        elif isinstance(target[key], str):
            target[key] = data.PickValueInList(list(WORDS))
        elif isinstance(target[key], list):
            target[key] = target[key] * data.ConsumeIntInRange(0, 3)
    return json.dumps(document)


def test_one_input(raw: bytes) -> None:
    """Run the operator file that the bytes encode."""
    data = atheris.FuzzedDataProvider(raw)
    text: bytes | str = raw[1:] if data.ConsumeIntInRange(0, 3) == 3 else _changed_example(data)
    file = FOLDER / "file.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = _cli.main([data.PickValueInList(["run", "validate"]), str(file)])
    if status not in (0, 1, 2) or (status != 0 and len(said.getvalue()) < 10):
        raise RuntimeError(f"status {status}: {said.getvalue()!r}")


def _discard(*_: Any, **__: Any) -> None:
    """Replace the function that writes files, whose paths could be anywhere."""


if __name__ == "__main__":
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with (
        mock.patch.object(execute, "write", _discard),
        tempfile.TemporaryDirectory() as folder,
    ):
        FOLDER = Path(folder)
        # libFuzzer's own limit would end the run at the first large file.
        atheris.Setup([*sys.argv, "-rss_limit_mb=0"], test_one_input)
        atheris.Fuzz()
