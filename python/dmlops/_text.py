"""Text of messages and tables: numbers with their nouns, and columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: "1 dimension", "2 dimensions"."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def aligned(lines: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Return the lines in columns; those in `left` are aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            word.ljust(width) if place in left else word.rjust(width)
            for place, (word, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
