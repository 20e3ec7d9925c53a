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
