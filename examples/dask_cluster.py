"""Processes an array that no worker can hold; one of the worker processes is killed midway.

    python examples/dask_cluster.py --output docs/_static/dask_cluster.png

Normalizes the array and takes log_softmax over all of it as one group, block by block, and compares
each block's bits with the result of one process. Needs `dmlops[dask]`, distributed and matplotlib.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.distributed import Client, LocalCluster
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import dmlops

MEBI = 1 << 20
EPOCH = time.time()

Array = npt.NDArray[Any]


def say(text: str) -> None:
    """Print a line of the log, with the seconds since the start."""
    print(f"{time.time() - EPOCH:6.1f} s  {text}", flush=True)


def values(first: int, shape: tuple[int, ...], columns: int) -> Array:
    """Return a range of a table of numbers from -8 to 8, from its element `first` on."""
    rows = np.uint64(first) + np.arange(shape[0], dtype=np.uint64)[:, None] * np.uint64(columns)
    index = rows + np.arange(shape[1], dtype=np.uint64)
    mixed = np.right_shift(index * np.uint64(0x9E3779B97F4A7C15), np.uint64(40))
    scaled: Array = mixed.astype(np.float32) * np.float32(2**-20) - np.float32(8)
    return scaled


def block_of_values(columns: int, block_info: Any = None) -> Array:
    """Return a block of the table; runs in the worker that needs it."""
    (top, bottom), (left, right) = block_info[None]["array-location"]
    return values(top * columns + left, (bottom - top, right - left), columns)


def compute(x: Any, channels: tuple[Array, ...]) -> Any:
    """Return the result; the same code for a dask array and for a NumPy array."""
    leaky_relu = dmlops.ActivationLeakyReluOperatorDesc(alpha=0.1)
    normal = dmlops.batch_normalization(x, *channels, fused_activation=leaky_relu)
    return dmlops.log_softmax(normal, axes=(0, 1))


def digest(block: Array) -> Array:
    """Return the first 8 bytes of the block's SHA-256, as one number."""
    found = hashlib.sha256(np.ascontiguousarray(block).tobytes()).digest()[:8]
    return np.frombuffer(found, np.uint64).reshape(1, 1)


def dying_digest(block: Array, marker: str = "", block_info: Any = None) -> Array:
    """Return the digest, but kill the first worker that computes that of the middle block."""
    middle = tuple(count // 2 for count in block_info[0]["num-chunks"])
    if block_info[0]["chunk-location"] == middle:
        try:
            with Path(marker).open("x", encoding="utf-8") as file:
                file.write(f"{os.getpid()} {time.time()}")
        except FileExistsError:
            return digest(block)
        os.kill(os.getpid(), signal.SIGKILL)
    return digest(block)


@contextmanager
def cluster(workers: int, memory: int) -> Iterator[Client]:
    """Start worker processes, one thread and `memory` bytes each."""
    options = {
        # Results lost with a worker are recomputed, so the same task may lose several workers.
        "distributed.scheduler.allowed-failures": 10,
        # Peer-to-peer rechunking fails (P2PConsistencyError) if workers die in quick succession.
        "array.rechunk.method": "tasks",
    }
    with (
        dask.config.set(options),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=memory,
            dashboard_address=None,
        ) as processes,
        Client(processes) as client,
    ):
        yield client


