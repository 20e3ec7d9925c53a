"""Generates files from the table of operators, python/dmlops/_table.

Those of the C++ tests come from the reference, which is independent of the table.

python tools/generate.py          write every file that differs
python tools/generate.py --check  name the files that differ, and fail if there are any

Needs clang-format and ruff, as requirements-dev.txt has them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generator import cpp, directml, docs, examples, python, sources, tests
from generator.common import ROOT, formatted

FILES: dict[str, Callable[[], str]] = {
    "include/dmlops/operator_types.hpp": cpp.operator_types,
    "include/dmlops/activations.hpp": cpp.activations,
    "include/dmlops/activation_descs.hpp": cpp.activation_descs,
    "include/dmlops/operator_descs.hpp": cpp.operator_descs,
    "include/dmlops/directml_operators.h": directml.structs,
    "include/dmlops/directml_operators_layout.h": directml.layout,
    "src/descriptors/conversions.cpp": sources.conversions,
    "src/descriptors/family.hpp": sources.family,
    "src/descriptors/rows.hpp": sources.rows,
    "src/kernels/activation_list.hpp": sources.activation_list,
    "src/operators/activation_infos.hpp": sources.activation_infos,
    "src/python/function_arguments.hpp": sources.function_arguments,
    "python/dmlops/_operator_type.py": python.operator_type,
    "python/dmlops/_activation_descs.py": python.activation_descs,
    "python/dmlops/_operator_descs.py": python.operator_descs,
    "python/dmlops/_activations.pyi": python.activation_stubs,
    "python/dmlops/_operators.pyi": python.operator_stubs,
    "examples/activations.json": examples.activations,
    "tests/cpp/activation_reference.hpp": tests.reference,
}
PARTS: dict[str, dict[str, Callable[[], str]]] = docs.PARTS | {
    "tests/cpp/microsoft/DirectML.h": {"enumerators": tests.enumerators, "structs": tests.structs},
}


def outputs() -> Iterator[tuple[Path, str]]:
    """Yield every file with the text that it should have."""
    for path, make in FILES.items():
        yield ROOT / path, formatted(path, make())
    for path, parts in PARTS.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        for name, make in parts.items():
            text = docs.replaced(text, name, make())
        yield ROOT / path, formatted(path, text)
    for path in docs.COUNTED:
        yield ROOT / path, docs.counted((ROOT / path).read_text(encoding="utf-8"))


def main(words: list[str]) -> int:
    """Write or check; return the exit status."""
    if words not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    differ = [
        (path, text)
        for path, text in outputs()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in differ:
        if not words:
            path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    if differ and words:
        print("differ from python/dmlops/_table: run python tools/generate.py", file=sys.stderr)
    return 1 if differ and words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
