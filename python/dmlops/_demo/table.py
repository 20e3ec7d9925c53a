"""The demo's table: the steps, their errors against float64, and their times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import dmlops
from dmlops._demo.data import Digits
from dmlops._demo.steps import Result
from dmlops._text import aligned, counted

HEADER = (
    "step", "operator", "dtype", "shape", "layout",
    "max error", "ulp", "dmlops ms", "NumPy ms", "ratio",
)  # fmt: skip
TEXT_COLUMNS = 5  # aligned to the left; numbers are aligned to the right


def render(results: Sequence[Result], digits: Digits) -> str:
    """Return the table, and below it the lines that explain it."""
    rows = [HEADER, *map(cells, results)]
    rule = ["-" * max(map(len, column)) for column in zip(*rows, strict=True)]
    table = aligned([HEADER, rule, *rows[1:]], left=range(TEXT_COLUMNS))
    return "\n".join([table, "", *notes(results[-1], digits)])


def cells(result: Result) -> tuple[str, ...]:
    """Return one row of the table."""
    step = result.step
    return (
        step.title,
        step.operator,
        step.dtype,
        "x".join(map(str, step.input.shape)),
        step.layout,
        f"{result.max_error:.1e}" if result.max_error else "0",
        f"{result.max_ulp:.2f}" if result.max_ulp else "0",
        f"{result.dmlops_seconds * 1e3:.3f}",
        f"{result.numpy_seconds * 1e3:.3f}",
        f"{result.numpy_seconds / result.dmlops_seconds:.1f}",
    )


def notes(classification: Result, digits: Digits) -> list[str]:
    """Return the legend of the columns, and the accuracy of the digits' probabilities."""
    output = classification.step.output
    right = np.mean(output.argmax(-1) == digits.labels)
    threads = dmlops.get_num_threads()
    return [
        "max error  largest absolute difference from the operator's formula in NumPy's float64",
        "ulp        largest difference, in units in the last place of the formula's largest term",
        "ms         minimum of many interleaved calls into preallocated arrays (out=);"
        f" dmlops: {dmlops.isa()}, {counted(threads, 'thread')}",
        "ratio      NumPy's time divided by dmlops' time",
        "",
        f"Digits: {right:.0%} of {len(output)} test digits classified correctly; largest difference"
        f" from the classifier's predict_log_proba: {digits.difference(output):.1e}",
    ]
