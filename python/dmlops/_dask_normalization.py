"""Normalizations and gradients over chunked axes: each sweep over the elements is a sum of blocks.

A stage of the core is a sweep over the blocks of a chunk, given the sums of the previous sweeps, or
the results of a chunk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dmlops import _core
from dmlops._dask_groups import Array, add_blocks, as_rows, finish, kept_axes
from dmlops._table import ROWS

_SWEEPS = 2
# The inputs of gradients with an element for each element, and for each group.
_ROWS, _GROUP_INPUTS = ("input", "input_gradient"), ("mean", "variance", "scale")


def normalize(
    name: str, x: Any, others: dict[str, Any], values: dict[str, Any], reduced: tuple[int, ...]
) -> Any:
    """Return the lazy result, or an array of tuples; `others` are chunked as the input."""
    is_gradient = "input_gradient" in others
    stage = partial(
        _Stage,
        name,
        math.prod(x.shape[axis] for axis in reduced),
        values["epsilon"],
        _flags(others, values, reduced),
        values.get("fused_activation"),
    )
    rows, of_groups = [as_rows(x, reduced)], []
    if is_gradient:
        rows.append(as_rows(others["input_gradient"], reduced).rechunk(rows[0].chunks))
        kept = tuple(x.shape[axis] for axis in kept_axes(x, reduced))
        for key in _GROUP_INPUTS:
            of_groups.append(others[key].reshape(kept).rechunk(rows[0].chunks[:-1]))
    sums: list[Any] = []
    width = (3 if is_gradient else 2) * _core.MOMENT_LANES
    for sweep in range(_SWEEPS):
        lanes = partial(_lanes, stage(sweep), width)
        sums.append(add_blocks(lanes, rows, [*of_groups, *sums], width))
    results = partial(_results, stage(_SWEEPS), tuple(others), reduced)
    dtype = x.dtype if name == "mean_variance_normalization" else object
    return finish(results, x, list(others.values()), sums, reduced=reduced, dtype=dtype)


def _flags(
    others: dict[str, Any], values: dict[str, Any], reduced: tuple[int, ...]
) -> tuple[bool, bool, bool]:
    parameters = [others[key] for key in ("scale", "bias") if key in others]
    per_group = all(array.shape[axis] == 1 for array in parameters for axis in reduced)
    return values.get("use_mean", True), values.get("use_variance", True), per_group


# Functions that run in the workers


@dataclass(frozen=True)
class _Stage:
    """A stage of a reduction, with its parameters."""

    name: str
    elements: int
    epsilon: float
    flags: tuple[bool, bool, bool]
    fused_activation: Any
    stage: int

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, that of the input's sizes first."""
        return [tensor.parameter for tensor in ROWS[self.name].outputs]

    def run(self, arrays: dict[str, Array], sums: list[Array], reduced: tuple[int, ...]) -> None:
        """Write the outputs or the last of the sums; arrays have the names of arguments."""
        _core.run_stage(
            ROWS[self.name].value,
            self.stage,
            self.elements,
            {f"{name}_tensor": array for name, array in arrays.items()},
            sums,
            sum(1 << axis for axis in reduced),
            self.epsilon,
            list(self.flags),
            self.fused_activation,
        )


def _lanes(stage: _Stage, width: int, rows: list[Array], known: list[Array]) -> Array:
    """Return the lanes of each block of a chunk; `known`: inputs and previous sums of groups."""
    *groups, length = rows[0].shape
    count = math.prod(groups)
    whole = length // _core.SUM_BLOCK
    parts = []
    for begin, blocks in ((0, whole), (whole * _core.SUM_BLOCK, 1)):
        if begin == length or blocks == 0:
            continue
        end = begin + blocks * _core.SUM_BLOCK
        of_blocks = [row[..., begin:end].reshape(count, blocks, -1) for row in rows]
        of_groups = []
        for array in known:
            each = array.reshape(count, 1, 1, -1)
            of_groups.append(np.broadcast_to(each, (count, blocks, 1, each.shape[-1])))
        inputs = len(known) - stage.stage
        arrays = dict(zip(_ROWS, of_blocks, strict=False))
        arrays |= zip(_GROUP_INPUTS, of_groups[:inputs], strict=False)
        sums = np.zeros((count, blocks, 1, width))
        outputs = {stage.outputs[0]: of_blocks[0]}  # not written
        stage.run(arrays | outputs, [*of_groups[inputs:], sums], (2,))
        parts.append(sums[:, :, 0])
    return np.concatenate(parts, axis=1).reshape(*groups, -1, width)


def _results(
    stage: _Stage, names: tuple[str, ...], reduced: tuple[int, ...], x: Array, *arrays: Array
) -> Any:
    """Return the results of a chunk of any shape."""
    inputs = dict(zip(("input", *names), (x, *arrays[:-_SWEEPS]), strict=True))
    sizes = tuple(1 if axis in reduced else size for axis, size in enumerate(x.shape))
    first, *others = stage.outputs
    outputs = {first: np.empty(x.shape, x.dtype)}
    outputs |= {name: np.empty(sizes, x.dtype) for name in others}
    sums = [array.reshape((*sizes, -1)) for array in arrays[-_SWEEPS:]]
    stage.run(inputs | outputs, sums, reduced)
    return tuple(outputs.values()) if others else outputs[first]
