"""Variants of tests: instruction sets, policies, and subsets of large products.

By default, tests go through combinations in which each pair of values occurs; the others run with
`pytest -m exhaustive`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import hypothesis
import pytest

import dmlops
from dmlops import _core

T = TypeVar("T")

FORCED_ISA = os.environ.get("DMLOPS_ISA")
ISAS = (FORCED_ISA,) if FORCED_ISA else dmlops.available_isas()

# By name: thresholds to set. dmlops._core has a getter and a setter for each, set_NAME, and the
# environment variable DMLOPS_NAME sets it for a new process.
POLICIES: dict[str, dict[str, int]] = {
    "usual": {},
    # All outputs by non-temporal stores, except small dense ones of clip and activations.
    "streaming": {"non_temporal_threshold": 0},
}

# Parameters that are passed to the fixtures of the same name.
FIXTURES = ("isa", "policy")


@contextlib.contextmanager
def small_shards(threads: int, split_threshold: int = 256) -> Iterator[None]:
    """Run with threads that share calls on small arrays."""
    threshold = _core.split_threshold()
    _core.set_split_threshold(split_threshold)
    try:
        with dmlops.num_threads(threads):
            yield
    finally:
        _core.set_split_threshold(threshold)


Combination = tuple[Any, ...]
Pair = tuple[int, Any, int, Any]


def _pairs(values: Combination) -> Iterator[Pair]:
    for (i, left), (j, right) in itertools.combinations(enumerate(values), 2):
        yield i, left, j, right


def covering(axes: Sequence[Sequence[Any]]) -> list[Combination]:
    """Return combinations in which each pair of values of two axes occurs, nearly as few as can be.

    The number of combinations is that of the pairs of the two longest axes. Each combination takes
    the values of the other axes that add the most new pairs, and among these the least used ones.
    """
    order = sorted(range(len(axes)), key=lambda i: -len(axes[i]))
    missing = {pair for values in itertools.product(*axes) for pair in _pairs(values)}
    chosen: list[Combination] = []
    others = list(itertools.product(*(axes[i] for i in order[2:])))

    def assembled(values: Combination) -> Combination:
        return tuple(value for _, value in sorted(zip(order, values, strict=True)))

    def take(candidates: Iterable[Combination]) -> None:
        best = max(candidates, key=lambda values: sum(pair in missing for pair in _pairs(values)))
        missing.difference_update(_pairs(best))
        chosen.append(best)

    for number, first in enumerate(itertools.product(*(axes[i] for i in order[:2]))):
        turn = number % len(others)
        take(assembled((*first, *rest)) for rest in (*others[turn:], *others[:turn]))
    while missing:
        i, left, j, right = min(missing, key=str)
        fixed = {i: [left], j: [right]}
        take(itertools.product(*(fixed.get(k, axis) for k, axis in enumerate(axes))))
    return chosen


def _name(value: object) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)


def pairwise(*, rest: bool = True, **axes: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrize by combinations in which each pair of values occurs; others are exhaustive."""
    values = [tuple(axis) for axis in axes.values()]
    everything = list(itertools.product(*values))
    by_default = set(covering(values) if len(values) > 2 else everything)
    parameters = [
        pytest.param(
            *each,
            marks=() if each in by_default else pytest.mark.exhaustive,
            id="-".join(map(_name, each)),
        )
        for each in everything
        if rest or each in by_default
    ]
    indirect = [name for name in axes if name in FIXTURES]
    return pytest.mark.parametrize(tuple(axes), parameters, indirect=indirect)


def environment(policy: str) -> dict[str, str]:
    """Return the environment variables of a policy."""
    return {f"DMLOPS_{name.upper()}": str(value) for name, value in POLICIES[policy].items()}


@contextlib.contextmanager
def thresholds(policy: str) -> Iterator[None]:
    """Set the thresholds of a policy in this process, and restore them."""
    chosen = POLICIES[policy]
    before = {name: getattr(_core, name)() for name in chosen}
    for name, value in chosen.items():
        getattr(_core, f"set_{name}")(value)
    try:
        yield
    finally:
        for name, value in before.items():
            getattr(_core, f"set_{name}")(value)


def on_every_variant(check: Callable[[], object]) -> None:
    """Run the check of a property on each instruction set and with each policy.

    Hypothesis draws, and the test computes its references, once for all of them.
    """
    before = dmlops.isa()
    try:
        for isa, policy in itertools.product(ISAS, POLICIES):
            hypothesis.note(f"{isa}, {policy}")  # the last note is that of the failure
            _core.set_isa(isa)
            with thresholds(policy):
                check()
    finally:
        _core.set_isa(before)


class Extent:
    """The share of its loops that a test runs: all, or a subset that depends on its id."""

    def __init__(self, everything: bool, seed: str) -> None:
        self.everything = everything
        self.turn = zlib.crc32(seed.encode())

    def of(self, items: Iterable[T], share: int) -> Sequence[T]:
        """Return all items, or every `share`-th; tests of other ids return others."""
        listed = tuple(items)
        return listed if self.everything else listed[self.turn % share :: share]
