"""Random bindings; fuzz/bindings.py draws them for longer."""

from __future__ import annotations

from drawn_bindings import Case, cases, check
from hypothesis import given, settings


@settings(max_examples=400)
@given(case=cases())
def test_any_binding(case: Case) -> None:
    check(case)
