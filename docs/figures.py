"""The figures of the operators' pages, drawn from results of dmlops."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import dmlops

# Colors that can be seen on white and on black.
STRONG = ("#d6322d", "#3b82c4", "#2f9e63")
GRAY = "#808080"
STYLE = {
    "figure.figsize": (6.4, 3.2), "figure.constrained_layout.use": True,
    "savefig.transparent": True, "svg.fonttype": "none", "font.family": "sans-serif",
    "font.sans-serif": ["Arial", "Helvetica", "DejaVu Sans"], "font.size": 10,
    "axes.edgecolor": GRAY, "axes.labelcolor": GRAY, "axes.titlecolor": GRAY,
    "xtick.color": GRAY, "ytick.color": GRAY, "text.color": GRAY, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "grid.color": GRAY, "grid.alpha": 0.25,
    "axes.grid": True,
}  # fmt: skip

# Parameters of the curves that are drawn beside the defaults, to show their effect.
VARIATIONS: dict[str, list[dict[str, Any]]] = {
    "celu": [{"alpha": 0.5}, {"alpha": 2}],
    "clip": [{"min": -1, "max": 2}, {"max": 1}, {"scale_bias": dmlops.ScaleBias(0.5, 1), "min": 0}],
    "elu": [{"alpha": 0.5}, {"alpha": 2}],
    "hard_sigmoid": [{"alpha": 1 / 6}, {"alpha": 0.5, "beta": 0.25}],
    "hard_swish": [{"alpha": 0.5}, {"beta": 0.25}],
    "leaky_relu": [{"alpha": 0.1}, {"alpha": 0.3}],
    "linear": [{"alpha": 0.5, "beta": 1}, {"alpha": -1}],
    "parametric_softplus": [{"alpha": 0.5}, {"beta": 2}],
    "scaled_elu": [{"alpha": 1, "gamma": 1}],
    "scaled_tanh": [{"alpha": 2}, {"beta": 2}],
    "shrink": [{"bias": 0.5}, {"bias": 1, "threshold": 1.5}],
    "softplus": [{"steepness": 2}, {"steepness": 0.5}],
    "swish": [{"sigmoid_input_scale": 0.5}, {"sigmoid_input_scale": 2}],
    "thresholded_relu": [{"alpha": 2}],
}


def draw(name: str) -> None:
    """Draw the figure of the operator `name`."""
    special: dict[str, Callable[[str], None]] = dict.fromkeys(
        ("batch_normalization", "batch_normalization_training"), _batch_normalization
    )
    special |= dict.fromkeys(("clip_grad", "relu_grad", "parameterized_relu"), _pair)
    special |= dict.fromkeys(("log_softmax", "softmax", "hardmax"), _group)
    special["mean_variance_normalization"] = _group
    special |= dict.fromkeys(
        ("batch_normalization_grad", "batch_normalization_training_grad"), _gradient
    )
    special.get(name, _curves)(name)


def draw_all(names: Sequence[str]) -> None:
    """Draw several functions with their default parameters, side by side."""
    columns = 5
    rows = -(-len(names) // columns)
    panels = plt.figure(figsize=(9, 1.6 * rows)).subplots(rows, columns, sharex=True, sharey=True)
    x = np.linspace(-4, 4, 801, dtype=np.float32)
    for axes, name in zip_longest(panels.flat, names):
        if name is None:
            axes.axis("off")
            continue
        axes.tick_params(labelbottom=True)
        axes.plot(x, _with_gaps(getattr(dmlops, name)(x)), color=STRONG[0], lw=1.8)
        axes.set_title(name, fontsize=9)
        axes.set(xlim=(-4, 4), ylim=(-2.5, 4), xticks=[-4, 0, 4], yticks=[-2, 0, 2, 4])


def _curves(name: str) -> None:
    """Draw a function of one variable, with several parameters."""
    function = getattr(dmlops, name)
    x = np.linspace(-4, 4, 2001, dtype=np.float32)
    axes = plt.figure().subplots()
    for color, parameters in zip(STRONG, _parameters(function, name), strict=False):
        label = ", ".join(f"{key}={_text(value)}" for key, value in parameters.items())
        axes.plot(x, _with_gaps(function(x, **parameters)), color=color, label=label, lw=1.8)
    axes.set(xlabel="x", ylabel=name, xlim=(-4, 4))
    axes.set_ylim(max(axes.get_ylim()[0], -4.2), min(axes.get_ylim()[1], 4.2))
    axes.axhline(0, color=GRAY, lw=0.8)
    axes.axvline(0, color=GRAY, lw=0.8)
    if label:
        axes.legend()


def _parameters(function: Any, name: str) -> list[dict[str, Any]]:
    defaults = {
        parameter.name: parameter.default
        for parameter in inspect.signature(function).parameters.values()
        if isinstance(parameter.default, float)
    }
    return [*([defaults] if name != "clip" else []), *VARIATIONS.get(name, [])]


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def _with_gaps(y: Any) -> Any:
    """Return the values with a gap where the function jumps."""
    return np.where(np.abs(np.diff(y, append=y[-1:])) > 0.1, np.nan, y)


def _batch_normalization(name: str) -> None:
    """Draw three channels before and after."""
    random = np.random.default_rng(0)
    moments = ((-2, 0.5), (1, 1.5), (4, 0.8))
    x = np.stack([random.normal(m, s, 20000).astype(np.float32) for m, s in moments])
    one, zero = np.ones((3, 1), np.float32), np.zeros((3, 1), np.float32)
    labels = [f"channel {channel}" for channel in range(3)]
    if name == "batch_normalization_training":
        y, mean, variance = dmlops.batch_normalization_training(x, one, zero)
        for channel, (m, v) in enumerate(zip(mean.flat, variance.flat, strict=True)):
            labels[channel] = f"mean {m:.1f}, variance {v:.2f}"
    else:
        mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        y = dmlops.batch_normalization(x, mean, variance, one, zero)
    both = plt.figure().subplots(1, 2, sharey=True)
    for axes, values, title in zip(both, (x, y), ("input", "output"), strict=True):
        for label, color, row in zip(labels, STRONG, values, strict=True):
            _density(axes, row, color, label)
        axes.set(title=title, yticks=[])
    both[0].legend()


def _density(axes: Axes, values: Any, color: str, label: str) -> None:
    axes.hist(values, 120, density=True, histtype="stepfilled", color=color, alpha=0.25)
    axes.hist(values, 120, density=True, histtype="step", color=color, lw=1.2, label=label)


def _pair(name: str) -> None:
    """Draw a function of two inputs, of which the second is constant."""
    x = np.linspace(-3, 3, 601, dtype=np.float32)
    bounds = {"min": -1.5, "max": 2} if name == "clip_grad" else {}
    function = getattr(dmlops, name)
    second = list(inspect.signature(function).parameters)[1]
    axes = plt.figure().subplots()
    for value, color in zip((0.25, 1), STRONG, strict=False):
        y = function(x, np.full_like(x, value), **bounds)
        label = ", ".join(f"{key}={_text(each)}" for key, each in {second: value, **bounds}.items())
        axes.plot(x, _with_gaps(y), color=color, label=label, lw=1.8)
    axes.set(xlabel="x", ylabel=name)
    axes.legend()


def _gradient(name: str) -> None:
    """Draw the gradient of a normalization's output, and that of its input."""
    x = np.array([[-2, 0.5, 3, 1, 2.5, -1]], np.float32)
    dy = np.array([[0, 1, 0, 0, -0.5, 0]], np.float32)
    one = np.ones((1, 1), np.float32)
    _, mean, variance = dmlops.batch_normalization_training(x, one, one)
    dx = getattr(dmlops, name)(x, dy, mean, variance, one)[0]
    both = plt.figure().subplots(1, 2, sharey=True)
    for axes, values, title, color in zip(
        both, (dy, dx), ("input_gradient", "gradient"), STRONG, strict=False
    ):
        axes.bar(range(x.size), values[0], color=color)
        axes.axhline(0, color=GRAY, lw=0.8)
        axes.set(title=title, xlabel="index")
        axes.grid(axis="x", visible=False)


