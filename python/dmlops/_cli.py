"""The command line: dispatches to the sub-commands, and turns errors into messages.

A sub-command ``name`` is one line in ``COMMANDS`` and a module ``dmlops._name``, imported only when
it is named, with ``add_arguments(parser)`` and ``run(arguments)``, which returns the exit status.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any, TextIO

import dmlops
from dmlops._runtime import check_environment

COMMANDS = {
    "info": "show version, instruction sets, threads and platform, for bug reports",
    "run": "run the operators of a JSON file, described with DirectML's names",
    "validate": "check if a feature level accepts the operators of a JSON file, with reasons",
    "demo": "run operators on photographs and handwritten digits, and draw the results",
    "accuracy": "compare the operators' errors with NumPy, PyTorch and ONNX Runtime",
    "bench": "compare the operators' speed with NumPy, PyTorch, ONNX Runtime and others",
}

# The exit status of every command; argparse itself exits with 0 or 2.
DONE, REFUSED, FAILED = 0, 1, 2
INTERRUPTED = 128 + 2  # as shells report SIGINT
CLOSED_PIPE = 128 + 13  # as shells report SIGPIPE

MESSAGE_LENGTH = 1000  # characters: names in a message can be as long as a file


def progress(line: str) -> None:
    """Print a line of progress to standard error."""
    print(line, file=sys.stderr, flush=True)


def one_line(text: object) -> str:
    """Return a message shortened and without control characters, which names in files may have."""
    message = str(text)
    if len(message) > MESSAGE_LENGTH:
        half = MESSAGE_LENGTH // 2
        message = f"{message[:half]} ... {message[-half:]}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)


class CommandError(Exception):
    """A failure that is shown without a traceback: the message gives the reason."""

    status = FAILED


class RefusedError(CommandError):
    """A negative result: an operator is refused, or a result is less accurate than promised."""

    status = REFUSED


# Folders of the package: the option that prints one, the function that returns it, its content.
FOLDERS: dict[str, tuple[Callable[[], str], str]] = {
    "--cmake-dir": (dmlops.get_cmake_dir, "CMake's package file, for -Ddmlops_DIR"),
    "--examples-dir": (dmlops.get_examples_dir, "the examples"),
    "--include-dir": (dmlops.get_include, "the C++ headers"),
    "--source-dir": (dmlops.get_source_dir, "the C++ library's source, for cmake -S"),
}


class Parser(argparse.ArgumentParser):
    """A parser that, unlike argparse's own, reports an error when its help cannot be written."""

    def print_help(self, file: Any = None) -> None:
        """Print the help."""
        print(self.format_help(), end="", file=file)


class PrintVersion(argparse.Action):
    """Print the version and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the version."""
        print(f"dmlops {dmlops.__version__}")
        parser.exit()


class PrintFolder(argparse.Action):
    """Print a folder and exit; the folder is looked up only if the option is given."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the function's result, on POSIX as the bytes of the path in any locale."""
        try:
            folder = FOLDERS[self.option_strings[0]][0]()
        except FileNotFoundError as error:
            parser.exit(FAILED, f"dmlops: error: {error}\n")
        if os.name == "posix" and isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.buffer.write(os.fsencode(f"{folder}\n"))
        else:
            print(folder)
        parser.exit()


def build_parser(words: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser, with the arguments of those sub-commands that occur in ``words``."""
    parser = Parser(prog="dmlops", description="DirectML operators on the CPU, for NumPy arrays.")
    parser.add_argument(
        "--version", action=PrintVersion, nargs=0, help="print the version, and exit"
    )
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
    """Complete a shell's command line and exit, if a shell asks for completions."""
    if "_ARGCOMPLETE" in os.environ:
        words = os.environ["COMP_LINE"].split()
        import_module("argcomplete").autocomplete(build_parser(words))


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line ``words`` (by default the program's own) and return the exit status."""
    if sys.stderr is None:  # closed: print() would write to standard output
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        return fail("standard output is closed")
    if isinstance(sys.stdout, TextIOWrapper):  # escapes characters that its encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            status = run(words)
        finally:  # argparse exits after --help and --version
            sys.stdout.flush()  # an error of the flush can still be handled here
        return status
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        discard(sys.stdout)
        return CLOSED_PIPE
    except KeyboardInterrupt:
        discard(sys.stdout)
        return INTERRUPTED
    except OSError as error:  # from printing: commands handle the errors of their files
        discard(sys.stdout)
        return fail(f"{error.filename or 'standard output'}: {error.strerror or error}")


def run(words: Sequence[str] | None) -> int:
    """Parse the command line and run the sub-command."""
    if words is None:
        complete()
        words = sys.argv[1:]
    parser = build_parser(words)
    arguments = parser.parse_args(words)
    if "run" not in arguments:
        parser.print_help()
        return DONE
    try:
        check_environment()
    except ValueError as error:
        return fail(error)
    try:
        status: int = arguments.run(arguments)
        return status
    except CommandError as error:
        return fail(error, error.status)
    except MemoryError as error:
        return fail(f"not enough memory. {error}")


def fail(message: object, status: int = FAILED) -> int:
    """Print an error on one line; return the exit status."""
    try:
        print(f"dmlops: error: {one_line(message)}", file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)
    return status


def discard(stream: TextIO) -> None:
    """Drop unwritten output, for which the interpreter would exit with its own status."""
    with suppress(OSError):  # the stream has no file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
