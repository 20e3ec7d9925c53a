"""The sub-command ``demo``: its options, and the check that its extra packages are installed."""

from __future__ import annotations

import argparse
from importlib import import_module

from dmlops._cli import DONE, CommandError
from dmlops._options import PICTURES, output_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dmlops demo``."""
    parser.add_argument(
        "--output",
        metavar="PATH",
        type=output_file(*PICTURES),
        default="dmlops-demo.png",
        help=f"the picture's file, in {' '.join(PICTURES)} (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the demo, if its packages are installed."""
    require_extra()
    import_module("dmlops._demo.program").run(arguments.output)  # imports the extra
    return DONE


def require_extra() -> None:
    """Refuse to run without a package of the extra; the message says how to install it."""
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
