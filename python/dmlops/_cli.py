"""The command line: finds the sub-command, runs it, turns what the user did wrong into a message.

A sub-command ``name`` is one line in ``COMMANDS`` and a module ``dmlops._name``, imported only when
it is named, with ``add_arguments(parser)`` and ``run(arguments)``, which returns the exit status.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

import dmlops
from dmlops import _core

COMMANDS = {
    "info": "show version, instruction sets, threads and platform, as a bug report needs them",
    "run": "run an operator that a JSON file describes with DirectML's names",
    "validate": "say whether a feature level accepts the operator of a JSON file, and why not",
    "demo": "run the operators on photographs and handwritten digits, and draw the results",
    "accuracy": "measure the operators' errors beside NumPy, PyTorch and ONNX Runtime",
    "bench": "compare the speed with NumPy, PyTorch, ONNX Runtime and others, side by side",
}

INTERRUPTED = 128 + 2  # the exit status that shells give to SIGINT


MESSAGE_LENGTH = 1000  # characters: names in a message can be as long as a file


def one_line(text: object) -> str:
    """Return a message without control characters, which names in a file can have, shortened."""
    message = str(text)
    if len(message) > MESSAGE_LENGTH:
        half = MESSAGE_LENGTH // 2
        message = f"{message[:half]} ... {message[-half:]}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)


class CommandError(Exception):
    """A sub-command cannot do what was asked; the message says why, and no traceback is shown."""

    status = 1


class UsageError(CommandError):
    """What was asked, a file that it names or the environment is wrong."""

    status = 2


# What builds of C++ programs ask for: an option, the function that answers it, and what it is.
FOLDERS: dict[str, tuple[Callable[[], str], str]] = {
    "--cmake-dir": (dmlops.get_cmake_dir, "CMake's package file, for -Ddmlops_DIR"),
    "--include-dir": (dmlops.get_include, "the C++ headers"),
    "--source-dir": (dmlops.get_source_dir, "the C++ library's source, for cmake -S"),
}


class PrintFolder(argparse.Action):
    """Print a folder and exit; asked for only if the option is given."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print what the function in ``const`` returns."""
        try:
            print(FOLDERS[self.option_strings[0]][0]())
        except FileNotFoundError as error:
            parser.exit(1, f"dmlops: error: {error}\n")
        parser.exit()


def build_parser(words: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser, with the arguments of those sub-commands that occur in ``words``."""
    parser = argparse.ArgumentParser(
        prog="dmlops", description="DirectML operators on the CPU, for NumPy arrays."
    )
    parser.add_argument("--version", action="version", version=f"dmlops {dmlops.__version__}")
    for option, (_, what) in FOLDERS.items():
        parser.add_argument(
            option, action=PrintFolder, nargs=0, help=f"print the folder of {what}, and exit"
        )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sentence = f"{summary[0].upper()}{summary[1:]}."
        command = commands.add_parser(name, help=summary, description=sentence)
        if name in words:
            module = import_module(f"dmlops._{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def complete() -> None:
    """Answer, and exit, if it is a shell that asks how its line goes on; argcomplete knows how."""
    if "_ARGCOMPLETE" in os.environ:
        words = os.environ["COMP_LINE"].split()
        import_module("argcomplete").autocomplete(build_parser(words))


def check_environment() -> None:
    """Refuse a wrong variable in the environment."""
    try:
        dmlops.isa()
        dmlops.get_num_threads()
        _core.non_temporal_threshold()
    except ValueError as error:
        raise UsageError(str(error)) from error


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line ``words`` (by default the program's own) and return the exit status.

    0: done; 1: it could not be done; 2: the command line, a file that it names or the environment
    is wrong (for the command line, argparse exits by itself).
    """
    if words is None:
        complete()
        words = sys.argv[1:]
    parser = build_parser(words)
    arguments = parser.parse_args(words)
    if "run" not in arguments:
        parser.print_help()
        return 0
    try:
        check_environment()
        status: int = arguments.run(arguments)
        sys.stdout.flush()  # here, where a closed pipe can still be handled
        return status
    except CommandError as error:
        print(f"dmlops: error: {one_line(error)}", file=sys.stderr)
        return error.status
    except MemoryError as error:
        print(f"dmlops: error: not enough memory. {one_line(error)}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
