"""Normalizations and gradients over chunked axes: each sweep over the elements is a sum of blocks.

A stage of the core is a sweep over the blocks of a chunk, given the sums of the previous sweeps, or
the results of a chunk. Operands have the numbers of `kernel.hpp`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dmlops import _core
from dmlops._dask_groups import Array, add_blocks, as_rows, finish, kept_axes
from dmlops._foreign import require_unmasked

_SWEEPS = 2
_OPERANDS, _FIRST_SUM = 12, 10
# By the names of arguments; "scale" of gradients has an element for each group.
_STATISTICS = {"scale": 2, "bias": 3, "fused_add": 4}
_GRADIENTS = {"input_gradient": 2, "mean": 5, "variance": 6, "scale": 7}


def normalize(
    name: str, x: Any, others: dict[str, Any], values: dict[str, Any], reduced: tuple[int, ...]
) -> Any:
    """Return the lazy result, or an array of tuples; `others` are chunked as the input."""
    is_gradient = "input_gradient" in others
    numbers = _GRADIENTS if is_gradient else _STATISTICS
    stage = partial(
        _Stage,
        name,
        math.prod(x.shape[axis] for axis in reduced),
        values["epsilon"],
        _flags(name, others, values, reduced),
        values.get("fused_activation"),
    )
    rows, of_groups = [as_rows(x, reduced)], []
    if is_gradient:
        rows.append(as_rows(others["input_gradient"], reduced).rechunk(rows[0].chunks))
        kept = tuple(x.shape[axis] for axis in kept_axes(x, reduced))
        for key in ("mean", "variance", "scale"):
            of_groups.append(others[key].reshape(kept).rechunk(rows[0].chunks[:-1]))
    sums: list[Any] = []
    width = (3 if is_gradient else 2) * _core.MOMENT_LANES
    for sweep in range(_SWEEPS):
        lanes = partial(_lanes, stage(sweep), is_gradient, width)
        sums.append(add_blocks(lanes, rows, [*of_groups, *sums], width))
    given = [numbers[key] for key in others]
    results = partial(_results, stage(_SWEEPS), given, tuple(others), reduced)
    dtype = x.dtype if name == "mean_variance_normalization" else object
    return finish(results, x, list(others.values()), sums, reduced=reduced, dtype=dtype)


def _flags(
    name: str, others: dict[str, Any], values: dict[str, Any], reduced: tuple[int, ...]
) -> tuple[bool, bool, bool]:
    if "input_gradient" in others:
        return name == "batch_normalization_training_grad", False, False
    per_group = all(others[key].shape[axis] == 1 for key in ("scale", "bias") for axis in reduced)
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

    def run(self, operands: dict[int, Array], reduced: tuple[int, ...]) -> None:
        """Write the outputs or the sums among these operands."""
        given = [operands.get(k) for k in range(_OPERANDS)]
        bits = sum(1 << axis for axis in reduced)
        _core.run_stage(
            self.name,
            self.stage,
            self.elements,
            given,
            bits,
            self.epsilon,
            list(self.flags),
            self.fused_activation,
        )


def _lanes(
    stage: _Stage, is_gradient: bool, width: int, rows: list[Array], known: list[Array]
) -> Array:
    """Return the lanes of each block of a chunk."""
    *groups, length = rows[0].shape
    count = math.prod(groups)
    whole = length // _core.SUM_BLOCK
    parts = []
    for begin, blocks in ((0, whole), (whole * _core.SUM_BLOCK, 1)):
        if begin == length or blocks == 0:
            continue
        end = begin + blocks * _core.SUM_BLOCK
        x, *gradient = (row[..., begin:end].reshape(count, blocks, -1) for row in rows)
        sums = np.zeros((count, blocks, 1, width))
        operands = {0: x, 1: x, _FIRST_SUM + stage.stage: sums}
        if is_gradient:
            operands[_GRADIENTS["input_gradient"]] = gradient[0]
        numbers = [*(list(_GRADIENTS.values())[1:] if is_gradient else []), _FIRST_SUM]
        for number, array in zip(numbers, known, strict=False):
            each = array.reshape(count, 1, 1, -1)
            operands[number] = np.broadcast_to(each, (count, blocks, 1, each.shape[-1]))
        stage.run(operands, (2,))
        parts.append(sums[:, :, 0])
    return np.concatenate(parts, axis=1).reshape(*groups, -1, width)


def _results(
    stage: _Stage,
    numbers: list[int],
    names: tuple[str, ...],
    reduced: tuple[int, ...],
    x: Array,
    *arrays: Array,
) -> Any:
    """Return the results of a chunk of any shape."""
    require_unmasked(stage.name, "input", x)
    *others, first, second = arrays
    for key, array in zip(names, others, strict=True):
        require_unmasked(stage.name, key, array)
    sizes = tuple(1 if axis in reduced else size for axis, size in enumerate(x.shape))
    operands = dict(zip(numbers, others, strict=True))
    outputs = [np.empty(x.shape, x.dtype), *(np.empty(sizes, x.dtype) for _ in range(2))]
    of_groups = {
        "batch_normalization_training": (5, 6),
        "batch_normalization_grad": (8, 9),
        "batch_normalization_training_grad": (8, 9),
    }.get(stage.name, ())
    operands |= {0: outputs[0], 1: x} | dict(zip(of_groups, outputs[1:], strict=False))
    for i, sums in enumerate((first, second)):
        operands[_FIRST_SUM + i] = sums.reshape((*sizes, -1))
    stage.run(operands, reduced)
    return tuple(outputs) if of_groups else outputs[0]
