"""Timing: each competitor's fastest statement, then rounds in random order."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from timeit import Timer
from typing import Any

import numpy as np

from dmlops._bench.peers import PEERS
from dmlops._bench.peers.base import Candidate, CannotDo, Peer
from dmlops._bench.problem import Array, Problem
from dmlops._bench.references import reference

HOPELESS = 6  # a peer slower than the fastest one by this factor has fewer rounds
LONGEST_REASON = 100


@dataclass(frozen=True)
class Effort:
    """The duration of a measurement: rounds, seconds of a turn, seconds of a cell."""

    rounds: int
    turn: float
    cell: float
    few: int = 3  # rounds of a peer slower by HOPELESS


FULL = Effort(rounds=25, turn=1e-3, cell=4.0)
QUICK = Effort(rounds=9, turn=0.5e-3, cell=0.4)
MANY = Effort(rounds=30, turn=0.5e-3, cell=0.4, few=2)  # for hundreds of cells


@dataclass
class Competitor:
    """A verified statement, its estimated seconds per run, and the seconds of each round."""

    name: str
    candidate: Candidate
    estimate: float
    seconds: dict[int, float] = field(default_factory=dict)

    @property
    def min(self) -> float:
        """The fastest round."""
        return min(self.seconds.values())

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.seconds.values())


def entrants(
    problem: Problem, peers: dict[str, Peer], effort: Effort
) -> tuple[list[Competitor], dict[str, str]]:
    """Return each peer's fastest correct statement, or the reason for which it has none."""
    expected = reference(problem)
    competitors: list[Competitor] = []
    reasons: dict[str, str] = {}
    for name, peer in peers.items():
        best, reason = best_candidate(peer, problem, expected, effort)
        if best is None:
            reasons[name] = reason
        else:
            competitors.append(Competitor(name, *best))
    return competitors, reasons


def best_candidate(
    peer: Peer, problem: Problem, expected: Array, effort: Effort
) -> tuple[tuple[Candidate, float] | None, str]:
    """Return a peer's fastest correct statement with its seconds, or the reason for none."""
    found: list[tuple[Candidate, float]] = []
    reason = "has no statement for it"
    candidates = guarded(peer.candidates(problem))
    for candidate in candidates:
        if isinstance(candidate, str):
            reason = candidate
            continue
        try:
            wrong = check(candidate, problem, expected if peer.checked else None)
            if wrong:
                reason = wrong
            else:
                found.append((candidate, quick_time(candidate, effort)))
        except Exception as error:
            reason = first_line(error)
    return (min(found, key=lambda pair: pair[1]), "") if found else (None, reason)


def guarded(candidates: Iterator[Candidate]) -> Iterator[Candidate | str]:
    """Yield the statements, and finally the reason if the peer raised an error."""
    try:
        yield from candidates
    except CannotDo as reason:
        yield str(reason)
    except Exception as error:  # any exception of a peer is reported as its reason
        yield first_line(error)


def first_line(error: Exception) -> str:
    """Return an error in one short line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:LONGEST_REASON]


def check(candidate: Candidate, problem: Problem, expected: Array | None) -> str:
    """Run a statement once on an output of other values; return the error, or nothing."""
    problem.output_base.fill(77)
    run = timer(candidate).timeit
    run(1)
    if expected is None:
        return ""
    return problem.error(candidate.result() if candidate.result else problem.output, expected)


def timer(candidate: Candidate) -> Timer:
    """Return the compiled loop."""
    return Timer(candidate.statement, globals=candidate.names)


def quick_time(candidate: Candidate, effort: Effort) -> float:
    """Return an estimate of the seconds of one run."""
    run = timer(candidate).timeit
    once = run(1)
    number = turns(once, effort.turn / 4)
    return min(run(number) / number for _ in range(3 if once < effort.cell / 20 else 1))


def turns(estimate: float, seconds: float) -> int:
    """Return the number of runs of `estimate` seconds each that fill `seconds`."""
    return max(1, min(100_000, int(seconds / max(estimate, 1e-8))))


def measure(competitors: list[Competitor], effort: Effort, *, pause: float = 0.0) -> None:
    """Measure all rounds. Each has a random order, as a fixed one leaves warm caches to some.

    `pause` is the number of seconds between turns in which the last turn's threads go to sleep.
    """
    others = [each.estimate for each in competitors if each.name in PEERS]
    limit = HOPELESS * min(others, default=0)
    loops = [
        (each, timer(each.candidate).timeit, turns(each.estimate, effort.turn))
        for each in competitors
    ]
    end = time.perf_counter() + effort.cell
    for turn in range(effort.rounds):
        for each, run, number in random.sample(loops, len(loops)):
            if turn >= effort.few and each.name in PEERS and each.estimate > limit:
                continue
            time.sleep(pause)
            warm_up(run, each.estimate, effort.turn / 4)
            each.seconds[turn] = run(number) / number
        if turn >= effort.few and time.perf_counter() > end:
            break


def warm_up(run: Callable[[int], float], estimate: float, seconds: float) -> None:
    """Run until caches, page tables and threads are in a steady state."""
    run(turns(estimate, seconds))


def paired_ratio(ours: Competitor, peer: Competitor) -> float:
    """Return the median over the rounds of the peer's seconds divided by ours."""
    common = ours.seconds.keys() & peer.seconds.keys()
    return float(np.median([peer.seconds[turn] / ours.seconds[turn] for turn in common]))


def as_json(competitor: Competitor) -> dict[str, Any]:
    """Return a competitor's figures in seconds, and its statement."""
    return {
        "min": competitor.min,
        "median": competitor.median,
        "rounds": len(competitor.seconds),
        "statement": competitor.candidate.statement,
    }
