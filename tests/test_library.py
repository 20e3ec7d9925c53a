"""The C++ library and the examples inside the package: their folders and options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dmlops
from dmlops import _core
from dmlops._cli import main

ROOT = Path(__file__).parents[1]
OPTIONS: dict[str, Callable[[], str]] = {
    "--examples-dir": dmlops.get_examples_dir,
    "--include-dir": dmlops.get_include,
    "--cmake-dir": dmlops.get_cmake_dir,
    "--source-dir": dmlops.get_source_dir,
}


def test_source_is_that_of_the_project() -> None:
    """All that a build of the library needs, and nothing of the extension module."""
    installed = Path(dmlops.get_source_dir())
    files = {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()}
    own = {Path(name) for name in ("CMakeLists.txt", "LICENSE")}
    own.add(Path("cmake/package/dmlopsConfigVersion.cmake"))
    own |= {
        path.relative_to(ROOT)
        for folder in ("cmake", "include", "src")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "python" not in path.relative_to(ROOT).parts
    }
    assert files == own
    for path in files & {Path("CMakeLists.txt"), Path("include/dmlops/operators.hpp")}:
        assert (installed / path).read_bytes() == (ROOT / path).read_bytes()


def test_examples_are_those_of_the_project() -> None:
    """Every example that a page of the documentation names."""
    folders = Path(dmlops.get_examples_dir()), ROOT / "examples"
    installed, own = (
        {
            path.relative_to(folder)
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }
        for folder in folders
    )
    assert installed == own


def test_version() -> None:
    text = Path(dmlops.get_cmake_dir(), "dmlopsConfigVersion.cmake").read_text()
    assert f'set(PACKAGE_VERSION "{dmlops.__version__}")' in text


@pytest.mark.parametrize("option", OPTIONS)
def test_options(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([option])
    assert capsys.readouterr().out == f"{OPTIONS[option]()}\n"


@pytest.mark.parametrize("option", OPTIONS)
def test_a_package_without_the_library_says_so(
    option: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(_core, "__file__", str(tmp_path / "_core.so"))
    with pytest.raises(FileNotFoundError, match="not installed with this package"):
        OPTIONS[option]()
    with pytest.raises(SystemExit, match="2"):
        main([option])
    assert "not installed with this package" in capsys.readouterr().err
