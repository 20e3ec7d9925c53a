"""Mutation testing: makes small changes to the code, one at a time, and reports undetected ones.

    python tools/mutate.py [--count N] [--seed S] [--only TEXT] [--tests "ARGUMENTS OF PYTEST"]

Works in a copy of the checkout, with its own virtual environment, and builds incrementally. A
mutant that survives needs a test, or its code is unused. Needs the requirements of
`pip install '.[test]'`; each mutant takes the time of a build and the tests.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXCLUDED = ("c_interface.cpp",)  # pytest does not reach it
HANG = 900  # seconds for the tests of one mutant; a timeout counts as detected

# Mutations: comparisons flipped or shifted, bounds dropped, indices off by one, operands and
# branches swapped.
CHANGES: tuple[tuple[str, str, str], ...] = (
    ("comparison", r" < ", " <= "),
    ("comparison", r" <= ", " < "),
    ("comparison", r" > ", " >= "),
    ("comparison", r" >= ", " > "),
    ("comparison", r" == ", " != "),
    ("comparison", r" != ", " == "),
    ("connective", r" && ", " || "),
    ("connective", r" \|\| ", " && "),
    ("arithmetic", r" \+ 1\b", ""),
    ("arithmetic", r" - 1\b", ""),
    ("arithmetic", r"(?<=\w) \+ (?=\w)", " - "),
    ("arithmetic", r"(?<=\w) - (?=\w)", " + "),
    ("bound", r"std::min\((\w+), (\w+)\)", r"\1"),
    ("bound", r"std::max\((\w+), (\w+)\)", r"\1"),
    ("operands", r"\b(fma|select)\((\w+), (\w+), (\w+)\)", r"\1(\2, \4, \3)"),
    ("negation", r"if \(!", "if ("),
)
SKIPPED = re.compile(r"\s*(//|#|static_assert|template|throw|refuse|using|namespace|case )|NOLINT")


@dataclass(frozen=True)
class Mutant:
    """One changed line."""

    file: str
    line: int
    kind: str
    before: str
    after: str

    def __str__(self) -> str:
        """Return the file, the line number and both lines."""
        return f"{self.file}:{self.line} {self.kind}\n  - {self.before}\n  + {self.after}"


def mutants(root: Path) -> Iterator[Mutant]:
    """Yield every mutant of every line."""
    for path in sorted((root / "src").rglob("*.[ch]pp")):
        if path.name in EXCLUDED:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code = line.partition("//")[0].partition('"')[0]
            rest = line[len(code) :]
            if SKIPPED.match(line):
                continue
            for kind, pattern, replacement in CHANGES:
                for match in re.finditer(pattern, code):
                    changed = match.expand(replacement)
                    after = code[: match.start()] + changed + code[match.end() :]
                    if after == code:
                        continue
                    name = str(path.relative_to(root))
                    yield Mutant(name, number, kind, line.strip(), (after + rest).strip())


def chosen(root: Path, count: int, seed: int, only: str) -> list[Mutant]:
    """Return a number of mutants, spread over the files and the kinds of change."""
    every = [mutant for mutant in mutants(root) if only in mutant.file]
    random.Random(seed).shuffle(every)
    taken: Counter[str] = Counter()
    picked: list[Mutant] = []
    while len(picked) < min(count, len(every)):
        left = [mutant for mutant in every if mutant not in picked]
        rarest = min(left, key=lambda mutant: taken[mutant.file] + taken[mutant.kind])
        taken.update((rarest.file, rarest.kind))
        picked.append(rarest)
    return picked


class Workshop:
    """A copy of the checkout with an environment that its package is installed in."""

    def __init__(self, folder: Path) -> None:
        self.source, environment = folder / "source", folder / "venv"
        ignored = shutil.ignore_patterns(".git", "build", "__pycache__", "*.so")
        shutil.copytree(ROOT, self.source, ignore=ignored)
        venv.create(environment, with_pip=True)
        self.python = environment / "bin" / "python"
        self.variables = {**os.environ, "SKBUILD_BUILD_DIR": str(folder / "build")}
        requires = ["scikit-build-core", "pybind11", "numpy", "ninja"]
        self.pip("install", *requires)
        self.pip("install", "--no-build-isolation", ".[test]")

    def pip(self, *arguments: str) -> None:
        """Run pip, quietly unless it fails."""
        command = [str(self.python), "-m", "pip", "--quiet", *arguments]
        subprocess.run(command, cwd=self.source, env=self.variables, check=True)

    def noticed(self, mutant: Mutant, tests: list[str]) -> str:
        """Return the detector of the mutant: the compiler, a test's name, a timeout, or nothing."""
        file = self.source / mutant.file
        original = file.read_text(encoding="utf-8")
        lines = original.splitlines(keepends=True)
        lines[mutant.line - 1] = lines[mutant.line - 1].replace(mutant.before, mutant.after, 1)
        file.write_text("".join(lines), encoding="utf-8")
        try:
            self.pip("install", "--no-build-isolation", "--no-deps", ".")
            run = subprocess.run(
                [str(self.python), "-m", "pytest", "-q", "-x", *tests],
                cwd=self.source,
                env=self.variables,
                capture_output=True,
                text=True,
                timeout=HANG,
                check=False,
            )
        except subprocess.CalledProcessError:
            return "the compiler"
        except subprocess.TimeoutExpired:
            return "a hang"
        finally:
            file.write_text(original, encoding="utf-8")
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
        return failed[1] if failed else "a crash" if run.returncode else ""


def main() -> int:
    """Print a line for each mutant; return 1 if more than a tenth survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="files whose path contains this text")
    parser.add_argument("--tests", default="", help="arguments of pytest")
    options = parser.parse_args()
    picked = chosen(ROOT, options.count, options.seed, options.only)
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder))
        for mutant in picked:
            by = workshop.noticed(mutant, options.tests.split())
            print(f"{mutant}\n  {'noticed by ' + by if by else 'SURVIVES'}", flush=True)
            if not by:
                survivors.append(mutant)
    print(f"{len(picked) - len(survivors)} of {len(picked)} were detected.")
    return int(len(survivors) * 10 > len(picked))


if __name__ == "__main__":
    sys.exit(main())
