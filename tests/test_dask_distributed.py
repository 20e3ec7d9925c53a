"""A cluster of worker processes: an array that no worker can hold, one worker killed midway."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from subprocesses import python

EXAMPLE = Path(__file__).parents[1] / "examples" / "dask_cluster.py"

pytest.importorskip("distributed")
pytest.importorskip("matplotlib")


@pytest.mark.skipif(sys.platform == "win32", reason="the example kills its worker by a signal")
@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not installed")
def test_the_example(tmp_path: Path) -> None:
    """Run the example, which fails unless every block has the bits that one process computes."""
    picture = tmp_path / "dask_cluster.png"
    result = python(str(EXAMPLE), "--output", str(picture))
    assert result.returncode == 0, result.stdout + result.stderr
    (array,) = re.findall(r"(\d+) MiB in \d+ blocks", result.stdout)
    (worker,) = re.findall(r"(\d+) MiB each", result.stdout)
    assert int(array) > int(worker)
    assert "killed: process" in result.stdout
    assert re.search(r"(\d+) of \1 blocks the same bits", result.stdout)
    assert picture.stat().st_size > 1000
