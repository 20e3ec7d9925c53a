"""Errors in units in the last place: of each competitor, on each row's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dmlops._accuracy.exact import Array
from dmlops._accuracy.peers import OURS
from dmlops._accuracy.rows import EXACT, Row

MEASURED = 1e-6  # ulp by which the exact results themselves may be off


@dataclass(frozen=True)
class Worst:
    """The largest error and its element; infinite if a number was expected and NaN computed."""

    ulp: float
    where: str
    got: float
    exact: float


@dataclass(frozen=True)
class Line:
    """A row with each competitor's worst result, or the reason for its absence."""

    row: Row
    count: int
    worst: Mapping[str, Worst]
    missing: Mapping[str, str]

    @property
    def allowed(self) -> float:
        """The promised bound in the row's data type; float16 results are rounded from float32."""
        if self.row.dtype == "float32" or self.row.bound == 0:
            return self.row.bound
        return EXACT + self.row.bound * 2.0**-13

    @property
    def kept(self) -> bool:
        """True if dmlops keeps its promised bound."""
        return self.worst[OURS].ulp <= self.allowed + MEASURED

    @property
    def best_peer(self) -> float:
        """The smallest of the peers' largest errors."""
        return min((w.ulp for name, w in self.worst.items() if name != OURS), default=np.inf)

    @property
    def ahead(self) -> bool:
        """True if no peer is more accurate, in the two decimals that are shown."""
        return round(self.worst[OURS].ulp, 2) <= round(self.best_peer, 2)


def measure(row: Row, competitors: Mapping[str, Any], count: int) -> Line:
    """Return each competitor's largest error on about `count` elements."""
    inputs = row.inputs_of(count)
    exact, magnitude = row.exact(inputs)
    worst: dict[str, Worst] = {}
    missing: dict[str, str] = {}
    for name, competitor in competitors.items():
        try:
            result = competitor(row.operator, [x.copy() for x in inputs], row.parameters)
        except KeyError:
            missing[name] = "not compared"
        except Exception as error:
            if name == OURS:
                raise
            # any exception of a peer is its reason
            missing[name] = str(error).strip().splitlines()[0]
        else:
            if isinstance(result, tuple):
                result = result[row.output]
            worst[name] = largest(result, exact, magnitude, inputs[0])
    return Line(row, exact.size, worst, missing)


def largest(result: Array, exact: Array, magnitude: Array, x: Array) -> Worst:
    """Return the largest error of a result; elements whose exact result is NaN are left out."""
    error = np.where(np.isnan(exact), 0, errors(result, exact, magnitude))
    place = int(error.argmax())
    index = np.unravel_index(place, error.shape)
    where = ", ".join(str(int(i)) for i in index)
    where = f"[{where}], input {float(x.flat[place])!r}"
    return Worst(float(error.flat[place]), where, float(result.flat[place]), float(exact[index]))


def errors(result: Array, exact: Array, magnitude: Array) -> Array:
    """Return |result - exact| in the ulp of the magnitude, infinite where the result is NaN.

    Infinity counts as the next number after the largest, so that overflow is right where the exact
    result is as large, and almost right just below.
    """
    unit = ulp(magnitude, result.dtype)
    end = np.longdouble(2) ** int(np.finfo(result.dtype).maxexp)
    with np.errstate(invalid="ignore"):
        distance = np.abs(
            np.clip(result.astype(np.longdouble), -end, end) - np.clip(exact, -end, end)
        )
        return np.asarray(np.where(np.isnan(distance), np.inf, distance / unit))


def ulp(magnitude: Array, dtype: npt.DTypeLike) -> Array:
    """Return the distance between adjacent numbers of the type at a magnitude."""
    info = np.finfo(dtype)
    positive = np.where(
        magnitude > 0, np.minimum(magnitude, np.longdouble(info.max)), np.longdouble(info.tiny)
    )
    exponent = np.maximum(np.frexp(positive)[1] - 1, int(info.minexp))
    return np.asarray(np.ldexp(np.longdouble(1), exponent - int(info.nmant)))
