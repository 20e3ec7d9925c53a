"""Where the C++ library lies: its source, its headers, and what CMake finds it by."""

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
    return _folder("include")


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
    return _folder("cmake", "package")


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
    return _folder()


def _folder(*parts: str) -> str:
    """Return a folder beside the extension module, also where the package is editable."""
    path = Path(_core.__file__).parent.joinpath("cpp", *parts)
    if not path.is_dir():
        message = f"the C++ library is not installed with this package: {path} does not exist"
        raise FileNotFoundError(message)
    return str(path)
