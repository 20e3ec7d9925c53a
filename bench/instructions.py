"""Prints how many instructions the hot loops execute for an element, exactly and reproducibly.

python bench/instructions.py [PROGRAM] [--isa NAME] [--loops]

PROGRAM is bench_instructions as the preset `bench` builds it. It runs each call one instruction at
a time, on 2,048 elements and on 4,096; the additional instructions are the loop's. Needs objdump.
Columns, from the fourth on:

per element   instructions for each additional element
loop          the instructions of the loop, and the elements of an iteration
stack         instructions of the loop that access the stack: spilled registers
one more      additional instructions for a remainder of 1 element
vector - 1    additional instructions for a remainder of a vector less 1 element
unaligned     additional instructions if the output begins in the middle of a cache line
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = Path("build/bench/bench/bench_instructions")
FEW, MANY, UNALIGNED = 2048, 4096, 32
HEAD = ["operator", "data type", "instruction set", "per element", "loop", "stack"]
HEAD += ["one more", "vector - 1", "unaligned"]
STACK = re.compile(r"\(%rsp|-0x[0-9a-f]+\(%rbp")
Counts = Counter[int]  # how often each instruction was executed, by its address


@dataclass
class Call:
    """An operator, a data type and an instruction set, with the executed instructions by size."""

    coordinates: list[str]
    runs: dict[tuple[int, int], Counts] = field(default_factory=dict)  # by elements and alignment

    def loop(self) -> Counts:
        """Return the instructions that additional elements execute."""
        return self.runs[MANY, 0] - self.runs[FEW, 0]

    def row(self, code: dict[int, str]) -> list[str]:
        """Return the figures."""
        loop = self.loop()
        often = max(loop.values())
        hot = [address for address, times in loop.items() if times > often / 2]
        spilled = [address for address in hot if STACK.search(code.get(address, ""))]
        sizes = sorted(count for count, _ in self.runs if FEW < count < MANY)
        return [
            *self.coordinates,
            f"{loop.total() / (MANY - FEW):.2f}",
            f"{len(hot)} / {round((MANY - FEW) / often)}",
            str(len(spilled)),
            *([self.more(sizes[0]), self.more(sizes[-1])] if sizes else ["-", "-"]),
            self.more(FEW, UNALIGNED),
        ]

    def more(self, count: int, offset: int = 0) -> str:
        """Return the instructions of a call beyond those of a call on FEW aligned elements."""
        run = self.runs.get((count, offset))
        return str(run.total() - self.runs[FEW, 0].total()) if run else "-"


def main() -> None:
    """Print the table, and with --loops the loops."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=Path, nargs="?", default=PROGRAM)
    parser.add_argument("--isa", action="append", default=[], help="may be repeated; default: all")
    parser.add_argument("--loops", action="store_true", help="print the loops' instructions")
    arguments = parser.parse_args()
    calls = read(run(str(arguments.program.resolve()), *arguments.isa))
    code = disassemble(arguments.program)
    print(f"| {' | '.join(HEAD)} |\n| --- | --- | --- |{' ---: |' * (len(HEAD) - 3)}")
    for call in calls:
        print(f"| {' | '.join(call.row(code))} |")
    for call in calls if arguments.loops else []:
        print(f"\n{' '.join(call.coordinates)}")
        for address, times in sorted(call.loop().items()):
            print(f"  {times:6} {address:8x} {code.get(address, '?')}")


def run(*command: str) -> str:
    """Return the output of a command."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def read(text: str) -> list[Call]:
    """Parse the program's output."""
    calls: dict[str, Call] = {}
    counts: Counts = Counter()
    for line in text.splitlines():
        if "/" in line:
            place, count, offset = line.rsplit("/", 2)
            call = calls.setdefault(place, Call(place.split("/")))
            counts = call.runs[int(count), int(offset)] = Counter()
        else:
            address, times = line.split()
            counts[int(address, 16)] = int(times)
    return list(calls.values())


def disassemble(program: Path) -> dict[int, str]:
    """Return the program's instructions by their addresses."""
    lines = run("objdump", "-d", "--no-show-raw-insn", str(program)).splitlines()
    parts = (line.split(":\t", 1) for line in lines if ":\t" in line)
    return {int(address, 16): text for address, text in parts}


if __name__ == "__main__":
    main()
