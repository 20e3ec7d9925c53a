"""The folders of the installed package: the C++ source, its headers, the examples."""

from __future__ import annotations

from pathlib import Path

from dmlops import _core


def get_include() -> str:
    """Return the folder to give to a C++ compiler as include path.

    Returns
    -------
    str
        The folder that holds ``dmlops/operators.hpp`` and the other headers.

    Raises
    ------
    FileNotFoundError
        If the package was installed without its C++ library.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dmlops import get_include
    >>> Path(get_include(), "dmlops", "operators.hpp").is_file()
    True
    """
    return _folder("cpp", "include")


def get_cmake_dir() -> str:
    """Return the folder of CMake's package file, for ``-Ddmlops_DIR=``.

    Returns
    -------
    str
        With it ``find_package(dmlops)`` gives the target ``dmlops::dmlops``, built from the source
        that the package carries.

    Raises
    ------
    FileNotFoundError
        If the package was installed without its C++ library.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dmlops import get_cmake_dir
    >>> Path(get_cmake_dir(), "dmlopsConfig.cmake").is_file()
    True
    """
    return _folder("cpp", "cmake", "package")


def get_source_dir() -> str:
    """Return the folder of the C++ library's source, a CMake project.

    Returns
    -------
    str
        What ``cmake -S`` takes, to build the library and install it where pkg-config and other
        programs find it.

    Raises
    ------
    FileNotFoundError
        If the package was installed without its C++ library.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dmlops import get_source_dir
    >>> Path(get_source_dir(), "CMakeLists.txt").is_file()
    True
    """
    return _folder("cpp")


def get_examples_dir() -> str:
    """Return the folder of the examples that the documentation names.

    Returns
    -------
    str
        Operators in JSON, programs in C, C++ and Python.

    Raises
    ------
    FileNotFoundError
        If the package was installed without its examples.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dmlops import get_examples_dir
    >>> Path(get_examples_dir(), "clip.json").is_file()
    True
    """
    return _folder("examples", what="the examples are")


def _folder(folder: str, *parts: str, what: str = "the C++ library is") -> str:
    """Return a folder beside the extension module, also where the package is editable."""
    path = Path(_core.__file__).parent.joinpath(folder, *parts)
    if not path.is_dir():
        message = f"{what} not installed with this package: {path} does not exist"
        raise FileNotFoundError(message)
    return str(path)
