"""The folders of the installed package: the C++ source, its headers, the examples."""

from __future__ import annotations

from pathlib import Path

from dmlops import _core


def get_include() -> str:
    """Return the include path for a C++ compiler.

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
        The folder with which ``find_package(dmlops)`` defines the target ``dmlops::dmlops``, built
        from the source in the package.

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
        The argument of ``cmake -S``, to build and install the library for pkg-config and other
        programs.

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
    """Return the folder of the documentation's examples.

    Returns
    -------
    str
        A folder with operators in JSON, and programs in C, C++ and Python.

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
    """Return a folder beside the extension module, also in an editable installation."""
    path = Path(_core.__file__).parent.joinpath(folder, *parts)
    if not path.is_dir():
        message = f"{what} not installed with this package: {path} does not exist"
        raise FileNotFoundError(message)
    return str(path)
