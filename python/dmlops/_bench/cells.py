"""The cells of the comparison: operators, data types and layouts, and the groups that they form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlops._bench.problem import PARAMETERS, Array, Problem, View, permutation

K, M = 1 << 10, 1 << 20
DTYPES: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "i8": np.int8, "u8": np.uint8, "i16": np.int16,
    "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
}  # fmt: skip
FLOATS = ("f32", "f16")


@dataclass(frozen=True)
class Layout:
    """The shape of a dense array, the view of it that is the input, the order of the output."""

    shape: tuple[int, ...]
    view: View = View()  # noqa: RUF009 - immutable
    same_order: bool = False  # the output has the input's order in memory; otherwise it is dense

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of input and output."""
        no_memory = np.lib.stride_tricks.as_strided(np.empty(1), self.shape, (0,) * len(self.shape))
        return self.view.of(no_memory).shape


def channels_first(shape: tuple[int, ...], *, same_order: bool) -> Layout:
    """Return images that lie with their channels last, seen with their channels first."""
    return Layout(shape, View(axes=(0, 3, 1, 2)), same_order)


LAYOUTS = {
    "c1": Layout((1,)),
    "c1k": Layout((K,)),
    "c64k": Layout((64 * K,)),
    "c1m": Layout((M,)),
    "c16m": Layout((16 * M,)),
    "every2nd": Layout((2 * M,), View((slice(None, None, 2),))),
    "padded_rows": Layout((K, K + 16), View((slice(None), slice(0, K)))),
    "nhwc_as_nchw": channels_first((32, 56, 56, 64), same_order=True),
    "nhwc_to_nchw": channels_first((32, 56, 56, 64), same_order=False),
    "transpose": Layout((2 * K, 2 * K), View(axes=(1, 0))),
    "strided_5d": Layout((8, 17, 16, 18, 40), View(tuple(map(slice, (8, 16, 16, 16, 32))))),
    "strided_8d": Layout((4, 4, 4, 4, 4, 4, 8, 8), View(axes=(5, 7, 3, 1, 6, 4, 2, 0))),
    "bcast_rows": Layout((K,), View(shape=(K, K))),
}
# Batch normalization: the shape, the axes along which the parameters change, the activation.
NORMALIZATIONS = {
    "nchw": (Layout((32, 64, 56, 56)), (1,), False),
    "nchw_relu": (Layout((32, 64, 56, 56)), (1,), True),
    "nhwc": (channels_first((32, 56, 56, 64), same_order=True), (1,), False),
    "small": (Layout((32, 256, 7, 7)), (1,), False),
    "small_relu": (Layout((32, 256, 7, 7)), (1,), True),
    "columns": (Layout((4 * K, 256)), (1,), False),
    "spatial0": (Layout((64, 16, 32, 32)), (1, 2, 3), False),
    "full_params": (Layout((16, 32, 32, 32)), (0, 1, 2, 3), False),
}
SOFTMAXES = {
    "1x1000": ((1, 1000), (1,)),
    "128x1000": ((128, 1000), (1,)),
    "32x32000": ((32, 32000), (1,)),
    "4096x64": ((4096, 64), (1,)),
    "2x50257": ((2, 50257), (1,)),
    "64x21x64x64_ax1": ((64, 21, 64, 64), (1,)),
    "64x128x256_ax02": ((64, 128, 256), (0, 2)),
}
# Mean-variance normalization over the last axis: the shape, and whether the mean is subtracted.
LAYERS = {
    "layer_4096x768": ((4096, 768), True),
    "layer_128x4096": ((128, 4096), True),
    "layer_32x197x1024": ((32, 197, 1024), True),
    "rms_4096x768": ((4096, 768), False),
}
QUICK = ("c1", "c64k", "c1m", "every2nd", "transpose", "strided_8d", "small_relu", "128x1000")


