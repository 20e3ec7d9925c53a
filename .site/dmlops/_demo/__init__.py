"""The sub-command ``demo``: its options, and the check that its extra packages are there."""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from pathlib import Path

from dmlops._cli import CommandError

FORMATS = (".png", ".jpg", ".pdf", ".svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dmlops demo``."""
    parser.add_argument(
        "--output",
        metavar="PATH",
        type=picture_path,
        default="dmlops-demo.png",
        help=f"where the picture goes: a name ending in {' '.join(FORMATS)} (default: %(default)s)",
    )


def picture_path(text: str) -> Path:
    """Return ``text`` as a path that a picture can be written to; argparse reports the errors."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a folder; name a file in it")
    if path.suffix.lower() not in FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in one of {' '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"the folder {str(path.parent)!r} does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written: permission denied")
    return path


def run(arguments: argparse.Namespace) -> int:
    """Run the demo, if its packages are there."""
    require_extra()
    import_module("dmlops._demo.program").run(arguments.output)  # what it imports is checked now
    return 0


def require_extra() -> None:
    """Refuse, with the remedy, when a package that only the demo needs is missing."""
    missing = []
    for module, package in (("sklearn", "scikit-learn"), ("matplotlib", "matplotlib")):
        try:
            import_module(module)
        except ImportError:
            missing.append(package)
    if missing:
        raise CommandError(
            f"the demo needs {' and '.join(missing)}; install with: pip install 'dmlops[demo]'"
        )
