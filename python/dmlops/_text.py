"""Text of messages and tables: numbers with their nouns."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: "1 dimension", "2 dimensions"."""
    return f"{number} {one if number == 1 else many or one + 's'}"
