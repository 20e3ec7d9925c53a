"""The demo's computation: each operator beside NumPy, with the error against float64 and the time.

Every step has four forms: dmlops; the fastest known NumPy code, which writes into preallocated
arrays; the operator's formula in float64; and the largest term of the formula, whose ulp is the
unit of the error bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

import dmlops
from dmlops._demo.data import Array

SECONDS_PER_STEP = 0.4  # spent on timing, both competitors together


@dataclass(frozen=True)
class Step:
    """One use of an operator, ready to run."""

    title: str
    operator: str
    call: str  # the call, as the picture shows it
    layout: str
    input: Array
    output: Array  # where `dmlops` writes
    dmlops: Callable[[], object]
    numpy: Callable[[], object]
    numpy_output: Array
    exact: Array  # float64
    largest_term: Array  # float64
    promised_ulp: float

    @property
    def dtype(self) -> str:
        """The data type of the input and the output."""
        return str(self.input.dtype)


@dataclass(frozen=True)
class Result:
    """The result of a step: errors, and the shortest time of each competitor in seconds."""

    step: Step
    max_error: float
    max_ulp: float
    dmlops_seconds: float
    numpy_seconds: float

    @property
    def accurate(self) -> bool:
        """True if the error is within the promised bound."""
        return self.max_ulp <= self.step.promised_ulp


def channels_first(photograph: Array) -> Array:
    """Return height x width x channels as 1 x channels x height x width: a view, no copy."""
    return photograph.transpose(2, 0, 1)[np.newaxis]


def normalization(photograph: Array, dtype: str) -> Step:
    """Normalize every color channel to the same mean and spread: batch_normalization."""
    pixels = (photograph / 255).astype(dtype)
    output = np.empty_like(pixels)
    x, y = channels_first(pixels), channels_first(output)
    mean = x.mean((0, 2, 3), dtype=np.float64, keepdims=True).astype(dtype)
    variance = x.var((0, 2, 3), dtype=np.float64, keepdims=True).astype(dtype)
    scale = np.full_like(mean, 0.2)  # mean 0.5 and spread 0.2: a range that can be shown
    bias = np.full_like(mean, 0.5)
    epsilon = float(np.float32(1e-5))

    deviation = np.sqrt(variance.astype(np.float64) + epsilon)
    scaled = scale.astype(np.float64) * ((x - mean.astype(np.float64)) / deviation)
    exact = scaled + bias

    # Fastest in NumPy: one multiply-add in float32 over whole rows of interleaved channels.
    width = photograph.shape[1]
    factor = scale.astype(np.float64) / deviation
    row_factor = np.tile(factor.astype(np.float32).ravel(), width)
    row_offset = np.tile((bias - mean * factor).astype(np.float32).ravel(), width)
    rows = pixels.reshape(len(pixels), -1)
    numpy_output = np.empty_like(rows)
    work = numpy_output if dtype == "float32" else np.empty(rows.shape, np.float32)

    def by_numpy() -> None:
        np.multiply(rows, row_factor, out=work)
        np.add(work, row_offset, out=work)
        if work is not numpy_output:
            np.copyto(numpy_output, work)

    return Step(
        title="normalize flower",
        operator="batch_normalization",
        call="batch_normalization(x, mean, variance, scale=0.2, bias=0.5)",
        layout="channels-last",
        input=x,
        output=y,
        dmlops=lambda: dmlops.batch_normalization(x, mean, variance, scale, bias, out=y),
        numpy=by_numpy,
        numpy_output=channels_first(numpy_output.reshape(pixels.shape)),
        exact=exact,
        largest_term=np.maximum(np.abs(scaled), np.maximum(np.abs(bias), np.abs(exact))),
        promised_ulp=2,
    )


def tone_curve(photograph: Array, alpha: float = 1.25, beta: float = -0.2) -> Step:
    """Increase the contrast of the middle tones, and saturate the others: hard_sigmoid."""
    x = (photograph / 255).astype(np.float32)
    y, numpy_output = np.empty_like(x), np.empty_like(x)
    slope, offset = np.float32(alpha), np.float32(beta)

    def by_numpy() -> None:
        np.multiply(x, slope, out=numpy_output)
        np.add(numpy_output, offset, out=numpy_output)
        np.clip(numpy_output, 0, 1, out=numpy_output)

    exact = np.clip(x * np.float64(slope) + np.float64(offset), 0, 1)
    return Step(
        title="tone curve",
        operator="hard_sigmoid",
        call=f"hard_sigmoid(x, alpha={alpha}, beta={beta})",
        layout="contiguous",
        input=x,
        output=y,
        dmlops=lambda: dmlops.hard_sigmoid(x, alpha, beta, out=y),
        numpy=by_numpy,
        numpy_output=numpy_output,
        exact=exact,
        largest_term=exact,
        promised_ulp=1,
    )


def contrast_stretch(photograph: Array) -> Step:
    """Stretch the range of values to 0 to 255: clip with scale and bias, on bytes."""
    darkest, brightest = np.percentile(photograph, (0.5, 99.5))
    scale = round(255 / (brightest - darkest), 3)
    bias = round(-darkest * scale, 1)
    stretch = dmlops.ScaleBias(scale, bias)
    output = np.empty(photograph.shape, np.uint8)

    # Both products are exact in float64: 8 bits times 24 bits.
    values = np.arange(256) * np.float64(np.float32(scale)) + np.float64(np.float32(bias))
    table = np.clip(np.trunc(values), 0, 255)
    bytes_table = table.astype(np.uint8)
    numpy_output = np.empty_like(output)
    return Step(
        title="stretch contrast",
        operator="clip",
        call=f"clip(x, 0, 255, scale_bias=ScaleBias({scale}, {bias}))",
        layout="cropped",
        input=photograph,
        output=output,
        dmlops=lambda: dmlops.clip(photograph, 0, 255, scale_bias=stretch, out=output),
        numpy=lambda: np.take(bytes_table, photograph, out=numpy_output, mode="clip"),
        numpy_output=numpy_output,
        exact=table[photograph],
        largest_term=table[photograph],
        promised_ulp=0,
    )


def probabilities(logits: Array) -> Step:
    """Turn the scores of a classifier into probabilities: softmax."""
    output, numpy_output = np.empty_like(logits), np.empty_like(logits)
    column = np.empty((len(logits), 1), logits.dtype)

    def by_numpy() -> None:
        np.max(logits, axis=-1, keepdims=True, out=column)
        np.subtract(logits, column, out=numpy_output)
        np.exp(numpy_output, out=numpy_output)
        np.sum(numpy_output, axis=-1, keepdims=True, out=column)
        np.divide(numpy_output, column, out=numpy_output)

    terms = np.exp(logits - logits.max(-1, keepdims=True).astype(np.float64))
    exact = terms / terms.sum(-1, keepdims=True)
    return Step(
        title="classify digits",
        operator="softmax",
        call="softmax(logits, axes=-1)",
        layout="contiguous",
        input=logits,
        output=output,
        dmlops=lambda: dmlops.softmax(logits, -1, out=output),
        numpy=by_numpy,
        numpy_output=numpy_output,
        exact=exact,
        largest_term=exact,
        promised_ulp=2,
    )


def log_probabilities(logits: Array) -> Step:
    """Turn the scores of a classifier into logarithms of probabilities: log_softmax."""
    output, numpy_output = np.empty_like(logits), np.empty_like(logits)
    work = np.empty_like(logits)
    column = np.empty((len(logits), 1), logits.dtype)

    def by_numpy() -> None:
        np.max(logits, axis=-1, keepdims=True, out=column)
        np.subtract(logits, column, out=numpy_output)
        np.exp(numpy_output, out=work)
        np.sum(work, axis=-1, keepdims=True, out=column)
        np.log(column, out=column)
        np.subtract(numpy_output, column, out=numpy_output)

    shifted = logits - logits.max(-1, keepdims=True).astype(np.float64)
    log_sum = np.log(np.exp(shifted).sum(-1, keepdims=True))
    return Step(
        title="log-probabilities",
        operator="log_softmax",
        call="log_softmax(logits, axes=-1)",
        layout="contiguous",
        input=logits,
        output=output,
        dmlops=lambda: dmlops.log_softmax(logits, -1, out=output),
        numpy=by_numpy,
        numpy_output=numpy_output,
        exact=shifted - log_sum,
        largest_term=np.maximum(np.abs(shifted), log_sum),
        promised_ulp=8,  # where one class dominates; 2 elsewhere
    )


def measure(step: Step) -> Result:
    """Time a step in dmlops and in NumPy, and compare the results with float64."""
    step.dmlops()
    step.numpy()
    dmlops_seconds, numpy_seconds = shortest_times(step.dmlops, step.numpy, SECONDS_PER_STEP)
    error, ulp = errors(step, step.output)
    return Result(step, error, ulp, dmlops_seconds, numpy_seconds)


def errors(step: Step, output: Array) -> tuple[float, float]:
    """Return the largest error of ``output``, absolute and in ulp of the largest term."""
    error = np.abs(output - step.exact)
    if output.dtype.kind in "iu":
        return float(error.max()), float(error.max())
    ulp = np.spacing(step.largest_term.astype(output.dtype)).astype(np.float64)
    return float(error.max()), float((error / ulp).max())


def shortest_times(
    first: Callable[[], object], second: Callable[[], object], seconds: float
) -> tuple[float, float]:
    """Time two functions in turns, each round in the other order, and return their minima."""
    shortest = {first: np.inf, second: np.inf}
    order = [first, second]
    end = perf_counter() + seconds
    while perf_counter() < end:
        for function in order:
            start = perf_counter()
            function()
            shortest[function] = min(shortest[function], perf_counter() - start)
        order.reverse()
    return shortest[first], shortest[second]