@dataclass(frozen=True)
class Cell:
    """One line of the table. The problem is created on first use, as some are large."""

    operator: str
    dtype: str
    layout: str
    make: Callable[[], Problem]
    kinds: tuple[str, ...] = ()  # of layout, where it is drawn

    @property
    def name(self) -> str:
        """The coordinates."""
        return f"{self.operator}/{self.dtype}/{self.layout}"

    @property
    def quick(self) -> bool:
        """True if the short comparison includes the cell."""
        common = self.dtype in FLOATS or (self.dtype, self.layout) == ("u8", "c1m")
        return common and self.layout in QUICK


def all_cells() -> list[Cell]:
    """Return all cells."""
    return [
        *(*clips(), *hard_sigmoids(), *normalizations(), *softmaxes("log_softmax", SOFTMAXES)),
        *softmaxes("softmax", ("128x1000", "4096x64")),
        *softmaxes("hardmax", ("128x1000",)),
        *layers(),
        *trainings(),
        *maps(),
    ]


def clips() -> Iterator[Cell]:
    """Yield the cells of clip: six data types on all layouts, the others on dense tensors."""
    for name, layout in LAYOUTS.items():
        for dtype in ("f32", "f16", "u8", "i8", "i32", "i64"):
            yield clip(dtype, name, layout)
    for name in ("c64k", "c1m"):
        for dtype in ("i16", "u16", "u32", "u64"):
            yield clip(dtype, name, LAYOUTS[name])
    for dtype in ("f32", "f16", "u8", "i8", "i32"):
        yield clip(dtype, "c1m_scale", LAYOUTS["c1m"], scale=0.5, bias=1.0)


def clip(dtype: str, name: str, layout: Layout, **scale_bias: float) -> Cell:
    """Return a cell of clip, whose bounds limit a large minority of the values."""
    low, high = {"f32": (-1.0, 1.0), "f16": (-1.0, 1.0), "u8": (50, 200), "i8": (-50, 50)}.get(
        dtype, (500, 1500) if dtype[0] == "u" else (-500, 500)
    )
    arguments = {"min": low, "max": high, **scale_bias}
    return elementwise("clip", dtype, name, layout, arguments)


def sweep() -> list[Cell]:
    """Return clip on dense vectors of many sizes, for the curves of bandwidth over size."""
    sizes = [1 << power for power in range(10, 25, 2)]
    return [clip(dtype, f"dense_{n}", Layout((n,))) for dtype in FLOATS for n in sizes]


def hard_sigmoids() -> Iterator[Cell]:
    """Yield the cells of hard_sigmoid; with alpha 1/6, which PyTorch has a function for."""
    for name, layout in LAYOUTS.items():
        for dtype in FLOATS:
            yield elementwise("hard_sigmoid", dtype, name, layout, {"alpha": 1 / 6, "beta": 0.5})


def elementwise(
    operator: str, dtype: str, name: str, layout: Layout, arguments: dict[str, Any]
) -> Cell:
    """Return a cell of an operator whose arguments are numbers."""
    return Cell(operator, dtype, name, lambda: problem(operator, dtype, layout, arguments))


def normalizations() -> Iterator[Cell]:
    """Yield the cells of batch_normalization."""
    for name, (layout, axes, relu) in NORMALIZATIONS.items():
        for dtype in FLOATS:
            yield normalization(dtype, name, layout, axes, relu)


def normalization(dtype: str, name: str, layout: Layout, axes: tuple[int, ...], relu: bool) -> Cell:
    """Return a cell of batch_normalization whose parameters change along `axes`."""
    shape = tuple(n if d in axes else 1 for d, n in enumerate(layout.result))
    shapes = dict.fromkeys(PARAMETERS, shape)
    numbers = {"epsilon": 1e-5, "relu": relu}
    return with_arrays("batch_normalization", dtype, name, layout, numbers, **shapes)


def softmaxes(operator: str, names: Iterable[str]) -> Iterator[Cell]:
    """Yield the cells of a reduction over axes."""
    for name in names:
        shape, axes = SOFTMAXES[name]
        for dtype in FLOATS:
            yield elementwise(operator, dtype, name, Layout(shape), {"axes": axes})


