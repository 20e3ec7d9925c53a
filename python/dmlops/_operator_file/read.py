"""JSON values with their paths in the file, which every error names."""

from __future__ import annotations

import difflib
import json
import math
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from dmlops._cli import CommandError

_Member = TypeVar("_Member", bound=Enum)

STANDARD_INPUT = "-"
LIMIT = 2**27  # bytes of an operator file: parsed JSON takes up to about 30 times as many

# The spelling in DirectML's JSON of floating-point values that JSON's numbers lack.
_NOT_FINITE = ("nan", "inf", "-inf", "infinity", "-infinity")

_LISTED = 12  # known names in a message
_COMPARED = 64  # characters of a name, and known names, for which the nearest name is searched


class FileError(CommandError):
    """An operator file with an error."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn every failure to read something into a `FileError` that names it.

    Libraries that parse a file may raise any exception, depending on the content, so all are caught
    here, except lack of memory, which is not an error of the file.
    """
    try:
        yield
    except (CommandError, MemoryError):
        raise
    except RecursionError as error:
        raise FileError(f"{what} is nested too deeply") from error
    except OSError as error:
        raise FileError(f"{what}: {error.strerror or error}") from error
    except ValueError as error:
        raise FileError(f"{what}: {error}") from error
    except Exception as error:
        raise FileError(f"{what} cannot be read: {type(error).__name__}: {error}") from error


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like another one, if difflib's ratio of both is at least 2/3.

    Letter case and underscores do not count. Long names and long lists are not compared, since the
    time grows with both lengths.
    """
    plain = _plain(name[: _COMPARED + 1])
    if len(plain) > _COMPARED:
        return None
    names = {_plain(other[: _COMPARED + 1]): other for other in islice(known, _COMPARED)}
    closest = difflib.get_close_matches(plain, names, n=1, cutoff=2 / 3)
    return names[closest[0]] if closest else None


@dataclass(frozen=True)
class Node:
    """A JSON value with its path, such as ``dispatchables.clip.desc.Min``."""

    value: Any
    place: str = ""

    def refuse(self, what: str) -> NoReturn:
        """Raise an error that begins with the path."""
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
        """Return the members of an object with arbitrary names."""
        members = self._expect(dict, "an object")
        return {name: self._at(name, value) for name, value in members.items()}

    def members(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Node]:
        """Return the members of an object with known names; null counts as absent."""
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

    def integers(self) -> tuple[int, ...]:
        """Return an array of whole numbers."""
        values = self._expect(list, "an array")
        if all(type(value) is int for value in values):  # avoids a node per element
            return tuple(values)
        return tuple(item.integer() for item in self.items())

    def count(self, minimum: int = 0) -> int:
        """Return a whole number that counts elements or bytes."""
        value = self.integer()
        if not minimum <= value < 2**63:
            self.refuse(f"is {shown(value)}; it must be at least {minimum} and less than 2^63")
        return value

    def number(self) -> float:
        """Return a number as it was written: whole ones as int, of any size."""
        if isinstance(self.value, str) and self.value.lower() in _NOT_FINITE:
            return float(self.value)
        number: float = self._expect((int, float), 'a number, "nan", "inf" or "-inf"')
        try:
            fits = math.isfinite(number)
        except OverflowError:
            fits = False
        if not fits:
            what = shown(number) if isinstance(number, int) else "a number"
            self.refuse(f"{what} does not fit FLOAT64")
        return number

    def choice(self, enumeration: type[_Member], *prefixes: str) -> _Member:
        """Return the member of an enumeration, named with or without a prefix."""
        name = self.text()
        short = next((name[len(p) :] for p in prefixes if name.startswith(p)), name)
        members = enumeration.__members__
        if short not in members:
            self.refuse(unknown("name", name, members, short))
        return members[short]


def shown(value: Any) -> str:
    """Return a value as JSON, shortened, for a message."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:56]} ..."


def unknown(what: str, name: str, known: Collection[str], short: str | None = None) -> str:
    """Return the message for an unknown name, which `short` compares with the known ones."""
    if not known:
        return f"unknown {what} {name!r}; there are none"
    near = nearest(name if short is None else short, known)
    if near is not None:
        return f"unknown {what} {name!r}; the nearest is {near!r}"
    first = ", ".join(map(repr, islice(known, _LISTED)))
    more = f" and {len(known) - _LISTED} others" if len(known) > _LISTED else ""
    return f"unknown {what} {name!r}; known: {first}{more}"


def _without_duplicates(members: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(members)
    if len(result) < len(members):
        seen: set[str] = set()
        for name, _ in members:
            if name in seen:
                raise ValueError(f"the field {name!r} occurs twice in one object")
            seen.add(name)
    return result


def _parse(text: str) -> Any:
    """Parse JSON. NaN and Infinity become strings, so an infinite float is beyond float64."""
    return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=str.lower)


# DxDispatch accepts comments and trailing commas, which JSON lacks. Both are searched outside of
# string literals. A literal is matched in chunks of 1000 escapes, since the memory of `re` grows
# with the repetitions of a group.
_LITERAL = r'"[^"\\]*'
_REST_OF_LITERAL = re.compile(r'(?:\\.[^"\\]*){1,1000}', re.DOTALL)
_COMMENT = re.compile(rf"{_LITERAL}|//[^\n]*|/\*(?:.*?\*/|.*\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_LITERAL}|,(?=\s*[}}\]])")


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """Replace the matches outside of string literals with as many spaces on as many lines."""
    segments, copied, match = [], 0, pattern.search(text)
    while match:
        end = match.end()
        if text[match.start()] == '"':
            while part := _REST_OF_LITERAL.match(text, end):
                end = part.end()
            end += 1  # the closing quotation mark
        else:
            if match[0].startswith("/*") and (len(match[0]) < 4 or not match[0].endswith("*/")):
                line = text.count("\n", 0, match.start()) + 1
                raise ValueError(f"the comment of line {line} is not closed")
            segments.append(text[copied : match.start()])
            segments.append("\n".join(" " * len(line) for line in match[0].split("\n")))
            copied = end
        match = pattern.search(text, end)
    return "".join((*segments, text[copied:]))


def _read_text(path: str, name: str) -> str:
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise FileError("standard input is closed")
        data = sys.stdin.buffer.read(LIMIT + 1)
    else:
        with Path(path).open("rb") as file:
            data = file.read(LIMIT + 1)
    if len(data) > LIMIT:
        limit = f"the limit of operator files, {LIMIT // 2**20} MiB"
        raise FileError(f"{name} is larger than {limit}; keep large data in .npy or .bin files")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{name} is not valid UTF-8: {error.reason} at {error.start}") from error


def read_json(path: str) -> Node:
    """Read a file, or the standard input where it is "-"."""
    name = "standard input" if path == STANDARD_INPUT else path
    with reading(name):
        text = _read_text(path, name)
        try:
            try:
                return Node(_parse(text))
            except json.JSONDecodeError:
                return Node(_parse(_blank(_TRAILING_COMMA, _blank(_COMMENT, text))))
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            raise FileError(f"{name} is not valid JSON: {error.msg} at {where}") from error
        except ValueError as error:
            if "set_int_max_str_digits" in str(error):  # Python's limit
                limit = sys.get_int_max_str_digits()
                raise FileError(f"{name} has a whole number of over {limit} digits") from error
            raise FileError(f"{name} is not valid JSON: {error}") from error
