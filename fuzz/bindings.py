"""Fuzzes the bindings of compiled operators, under the address sanitizer; needs hypothesis.

    python fuzz/bindings.py -max_total_time=SECONDS -artifact_prefix=PREFIX
    python fuzz/bindings.py FILE    run a finding again

The options are libFuzzer's; others are ignored. Each case is written to PREFIX followed by "last"
before it runs, since the sanitizer ends the process; the file stays if there is a finding.
"""

from __future__ import annotations

import pickle
import secrets
import sys
import time
from pathlib import Path

import hypothesis

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from drawn_bindings import Case, cases, check

ROUND = 200  # examples that Hypothesis draws from one seed


def fuzz(seconds: float, last: Path) -> int:
    """Check new cases for a number of seconds; return their number."""
    count, end, seed = 0, time.monotonic() + seconds, secrets.randbits(48)
    while time.monotonic() < end:

        @hypothesis.seed(seed + count)
        @hypothesis.settings(
            database=None,
            deadline=None,
            max_examples=ROUND,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=cases())
        def check_round(case: Case) -> None:
            nonlocal count
            count += 1
            last.write_bytes(pickle.dumps(case))
            check(case)

        check_round()
    last.unlink(missing_ok=True)
    return count


def main() -> None:
    """Parse the command line, and run the fuzzer."""
    options = dict(word.split("=", 1) for word in sys.argv[1:] if word.startswith("-"))
    files = [Path(word) for word in sys.argv[1:] if Path(word).is_file()]
    for file in files:
        case = pickle.loads(file.read_bytes())
        print(case, flush=True)
        check(case)
    if not files:
        last = Path(options.get("-artifact_prefix", "") + "last")
        count = fuzz(float(options.get("-max_total_time", 60)), last)
        print(f"stat::number_of_executed_units: {count}")


if __name__ == "__main__":
    main()