def run(workers: int, memory: int, shape: tuple[int, int], blocks: tuple[int, int]) -> Any:
    """Compute on the cluster and in one process; return the picture's data, or None."""
    rows, columns = shape
    channels = tuple(
        np.linspace(low, high, rows, dtype=np.float32)[:, None]
        for low, high in ((-1, 1), (0.5, 2), (1, 3), (-2, 2))
    )
    x = da.map_blocks(
        block_of_values,
        columns,
        chunks=da.core.normalize_chunks(blocks, shape),
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )
    say(f"array: {rows} x {columns} float32, {x.nbytes / MEBI:.0f} MiB in {x.npartitions} blocks")
    with cluster(workers, memory) as client, tempfile.TemporaryDirectory() as folder:
        say(f"cluster: {workers} processes, {memory / MEBI:.0f} MiB each")
        client.get_task_stream()  # from now on
        marker = Path(folder) / "killed"
        lazy = compute(x, channels)
        found = lazy.map_blocks(dying_digest, marker=str(marker), chunks=(1, 1), dtype=np.uint64)
        begin = time.time()
        actual = client.compute(found).result()
        end = time.time()
        pid, killed = marker.read_text(encoding="utf-8").split()
        say(f"killed: process {pid}, {float(killed) - begin:.1f} s after the start of the work")
        say(f"done: {end - begin:.1f} s of work")
        tasks = client.get_task_stream()
    expected = compute(values(0, shape, columns), channels)
    wrong = 0
    for index in np.ndindex(*actual.shape):
        location = tuple(
            slice(sum(sizes[:i]), sum(sizes[: i + 1]))
            for i, sizes in zip(index, lazy.chunks, strict=True)
        )
        wrong += int(digest(expected[location])[0, 0] != actual[index])
    say(f"compared with one process: {actual.size - wrong} of {actual.size} blocks the same bits")
    return None if wrong else (tasks, begin, float(killed))


KINDS = {  # kinds of tasks and their colors, by the first text that the task's name contains
    "transfer": ("transfer", "#bbbbbb"),
    "dying": ("finish and digest", "#c44e52"),
    "lanes-of-blocks": ("sums of blocks", "#55a868"),
    "sums-of-groups": ("sum of blocks", "#9fd39f"),
    "max": ("maximum", "#dd8452"),
    "batch_normalization": ("make and normalize", "#4c72b0"),
    "": ("rearrange", "#937860"),
}


def kind_of(task: dict[str, Any], part: dict[str, Any]) -> tuple[str, str]:
    """Return the name and the color of a phase of a task."""
    name = f"{part['action']} {task['key']}"
    return next(kind for text, kind in KINDS.items() if text in name)


def draw(tasks: list[dict[str, Any]], begin: float, killed: float, path: Path) -> None:
    """Draw the timeline of each worker."""
    first: dict[str, float] = {}
    spans: dict[tuple[str, tuple[str, str]], list[tuple[float, float]]] = {}
    for task in tasks:
        worker = str(task["worker"])
        for part in task["startstops"]:
            first[worker] = min(first.get(worker, part["start"]), part["start"])
            span = (part["start"] - begin, part["stop"] - part["start"])
            spans.setdefault((worker, kind_of(task, part)), []).append(span)
    rows = {worker: row for row, worker in enumerate(sorted(first, key=lambda w: first[w]))}
    figure = Figure(figsize=(9, 0.55 * len(rows) + 1.6), layout="constrained")
    axes = figure.subplots()
    for (worker, (_, color)), times in spans.items():
        axes.broken_barh(times, (rows[worker] - 0.4, 0.8), facecolors=color, rasterized=True)
    axes.axvline(killed - begin, color="black", linestyle="--")
    axes.set_yticks(list(rows.values()), [f"process {row + 1}" for row in rows.values()])
    axes.invert_yaxis()
    axes.set_xlabel("seconds; at the dashed line one process is killed, another takes its place")
    kinds = dict.fromkeys(kind for _, kind in spans)
    handles = [Patch(color=color, label=label) for label, color in kinds]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=8)
    figure.savefig(path, dpi=120)


def main() -> int:
    """Parse the command line, and run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--columns", type=int, default=262_144)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--memory", type=int, default=448, help="MiB for each worker")
    parser.add_argument("--output", type=Path, help="where the picture goes")
    options = parser.parse_args()
    block = (max(1, options.rows // 16), max(1, options.columns // 8))
    memory = options.memory * MEBI
    found = run(options.workers, memory, (options.rows, options.columns), block)
    if found is None:
        return 1
    if options.output is not None:
        tasks, begin, killed = found
        draw(tasks, begin, killed, options.output)
        say(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
