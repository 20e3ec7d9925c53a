"""The examples on the pages of the documentation, and in the README, are right."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import pytest

import dmlops
from dmlops import _activations, _cli, _operators

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]
if not DOCS.is_dir():  # as in an sdist
    pytest.skip("the documentation is not here", allow_module_level=True)
sys.path.insert(0, str(DOCS))

from extensions import formulas, support  # noqa: E402

# Packages that the examples of a page use.
NEEDS = {
    "dask.md": ["dask.array"],
    "ecosystem.md": ["dask.array", "jax", "pandas", "xarray"],
    "onnx.md": ["onnx", "onnxruntime"],
    "pytorch.md": ["torch"],
    "tutorial.md": ["sklearn"],
}


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    for module in NEEDS.get(page.name, ()):
        pytest.importorskip(module)
    result = doctest.testfile(str(page), module_relative=False, verbose=False)
    assert not result.failed, f"{page.name}: {result.failed} of {result.attempted} examples"
    assert result.attempted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_whole(page: Path) -> None:
    """A blank line within a table would turn the rows after it into text."""
    for table in re.findall(r"(?:^\|.*\n)+", page.read_text(encoding="utf-8"), re.MULTILINE):
        rows = table.splitlines()
        assert len(rows) > 1, rows
        assert re.fullmatch(r"[|:\- ]+", rows[1]), rows[:2]
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
        assert len(cells) == 1, rows


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", DOCS / "index.md"], ids=lambda page: page.name
)
def test_number_of_operators(page: Path) -> None:
    count = len(dmlops.OperatorType)
    assert f"These are {count} of DirectML's 177 operators" in " ".join(page.read_text().split())


def test_every_public_name_has_a_page() -> None:
    listed = re.findall(
        r"^   (\w+)$", "".join(page.read_text() for page in sorted(DOCS.glob("*.md"))), re.MULTILINE
    )
    assert sorted(listed) == sorted(dmlops.__all__)


@pytest.mark.parametrize("name", [*_operators.__all__, *_activations.__all__])
def test_the_formula_of_each_operator_is_typeset(name: str) -> None:
    assert formulas.formula(name)


@pytest.mark.parametrize("name", [*_operators.__all__, *_activations.__all__])
def test_the_tables_of_each_operator_are_filled(name: str) -> None:
    assert {"float32", "float16"} <= set(support.data_types(name))
    assert support.descriptors(name)
    assert all(support.levels(descriptor) for descriptor in support.descriptors(name))


NAMED_FILE = re.compile(
    r"(?<![\w/.-])((?:src|tests|tools|python|bench|examples|include|docs)/[\w./*-]+)"
)
TEXTS = [*PAGES, *ROOT.glob("*.md"), *ROOT.glob("bench/*.md")]


@pytest.mark.parametrize("page", sorted(set(TEXTS)), ids=lambda page: page.name)
def test_named_files_exist(page: Path) -> None:
    names = {name.rstrip(".") for name in NAMED_FILE.findall(page.read_text(encoding="utf-8"))}
    assert [name for name in sorted(names) if not any(ROOT.glob(name.rstrip("/")))] == []


def test_the_exit_status_is_documented() -> None:
    page = (DOCS / "command_line.md").read_text()
    rows = [int(status) for status in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert rows == [
        _cli.DONE, _cli.REFUSED, _cli.FAILED, _cli.INTERRUPTED, _cli.CLOSED_PIPE,
    ]  # fmt: skip


def test_thresholds_exist() -> None:
    source = ROOT / "src"
    rows = [
        line.split("|")[1:3]
        for line in (source / "thresholds.md").read_text(encoding="utf-8").splitlines()
        if re.match(r"\| (?!threshold|---)", line)
    ]
    assert len(rows) > 20
    for text, files in rows:
        code = "".join(
            (source / file).read_text(encoding="utf-8") for file in re.findall("`(.*?)`", files)
        )
        names = re.findall(r"`(\w+)`", "".join(re.findall(r"\((.*?)\)", text)))
        assert [name for name in names if name not in code] == [], files
