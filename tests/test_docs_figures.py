"""The figure of each operator's page draws results of that operator."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dmlops
from dmlops import _activations, _operators

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():  # as in an sdist
    pytest.skip("the documentation is not here", allow_module_level=True)
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
sys.path.insert(0, str(DOCS))

import figures  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def _no_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.mark.parametrize("name", [*_operators.__all__, *_activations.__all__])
def test_the_figure_draws_the_operator(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    function = getattr(dmlops, name)

    @functools.wraps(function)
    def recorded(*arguments: Any, **keywords: Any) -> Any:
        calls.append(name)
        return function(*arguments, **keywords)

    monkeypatch.setattr(dmlops, name, recorded)
    figures.draw(name)
    assert calls
    assert plt.gcf().axes
