"""The demo's picture: photographs before and after, and the classification of some digits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import dmlops
from dmlops._demo import panels
from dmlops._demo.data import Array, Digits
from dmlops._demo.steps import Result
from dmlops._picture import save

# All lengths are in inches; at 100 dots per inch the picture is 1600 dots wide.
WIDTH, HEIGHT = 16.0, 16.45
MARGIN, GAP = 0.45, 0.35
COLUMN = (WIDTH - 2 * MARGIN - 3 * GAP) / 4
PHOTO = COLUMN * 427 / 640  # the height of a photograph that is as wide as a column
HEADING = 0.98  # from the top of a row to the top of its panels
TOP, ROW = 1.15, HEADING + PHOTO + 0.32
TICKS = 0.5  # room for the labels of an axis
DIGITS = 8


def write(path: Path, results: Sequence[Result], digits: Digits) -> None:
    """Write the picture."""
    save(path, lambda: draw(results, digits), panels.STYLE)


def draw(results: Sequence[Result], digits: Digits) -> Figure:
    """Return the picture of all steps, given in the order in which the demo runs them."""
    float32, float16, tone, stretch, *classification = results
    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=100, facecolor="white")
    title(figure)
    normalization_row(figure, 0, float32, float16)
    mapping_row(
        figure,
        1,
        tone,
        "Tone curve",
        "More contrast in the midtones; shadows and highlights are saturated.",
    )
    mapping_row(
        figure,
        2,
        stretch,
        "Contrast stretch in 8 bits",
        "A slice of the photograph, as a view: few values are stretched to 0 to 255.",
    )
    digits_row(figure, 3, classification, digits)
    return figure


def title(figure: Figure) -> None:
    """Write the picture's title."""
    panels.text(
        figure, MARGIN, 0.6, "Five DirectML operators on the CPU", fontsize=22, weight="bold"
    )
    words = (
        "Photographs and handwritten digits from scikit-learn, computed by dmlops"
        f" {dmlops.__version__} (instruction set: {dmlops.isa()})."
        " Errors: against NumPy in float64, in units in the last place (ulp)."
    )
    panels.text(figure, MARGIN, 0.92, words, fontsize=11.5, color=panels.QUIET)


def heading(figure: Figure, row: int, words: str, explanation: str, call: str) -> float:
    """Write a row's caption and the call that it shows; return the top of its panels."""
    top = TOP + row * ROW
    panels.text(figure, MARGIN, top + 0.3, words, fontsize=14, weight="bold")
    panels.text(figure, MARGIN, top + 0.56, explanation, fontsize=11.5, color=panels.QUIET)
    panels.text(
        figure, WIDTH - MARGIN, top + 0.3, call, fontsize=11, family=panels.MONOSPACE, ha="right"
    )
    return top + HEADING


def normalization_row(figure: Figure, row: int, float32: Result, float16: Result) -> None:
    """Draw the photograph before, after in both data types, and its histograms."""
    top = heading(
        figure,
        row,
        "Normalization of each color channel",
        "Each channel gets mean 0.5 and standard deviation 0.2, which removes the color cast."
        f" The pixels stay interleaved. {error(float32, float16)}",
        float32.step.call,
    )
    before, after = channels_last(float32.step.input), channels_last(float32.step.output)
    photograph(figure, 0, top, before, "before")
    photograph(figure, 1, top, after, "after, float32")
    photograph(figure, 2, top, channels_last(float16.step.output), "after, float16")
    histograms(figure, top, before, after)


def mapping_row(figure: Figure, row: int, result: Result, words: str, explanation: str) -> None:
    """Draw an elementwise operator, with the curve of its function."""
    step = result.step
    top = heading(figure, row, words, f"{explanation} {error(result)}", step.call)
    photograph(figure, 0, top, step.input, "before")
    photograph(figure, 1, top, step.output, f"after, {step.dtype}")
    left = MARGIN + 2 * (COLUMN + GAP) + TICKS
    panel = panels.axes(figure, left, top, COLUMN - TICKS, PHOTO - TICKS)
    panels.curve(panel, step.input, step.output, "each value, before and after")
    histograms(figure, top, step.input, step.output)


def digits_row(figure: Figure, row: int, results: Sequence[Result], digits: Digits) -> None:
    """Draw some digits with the probability of each class."""
    errors = ", ".join(f"{each.max_ulp:.2g} ulp ({each.step.operator})" for each in results)
    top = heading(
        figure,
        row,
        "Probabilities of handwritten digits",
        "Left: the four most confident classifications. Right: the four least confident."
        f" Green: the true class; red: a wrong answer. Largest error: {errors}.",
        ", ".join(each.step.call for each in results),
    )
    probabilities, log_probabilities = (each.step.output for each in results)
    width = (WIDTH - 2 * MARGIN - (DIGITS - 1) * GAP) / DIGITS
    for column, index in enumerate(most_and_least_confident(log_probabilities, DIGITS)):
        left = MARGIN + column * (width + GAP)
        label, answer = int(digits.labels[index]), int(log_probabilities[index].argmax())
        image = panels.axes(figure, left + (width - 1.1) / 2, top, 1.1, 1.1)
        panels.digit(image, digits.images[index], f"written: {label}")
        bars = panels.axes(figure, left, top + 1.7, width, 1.1)
        words = f"{answer}: {probabilities[index, answer]:.1%}"
        words += f"\nlog p = {log_probabilities[index, answer]:.3f}"
        panels.probabilities(bars, probabilities[index], label, answer, words)


def error(*results: Result) -> str:
    """Return a sentence with the largest error of each result."""
    if not any(result.max_ulp for result in results):
        return "No error."
    errors = (f"{result.max_ulp:.2g} ulp ({result.step.dtype})" for result in results)
    return f"Largest error: {', '.join(errors)}."


def photograph(figure: Figure, column: int, top: float, pixels: Array, words: str) -> None:
    """Show a photograph in one of the columns."""
    left = MARGIN + column * (COLUMN + GAP)
    panels.photograph(panels.axes(figure, left, top, COLUMN, PHOTO), pixels, words)


def histograms(figure: Figure, top: float, before: Array, after: Array) -> None:
    """Show the histograms before and after, one above the other, in the last column."""
    left = MARGIN + 3 * (COLUMN + GAP)
    height = (PHOTO - 1.5 * TICKS) / 2
    low, high = panels.value_range(before, after)
    upper = panels.axes(figure, left, top, COLUMN, height)
    panels.histogram(upper, before, low, high, "red, green and blue before")
    lower = panels.axes(figure, left, top + PHOTO / 2 + TICKS / 4, COLUMN, height)
    panels.histogram(lower, after, low, high, "after")


def channels_last(view: Array) -> Array:
    """Undo ``steps.channels_first``."""
    return np.moveaxis(view[0], 0, -1)


def most_and_least_confident(log_probabilities: Array, count: int) -> list[int]:
    """Return the most confident rows, of distinct classes, then the least confident rows."""
    answers = log_probabilities.argmax(-1)
    order = np.argsort(-log_probabilities.max(-1), kind="stable")
    _, first_of_class = np.unique(answers[order], return_index=True)
    confident = order[np.sort(first_of_class)[: count // 2]]
    return [*confident.tolist(), *order[-(count - count // 2) :].tolist()]
