"""Hardening of the built module: read-only relocations, no executable stack."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dmlops import _core

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at an ELF file")

MODULE = Path(str(_core.__file__)).read_bytes()
LOAD, DYNAMIC, GNU_STACK, GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552
EXECUTE, WRITE = 1, 2
TEXTREL, BIND_NOW, RPATH, RUNPATH, FLAGS, FLAGS_1 = 22, 24, 15, 29, 30, 0x6FFFFFFB


def segments() -> Iterator[tuple[int, int, bytes]]:
    """Yield type, flags and content of each segment (64-bit, little endian)."""
    assert MODULE[:6] == b"\x7fELF\x02\x01"
    (table,) = struct.unpack_from("<Q", MODULE, 32)
    size, count = struct.unpack_from("<HH", MODULE, 54)
    for i in range(count):
        kind, flags, offset, _, _, length = struct.unpack_from("<IIQQQQ", MODULE, table + i * size)
        yield kind, flags, MODULE[offset : offset + length]


def dynamic() -> dict[int, int]:
    """Return the entries of the dynamic section."""
    (content,) = (content for kind, _, content in segments() if kind == DYNAMIC)
    return dict(struct.iter_unpack("<QQ", content))


def test_the_stack_is_not_executable() -> None:
    (flags,) = (flags for kind, flags, _ in segments() if kind == GNU_STACK)
    assert not flags & EXECUTE


def test_no_memory_is_both_writable_and_executable() -> None:
    for kind, flags, _ in segments():
        assert kind != LOAD or flags & (EXECUTE | WRITE) != EXECUTE | WRITE


def test_relocations_are_read_only_from_the_start() -> None:
    entries = dynamic()
    assert GNU_RELRO in [kind for kind, _, _ in segments()]
    assert BIND_NOW in entries or entries.get(FLAGS, 0) & 8 or entries.get(FLAGS_1, 0) & 1
    assert TEXTREL not in entries
    assert not entries.get(FLAGS, 0) & 4


def test_libraries_are_not_looked_for_elsewhere() -> None:
    assert not {RPATH, RUNPATH} & dynamic().keys()


def test_stack_protectors() -> None:
    """Check for both the check and its handler; sanitizers replace them."""
    if b"__asan_init" in MODULE:
        pytest.skip("built with a sanitizer")
    assert b"__stack_chk_fail" in MODULE
