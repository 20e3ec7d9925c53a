"""JSON values that know where they stand in the file, so that every error names the place."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from dmlops._cli import UsageError

_Member = TypeVar("_Member", bound=Enum)

STANDARD_INPUT = "-"

# How DirectML's JSON writes floating-point values that JSON has no numbers for.
_NOT_FINITE = ("nan", "inf", "-inf", "infinity", "-infinity")


class FileError(UsageError):
    """The file is not what an operator file must be."""


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def nearest(name: str, known: Collection[str]) -> str:
    """Return the known name that is most like another one, letter case aside."""
    plain = {_plain(candidate): candidate for candidate in known}
    return plain[difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.0)[0]]


@dataclass(frozen=True)
class Node:
    """A JSON value with its place, as ``dispatchables.clip.desc.Min``."""

    value: Any
    place: str = ""

    def refuse(self, what: str) -> NoReturn:
        """Say what is wrong here."""
        raise FileError(f"{self.place}: {what}" if self.place else what)

    def _expect(self, kinds: type | tuple[type, ...], expected: str) -> Any:
        if not isinstance(self.value, kinds) or (
            isinstance(self.value, bool) and kinds is not bool
        ):
            self.refuse(f"{expected} is needed, not {shown(self.value)}")
        return self.value

    def _at(self, name: str, value: Any) -> Node:
        return Node(value, f"{self.place}.{name}" if self.place else name)

    def entries(self) -> dict[str, Node]:
        """Return the members of an object whose names are the user's own."""
        members = self._expect(dict, "an object")
        return {name: self._at(name, value) for name, value in members.items()}

    def members(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Node]:
        """Return the members of an object that has these, and no others; null is absence."""
        required = tuple(required)
        known = (*required, *optional)
        entries = self.entries()
        for name in entries:
            if name not in known:
                self.refuse(unknown("field", name, known))
        present = {name: node for name, node in entries.items() if node.value is not None}
        for name in required:
            if name not in present:
                self.refuse(f"the field {name!r} is missing")
        return present

    def items(self) -> list[Node]:
        """Return the values of an array."""
        values = self._expect(list, "an array")
        return [Node(value, f"{self.place}[{i}]") for i, value in enumerate(values)]

    def text(self) -> str:
        """Return a string."""
        return str(self._expect(str, "a string"))

    def boolean(self) -> bool:
        """Return true or false, which DirectML's BOOL also writes as 1 or 0."""
        if self.value in (0, 1):
            return bool(self.value)
        return bool(self._expect(bool, "true or false"))

    def integer(self) -> int:
        """Return a whole number."""
        return int(self._expect(int, "a whole number"))

    def count(self, least: int = 0) -> int:
        """Return a whole number that is not too small."""
        value = self.integer()
        if value < least:
            self.refuse(f"is {value}; it must be at least {least}")
        return value

    def number(self) -> float:
        """Return a number as it was written: whole ones as int, of any size."""
        if isinstance(self.value, str) and self.value.lower() in _NOT_FINITE:
            return float(self.value)
        number: float = self._expect((int, float), 'a number, "nan", "inf" or "-inf"')
        return number

    def choice(self, enumeration: type[_Member], *prefixes: str) -> _Member:
        """Return the member of an enumeration, named with or without a prefix."""
        name = self.text()
        short = next((name[len(p) :] for p in prefixes if name.startswith(p)), name)
        members = enumeration.__members__
        if short not in members:
            self.refuse(f"unknown name {name!r}; the nearest is {nearest(short, members)!r}")
        return members[short]


def shown(value: Any) -> str:
    """Return a value as JSON, shortened, for a message."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:56]} ..."


def unknown(what: str, name: str, known: Collection[str]) -> str:
    """Return the message for a name that is not known."""
    if not known:
        return f"unknown {what} {name!r}; there are none"
    return f"unknown {what} {name!r}; the nearest is {nearest(name, known)!r}"


def _without_duplicates(members: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(members)
    if len(result) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice!r} occurs twice in one object")
    return result


# What DxDispatch takes beyond JSON: comments, and a comma after the last member. Strings match
# first, so that neither is found in one. An open comment reaches to the end.
_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*(?:.*?\*/|.*\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


def _strict(text: str) -> str:
    """Return strict JSON, with everything in the same line and column."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith('"') else re.sub(r"\S", " ", match[0])

    return _LAST_COMMA.sub(blank, _COMMENT.sub(blank, text))


def read_json(path: str) -> Node:
    """Read a file, or the standard input where it is "-"."""
    try:
        if path == STANDARD_INPUT:
            text = sys.stdin.read()
        else:
            text = Path(path).read_text(encoding="utf-8-sig")
        return Node(json.loads(_strict(text), object_pairs_hook=_without_duplicates))
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FileError(f"{path}: no JSON: {error.msg} at {where}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: no JSON: {error}") from error
