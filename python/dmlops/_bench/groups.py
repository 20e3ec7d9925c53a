"""The groups of cells whose ratios are averaged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from dmlops._bench.cells import FLOATS

Record = dict[str, Any]  # a cell with its figures, as in the JSON file

TINY = ("c1", "c1k")
IN_CACHE = ("c64k", "c1m")
LARGE = ("c16m", "nhwc_as_nchw")
ROWS = ("padded_rows", "strided_5d", "bcast_rows")
DENSE_NORMALIZATIONS = ("nchw", "nhwc", "columns")
ONE_AXIS = ("1x1000", "128x1000", "32x32000", "4096x64", "2x50257")
LAYERS = ("layer_4096x768", "layer_128x4096", "layer_32x197x1024")
TRAINING = (
    "batch_normalization_training",
    "batch_normalization_grad",
    "batch_normalization_training_grad",
)
PAIRS = ("parameterized_relu", "relu_grad", "clip_grad")
WIDE, NARROW = ("f32", "i32", "u32", "i64", "u64"), ("f16", "i8", "u8", "i16", "u16")
FLOAT_TYPES = (("float32", ("f32",)), ("float16", ("f16",)))
WIDTHS = (("32- and 64-bit", WIDE), ("8- and 16-bit", NARROW))
MAPS = ("clip", "hard_sigmoid")
LIMITS = (0.95, 0.8)  # cells with a lower ratio are counted

# Title, operators, data types, layouts.
GROUPS = [
    ("one element and 1,024", MAPS, WIDE + NARROW, TINY),
    *(
        (f"{title}, {width}", MAPS, dtypes, layouts)
        for title, layouts in (
            ("dense, 64K and 1M elements", IN_CACHE),
            ("dense, millions of elements", LARGE),
            ("clip with scale and bias", ("c1m_scale",)),
            ("every second element", ("every2nd",)),
            ("padded rows, 5-D of short rows, broadcast", ROWS),
            ("transposed", ("transpose",)),
            ("channels last to channels first", ("nhwc_to_nchw",)),
            ("8-D, permuted", ("strided_8d",)),
        )
        for width, dtypes in WIDTHS
    ),
    *(
        (f"{title}, {width}", (operator,), dtypes, layouts)
        for operator, title, layouts in (
            ("batch_normalization", "batch normalization, dense", DENSE_NORMALIZATIONS),
            ("batch_normalization", "batch normalization, small images", ("small",)),
            (
                "batch_normalization",
                "batch normalization, per element",
                ("spatial0", "full_params"),
            ),
            ("batch_normalization", "batch normalization and relu", ("nchw_relu", "small_relu")),
            ("log_softmax", "log_softmax, last axis", ONE_AXIS),
            ("log_softmax", "log_softmax, inner axis", ("64x21x64x64_ax1",)),
            ("log_softmax", "log_softmax, two axes", ("64x128x256_ax02",)),
            ("mean_variance_normalization", "layer normalization", LAYERS),
            ("mean_variance_normalization", "RMS normalization", ("rms_4096x768",)),
        )
        for width, dtypes in FLOAT_TYPES
    ),
    *(
        (f"{title}, {width}", operators, dtypes, layouts)
        for title, operators, layouts in (
            ("softmax and hardmax", ("softmax", "hardmax"), ONE_AXIS),
            ("batch normalization, training and gradients", TRAINING, ("nchw",)),
            ("swish and hard_swish", ("swish", "hard_swish"), IN_CACHE),
            ("maps of two tensors", PAIRS, IN_CACHE),
        )
        for width, dtypes in FLOAT_TYPES
    ),
]


def averages(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Yield the figures of all cells, of each operator, of each group."""
    compared = [record for record in records if record["ratio"] is not None]
    yield from average("all cells", compared)
    yield from partition(compared, "operator")
    for title, operators, dtypes, layouts in GROUPS:
        members = [
            record
            for record in compared
            if record["operator"] in operators
            and record["dtype"] in dtypes
            and record["layout"] in layouts
        ]
        yield from average(title, members)


def averages_of_drawn(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Yield the figures of all cells, and by operator, data type and kind of layout."""
    compared = [record for record in records if record["ratio"] is not None]
    yield from average("all cells", compared)
    yield from partition(compared, "operator")
    yield from partition(compared, "dtype")
    floats = [record for record in compared if record["dtype"] in FLOATS]
    yield from partition(floats, "operator", "dtype")
    for kind in sorted({kind for record in compared for kind in record["kinds"]}):
        yield from average(kind, [each for each in compared if kind in each["kinds"]])


def partition(records: list[Record], *keys: str) -> Iterator[dict[str, Any]]:
    """Yield the figures of the records that agree in these entries."""
    for values in sorted({tuple(record[key] for key in keys) for record in records}):
        members = [each for each in records if tuple(each[key] for key in keys) == values]
        yield from average("/".join(values), members)


def average(title: str, records: list[Record]) -> Iterator[dict[str, Any]]:
    """Yield a group's figures, unless it is empty."""
    if records:
        lowest = min(records, key=lambda record: float(record["ratio"]))
        yield {
            "title": title,
            "cells": len(records),
            "ratio": geometric_mean([record["ratio"] for record in records]),
            "roofline": geometric_mean([record["roofline"] for record in records]),
            "below": {str(limit): share_below(limit, records) for limit in LIMITS},
            "lowest": lowest["ratio"],
            "lowest_cell": lowest["name"],
        }


def share_below(limit: float, records: list[Record]) -> float:
    """Return the fraction of the records whose ratio is below a limit."""
    return sum(float(record["ratio"]) < limit for record in records) / len(records)


def geometric_mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
