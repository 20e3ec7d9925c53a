"""Types and checks of options that sub-commands share, applied before any work."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, TypeVar

from dmlops._cli import CommandError

PICTURES = (".png", ".jpg", ".webp", ".pdf", ".svg")


def output_file(*suffixes: str) -> Callable[[str], Path]:
    """Return an argparse type for output files, which are checked to be writable."""

    def check(text: str) -> Path:
        path = Path(text)
        wrong = None
        try:
            with suppress(FileNotFoundError, NotADirectoryError):
                path.stat()  # raises OSError for an over-long name, unlike some versions of is_dir
        except OSError as error:
            raise argparse.ArgumentTypeError(
                f"{text!r} cannot be written: {error.strerror}"
            ) from None
        if path.is_dir():
            wrong = "is a folder; name a file in it"
        elif suffixes and path.suffix.lower() not in suffixes:
            wrong = f"does not end in one of {' '.join(suffixes)}"
        elif not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"the folder {str(path.parent)!r} does not exist")
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            wrong = "cannot be written: permission denied"
        if wrong:
            raise argparse.ArgumentTypeError(f"{text!r} {wrong}")
        return path

    return check


def choice_of(known: Collection[str], what: str) -> Callable[[str], list[str]]:
    """Return an argparse type for known names, separated by commas."""

    def check(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        unknown = [name for name in names if name not in known]
        if unknown:
            given, listed = ", ".join(unknown), ", ".join(known)
            raise argparse.ArgumentTypeError(f"{given} unknown; the {what} are {listed}")
        return names

    return check


def complete_values(option: argparse.Action, known: Collection[str]) -> None:
    """Let shells complete the option's value, one of the known names or several after commas."""

    def complete(prefix: str, **_: object) -> list[str]:
        before = prefix.rpartition(",")
        return ["".join(before[:2]) + name for name in known]

    option.completer = complete  # type: ignore[attr-defined] # argcomplete's


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Item = TypeVar("_Item", bound=_Named)


def select(only: Collection[str], items: Sequence[_Item], what: str) -> list[_Item]:
    """Return the items whose name contains a text of ``--only``; all of them without a text.

    Refuses a text without a match.
    """
    unmatched = [text for text in only if not any(text in item.name for item in items)]
    if unmatched:
        texts = " or ".join(map(repr, unmatched))
        raise CommandError(f"no {what}'s name contains {texts}; a valid name is {items[0].name}")
    return [item for item in items if not only or any(text in item.name for text in only)]


def check_picture(path: Path | None) -> None:
    """Refuse a picture if the package that draws it is missing."""
    if path and find_spec("matplotlib") is None:
        raise CommandError(
            "the picture needs matplotlib; install with: pip install 'dmlops[bench]'"
        )


def check_peers(named: Collection[str] | None, missing: Mapping[str, str]) -> None:
    """Refuse missing peers that ``--peers`` names."""
    absent = [f"{name} ({missing[name]})" for name in named or () if name in missing]
    if absent:
        raise CommandError(
            f"--peers names {', '.join(absent)}; install with: pip install 'dmlops[bench]'"
        )