def _group(name: str) -> None:
    """Draw a group, and its results."""
    x = np.array([-2, 0.5, 3, 1, 2.5, -1], np.float32)
    both = plt.figure().subplots(1, 2)
    for axes, values, title, color in zip(
        both, (x, getattr(dmlops, name)(x)), ("x", f"{name}(x)"), STRONG, strict=False
    ):
        axes.bar(range(x.size), values, color=color)
        axes.axhline(0, color=GRAY, lw=0.8)
        axes.set(title=title, xlabel="index")
        axes.grid(axis="x", visible=False)


def draw_tutorial() -> None:
    """Run the examples of the tutorial, and draw their results."""
    page = Path(__file__).with_name("tutorial.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(page):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(example.source, names)
    probabilities = np.exp(names["log_probabilities"][0]).transpose(1, 2, 0)
    pictures = {
        "photo": names["photo"],
        "stretched": names["stretched"],
        "normal, after hard_sigmoid": names["normal"][0].transpose(1, 2, 0),
        "flower (red), leaf (green), shadow (blue)": probabilities,
    }
    panels = plt.figure(figsize=(8, 5.9)).subplots(2, 2)
    for axes, (title, picture) in zip(panels.flat, pictures.items(), strict=True):
        axes.imshow(picture[::2, ::2])
        axes.set_title(title, fontsize=10)
        axes.set_axis_off()
