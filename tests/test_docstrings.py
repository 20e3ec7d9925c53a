"""Every public name has a docstring with an example, and the examples are right."""

from __future__ import annotations

import doctest
import inspect
import math
import re
from typing import Any

import numpy as np
import pytest

import dmlops
from dmlops import _activations

MATHEMATICS: dict[str, Any] = {
    **{name: getattr(math, name) for name in ("exp", "sqrt", "erf", "tanh")},
    **{"ln": math.log, "max": max, "min": min, "maximum": max, "minimum": min, "abs": abs},
}


@pytest.mark.parametrize("name", dmlops.__all__)
def test_examples(name: str) -> None:
    value = getattr(dmlops, name)
    assert value.__doc__, f"{name} has no docstring"
    if isinstance(value, type) and issubclass(value, Exception):
        return
    tests = doctest.DocTestFinder().find(value, name, globs={})
    assert any(test.examples for test in tests), f"{name} has no example"
    for test in tests:
        result = doctest.DocTestRunner(verbose=False).run(test)
        assert not result.failed, f"{name}: {result.failed} of {result.attempted} examples"


@pytest.mark.parametrize("name", _activations.__all__)
def test_the_formula_is_what_is_computed(name: str) -> None:
    function = getattr(dmlops, name)
    stated = re.search(r"``(.+?)``", function.__doc__)
    assert stated
    names = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if isinstance(parameter.default, float)
    ]
    parameters = dict(zip(names, (0.75, 1.5), strict=False))
    for x in np.linspace(-4, 4, 33, dtype=np.float32):
        expected = eval(stated[1], {**MATHEMATICS, **parameters, "x": float(x)})
        assert function(x[np.newaxis], **parameters)[0] == pytest.approx(expected, rel=1e-6)


def test_infinite_parameters_inside_of_exp_or_tanh() -> None:
    """The sentence stands where a parameter is an operand of exp or tanh."""
    inside = {
        name
        for name in _activations.__all__
        if "inside of exp or tanh" in getattr(dmlops, name).__doc__
    }
    assert inside == {"celu", "parametric_softplus", "scaled_tanh", "softplus", "swish"}


def test_shrink_of_integers() -> None:
    assert dmlops.shrink.__doc__
    assert "truncated toward zero and saturated" in dmlops.shrink.__doc__
    x = np.array([100, -100, 7], np.int8)
    assert dmlops.shrink(x, 0.5, 1).tolist() == [99, -99, 6]
    assert dmlops.shrink(x, -100, 1).tolist() == [127, -128, 107]


@pytest.mark.parametrize("row", dmlops._table.OPERATORS, ids=lambda row: row.desc)
def test_descriptors_name_struct_level_and_place(row: Any) -> None:
    notes = " ".join(getattr(dmlops, row.desc).__doc__.split("Notes")[1].split())
    assert f"Mirrors {row.struct}." in notes
    assert ("Works in place." in notes) == row.in_place
    since = row.supports[0].since.replace("_", ".")
    assert (f"From feature level {since} on." in notes) == (since != "1.0")
    has_axes = any(field.name == "axes" for field in row.fields)
    assert ("AxisCount is the length of `axes`." in notes) == has_axes
