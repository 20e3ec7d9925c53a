"""Files of elements: sources are mapped into memory, results are written under a temporary name."""

from __future__ import annotations

import io
import math
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from dmlops._enums import TensorDataType
from dmlops._operator_file.read import FileError, reading
from dmlops._tensor_desc import MAX_DIMENSIONS

Array = NDArray[Any]

RAW = (".bin", ".dat")  # files without a header

_NPY_HEADER = 2**16  # bytes; NumPy accepts shorter headers only, and a file may claim a longer one


def is_npy(path: Path) -> bool:
    """Return True if a path names a NumPy file."""
    return path.suffix.lower() == ".npy"


def is_raw(path: Path) -> bool:
    """Return True if a path names a file without a header."""
    return path.suffix.lower() in RAW


def _open(path: Path) -> BinaryIO:
    """Open a regular file. Pipes and devices could block or never end."""
    flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    file = open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError("it is not a regular file")
    return file


def map_source(path: Path, raw: np.dtype[Any] | None, *, written: bool) -> Array:
    """Map a .npy file, or a raw file of the given type. Writes to the mapping stay in memory."""
    mode: Literal["c", "r"] = "c" if written else "r"
    with _open(path) as file:
        if raw is not None:
            return np.memmap(file, raw, mode)
        shape, fortran_order, dtype, offset = _read_npy_header(file)
        if dtype.newbyteorder("=").name.upper() not in TensorDataType.__members__:
            raise ValueError(f"it holds {dtype}, for which DirectML has no data type")
        if len(shape) > MAX_DIMENSIONS:
            raise ValueError(
                f"it has {len(shape)} dimensions; DirectML's tensors have at most {MAX_DIMENSIONS}"
            )
        if math.prod(shape) == 0:
            raise ValueError("it holds no elements")
        return np.memmap(file, dtype, mode, offset, shape, "F" if fortran_order else "C")


def _read_npy_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, Fortran order, dtype and the offset of the elements.

    `numpy.load` is not used: it also opens archives and pickles. Version 3 of the format is for
    structured dtypes alone.
    """
    header = io.BytesIO(file.read(_NPY_HEADER))
    try:
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[np.lib.format.read_magic(header)]
        shape, fortran_order, dtype = read(header)
    except Exception as error:  # NumPy evaluates the header's text, which may raise any exception
        raise ValueError(f"it is not a valid .npy file: {error!r}") from error
    return shape, fortran_order, dtype, header.tell()


class NewFile:
    """A file in memory under a temporary name, which `commit` renames when it is complete.

    The temporary name is random and created exclusively, so no existing file is opened for writing
    and no symbolic link is followed. `commit` replaces a link at the final name.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._path = path
        self._part = path.with_name(f".{secrets.token_hex(16)}.part")
        check_target(path)
        with reading(str(path)), open(self._part, "x+b") as file:
            try:
                self.array: Any = _map_new(file, dtype, shape, npy=is_npy(path))
            except BaseException:
                self.discard()
                raise

    def commit(self) -> None:
        """Rename the file. No view of the array may exist: Windows cannot rename mapped files."""
        with reading(str(self._path)):
            self.array.flush()
            self.array = np.empty(0)
            os.replace(self._part, self._path)

    def discard(self) -> None:
        """Remove the file unless it has been committed."""
        self.array = np.empty(0)
        self._part.unlink(missing_ok=True)


def check_target(path: Path) -> None:
    """Refuse a path that cannot be written."""
    if not is_npy(path) and not is_raw(path):
        raise FileError(f"{path}: the name must end in one of .npy {' '.join(RAW)}")
    with reading(str(path)):
        if not stat.S_ISDIR(path.parent.stat().st_mode):
            raise FileError(f"{path}: {path.parent} is not a folder")
        if not os.access(path.parent, os.W_OK):
            raise FileError(f"{path}: the folder is not writable")
        with suppress(FileNotFoundError):  # raises OSError for an over-long name
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                raise FileError(f"{path} exists and is not a regular file")


def _map_new(file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...], *, npy: bool) -> Any:
    if npy:
        header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
    offset = file.tell()
    # On a full disk, writing to an unallocated block of a mapping would be a fatal signal.
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, offset + math.prod(shape) * dtype.itemsize)
    return np.memmap(file, dtype, "r+", offset, shape)