def layers() -> Iterator[Cell]:
    """Yield the cells of mean_variance_normalization."""
    for name, (shape, use_mean) in LAYERS.items():
        axes, parameters = (len(shape) - 1,), (1,) * (len(shape) - 1) + shape[-1:]
        numbers = {"axes": axes, "use_mean": use_mean, "epsilon": 1e-5}
        for dtype in FLOATS:
            yield with_arrays(
                "mean_variance_normalization", dtype, name, Layout(shape), numbers,
                scale=parameters, bias=parameters,
            )  # fmt: skip


def trainings() -> Iterator[Cell]:
    """Yield the cells of batch normalization's training pass and gradients."""
    layout = NORMALIZATIONS["nchw"][0]
    channels = tuple(n if d == 1 else 1 for d, n in enumerate(layout.shape))
    numbers = {"axes": (0, 2, 3), "use_mean": True, "epsilon": 1e-5}
    statistics = {"mean": channels, "variance": channels, "scale": channels}
    for dtype in FLOATS:
        yield with_arrays(
            "batch_normalization_training", dtype, "nchw", layout, numbers,
            scale=channels, bias=channels,
        )  # fmt: skip
        for operator in ("batch_normalization_grad", "batch_normalization_training_grad"):
            yield with_arrays(
                operator, dtype, "nchw", layout, numbers, gradient=layout.shape, **statistics
            )


def maps() -> Iterator[Cell]:
    """Yield the cells of the other elementwise operators."""
    layout = LAYOUTS["c1m"]
    gradient = {"gradient": layout.shape}
    for dtype in FLOATS:
        yield elementwise("swish", dtype, "c1m", layout, {})
        yield elementwise("hard_swish", dtype, "c1m", layout, {"alpha": 1 / 6, "beta": 0.5})
        yield with_arrays("parameterized_relu", dtype, "c1m", layout, {}, slope=layout.shape)
        yield with_arrays("relu_grad", dtype, "c1m", layout, {}, **gradient)
        yield with_arrays("clip_grad", dtype, "c1m", layout, {"min": -1.0, "max": 1.0}, **gradient)


def with_arrays(
    operator: str,
    dtype: str,
    name: str,
    layout: Layout,
    numbers: dict[str, Any],
    **shapes: tuple[int, ...],
) -> Cell:
    """Return a cell of an operator with further tensors, of these shapes."""

    def make() -> Problem:
        random = np.random.default_rng(1)
        arrays = {
            name: random.uniform(0.5, 1.5, shape).astype(DTYPES[dtype])
            for name, shape in shapes.items()
        }
        posed = problem(operator, dtype, layout, numbers | arrays)
        if operator == "batch_normalization_training_grad":  # of the statistics of its input
            wide = posed.input.astype(np.float64)
            arrays["mean"][...] = wide.mean(numbers["axes"], keepdims=True)
            arrays["variance"][...] = wide.var(numbers["axes"], keepdims=True)
        return posed

    return Cell(operator, dtype, name, make)


def problem(operator: str, dtype: str, layout: Layout, arguments: dict[str, Any]) -> Problem:
    """Return a problem with random elements."""
    base = elements(layout.shape, dtype)
    output = np.zeros_like(layout.view.of(base), order="K" if layout.same_order else "C")
    order = np.argsort([-stride for stride in output.strides], kind="stable")
    axes = permutation((), tuple(map(int, np.argsort(order))))
    return Problem(operator, arguments, base, layout.view, output.transpose(order), axes)


def elements(shape: tuple[int, ...], dtype: str) -> Array:
    """Return random elements of a type."""
    random = np.random.default_rng(0)
    # At most 64K, repeated: normal numbers are slow to draw, and their order does not matter.
    number = min(math.prod(shape), 64 * K)
    if dtype[0] == "f":
        return np.resize((3 * random.standard_normal(number)).astype(DTYPES[dtype]), shape)
    limits = np.iinfo(DTYPES[dtype])
    few = random.integers(max(-1000, limits.min), min(2000, limits.max), number, np.int64)
    if dtype == "i64":  # some need all their bits
        few += random.integers(-1, 2, number, np.int64) << 33
    return np.resize(few.astype(DTYPES[dtype]), shape)
