"""Every public name has a docstring with an example, and the examples are right."""

from __future__ import annotations

import doctest

import pytest

import dmlops


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
