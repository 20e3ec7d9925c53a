"""Panels of the demo's picture: text, photographs, histograms, curves, digits.

Positions are in inches from the figure's upper left corner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dmlops._demo.data import Array

INK, QUIET, FRAME = "#1a1a1a", "#5f6368", "#c4c7cc"
RED, GREEN, BLUE = "#c8553d", "#3d8b5f", "#3b6fb6"
MONOSPACE = "DejaVu Sans Mono"
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.labelcolor": QUIET,
    "axes.edgecolor": FRAME,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}


def text(figure: Figure, left: float, top: float, words: str, **style: Any) -> None:
    """Write words whose first line stands on ``top``."""
    width, height = figure.get_size_inches()
    figure.text(left / width, 1 - top / height, words, va="baseline", **style)


def axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Return new axes with their upper left corner at (``left``, ``top``)."""
    figure_width, figure_height = figure.get_size_inches()
    return figure.add_axes(
        (
            left / figure_width,
            1 - (top + height) / figure_height,
            width / figure_width,
            height / figure_height,
        )
    )


def photograph(panel: Axes, pixels: Array, words: str) -> None:
    """Show height x width x 3: bytes, or floats of which 0 to 1 can be shown."""
    if pixels.dtype != np.uint8:
        pixels = np.clip(pixels.astype(np.float32), 0, 1)
    panel.imshow(pixels, aspect="auto", interpolation="lanczos")
    panel.set_axis_off()
    panel.set_title(words)


def histogram(panel: Axes, pixels: Array, low: float, high: float, words: str) -> None:
    """Show how often each value occurs in each color channel of height x width x 3."""
    edges = np.linspace(low, high, 65)
    counts = [np.histogram(pixels[..., channel], edges)[0] for channel in range(3)]
    for count, color in zip(counts, (RED, GREEN, BLUE), strict=True):
        panel.stairs(count, edges, fill=True, color=color, alpha=0.18)
        panel.stairs(count, edges, color=color, linewidth=1.2)
    # Clips peaks, such as saturated black, which would flatten the other bars.
    panel.set(xlim=(low, high), ylim=(0, 1.6 * np.percentile(counts, 90)), yticks=[])
    panel.spines["left"].set_visible(False)
    panel.set_title(words)


def value_range(*images: Array) -> tuple[float, float]:
    """Return the range of an axis for black to white and nearly all values beyond."""
    lowest, highest = np.percentile(np.stack(images), (0.1, 99.9))
    return min(0.0, float(lowest)), max(float(full_scale(images[0])), float(highest))


def curve(panel: Axes, before: Array, after: Array, words: str) -> None:
    """Show the mapping from input to output values, sampled from the data."""
    values, first = np.unique(before, return_index=True)
    white = full_scale(before)
    panel.plot((0, white), (0, white), color=FRAME, linestyle="--", linewidth=1.2)
    panel.plot(values, after.ravel()[first], color=INK, linewidth=2)
    panel.set(xlim=(0, white), ylim=(-0.02 * white, 1.02 * white), xlabel="before", ylabel="after")
    panel.set_title(words)


def full_scale(pixels: Array) -> int:
    """Return the value that stands for white."""
    return 255 if pixels.dtype == np.uint8 else 1


def digit(panel: Axes, pixels: Array, words: str) -> None:
    """Show a handwritten digit."""
    panel.imshow(pixels, cmap="gray_r", interpolation="nearest")
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(True)
    panel.set_title(words, loc="center")


def probabilities(panel: Axes, values: Array, label: int, answer: int, words: str) -> None:
    """Show the probability of each class: green is the true one, red a wrong answer."""
    colors = [FRAME] * len(values)
    colors[answer] = RED
    colors[label] = GREEN
    panel.bar(range(len(values)), values, color=colors)
    panel.set(xticks=range(len(values)), ylim=(0, 1), yticks=[])
    panel.tick_params(length=0)
    panel.spines["left"].set_visible(False)
    panel.set_title(words, loc="center")
