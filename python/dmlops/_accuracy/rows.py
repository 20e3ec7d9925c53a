"""The rows of the table: an operator, its parameters, the inputs, and the promised error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dmlops._accuracy.exact import Array, Exact, exact
from dmlops._table import ACTIVATIONS

EXACT, SUMMED, CURVED, DOMINATED = 0.5, 1.0, 2.0, 8.0  # ulp
THOUSANDTH = 8.0  # of float32, which is a thousandth of float16's
FIFTIETH = 164.0  # of float32, which is a fiftieth of float16's
DOMINATING = -0.1  # log_softmax: results above it keep digits of their own
FULL, QUICK = 1_000_000, 20_000  # elements of a row, about
Make = Callable[[int, np.random.Generator], list[Array]]


@dataclass(frozen=True)
class Row:
    """A line of the table. `make(count)` returns about `count` elements."""

    operator: str
    dtype: str
    inputs: str
    bound: float
    make: Make = field(repr=False)
    parameters: Mapping[str, float] = field(default_factory=dict)
    relative: bool = False  # only log_softmax's dominating results, in their own ulp
    output: int = 0  # of an operator that has several

    @property
    def name(self) -> str:
        """The text that ``--only`` searches."""
        return f"{self.operator}{self.arguments}/{self.dtype}/{self.inputs}"

    @property
    def arguments(self) -> str:
        """The parameters as in a call."""
        numbers = (
            f"{name}={value if isinstance(value, bool) else f'{value:.4g}'}"
            for name, value in self.parameters.items()
        )
        return f"({', '.join(numbers)})" if self.parameters else ""

    def inputs_of(self, count: int) -> list[Array]:
        """Return the operator's tensors, the same at every call."""
        with np.errstate(all="ignore"):
            tensors = self.make(count, np.random.default_rng(5))
        return [tensor.astype(self.dtype) for tensor in tensors]

    def exact(self, inputs: list[Array]) -> Exact:
        """Return the exact results and the magnitudes of the unit; NaN where nothing counts."""
        value, magnitude = exact(self.operator, inputs, self.parameters, self.output)
        if self.dtype == "float16":  # rounded once more, relative to the result itself
            magnitude = np.maximum(magnitude, np.abs(value))
        if not self.relative:
            return value, magnitude
        counted = np.where((value < 0) & (value >= DOMINATING), value, np.nan)
        return counted, np.abs(counted)


def all_rows() -> list[Row]:
    """Return all rows."""
    return [
        *elementwise(),
        *pairs(),
        *normalizations(),
        *own_moments(),
        *gradients(),
        *softmaxes(),
    ]


# Elementwise: all magnitudes (subnormal ones and those next to overflow among them), the usual
# ones, and every float16.


def all_magnitudes(count: int, random: np.random.Generator) -> list[Array]:
    """Return finite float32 of any bit pattern."""
    x = random.integers(0, 1 << 32, count, np.uint32).view(np.float32)
    return [x[np.isfinite(x)]]


def usual(count: int, random: np.random.Generator) -> list[Array]:
    """Return numbers from the range in which activations are not constant."""
    return [random.uniform(-20, 20, count)]


def near_zero(count: int, random: np.random.Generator) -> list[Array]:
    """Return small numbers."""
    return [random.uniform(-1, 1, count)]


def every_float16(count: int, random: np.random.Generator) -> list[Array]:
    """Return the finite numbers of float16."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return [x[np.isfinite(x)]]


SWEEPS: tuple[tuple[str, str, Make], ...] = (
    ("float32", "all magnitudes", all_magnitudes),
    ("float32", "-20 to 20", usual),
    ("float32", "-1 to 1", near_zero),
    ("float16", "every number", every_float16),
)
CLIPS: tuple[Mapping[str, float], ...] = (
    {"min": -1.5, "max": 2.5},
    {"min": -6, "max": 6, "scale": 0.3, "bias": -0.7},
)
# Parameters that show more than the defaults, or in addition to them.
PARAMETERS: Mapping[str, Sequence[Mapping[str, float]]] = {
    "celu": ({"alpha": 1.0}, {"alpha": 0.3}),
    "linear": ({"alpha": 0.3, "beta": -0.7},),
    "parametric_softplus": ({"alpha": 0.7, "beta": 1.3},),
    "scaled_tanh": ({"alpha": 1.7159, "beta": 2 / 3},),
    "shrink": ({"bias": 0.5, "threshold": 0.5},),
    "softplus": ({"steepness": 1.0}, {"steepness": 3.0}),
}


def elementwise() -> Iterator[Row]:
    """Yield clip and the activations."""
    promises = [("clip", EXACT, numbers) for numbers in CLIPS]
    promises += [
        (row.function, row.promise, numbers)
        for row in sorted(ACTIVATIONS, key=lambda row: row.function)
        for numbers in PARAMETERS.get(row.function, (row.defaults,))
    ]
    for operator, bound, parameters in promises:
        for dtype, inputs, make in SWEEPS:
            yield Row(operator, dtype, inputs, bound, make, parameters)


def with_another(make: Make) -> Make:
    """Return a generator of the same inputs and a second tensor."""

    def both(count: int, random: np.random.Generator) -> list[Array]:
        (x,) = make(count, random)
        return [x, random.uniform(-2, 2, x.shape)]

    return both


def pairs() -> Iterator[Row]:
    """Yield the elementwise operators of two tensors."""
    operators: tuple[tuple[str, float, Mapping[str, float]], ...] = (
        ("clip_grad", 0, {"min": -1.5, "max": 2.5}),
        ("parameterized_relu", EXACT, {}),
        ("relu_grad", 0, {}),
    )
    for operator, bound, parameters in operators:
        for dtype, inputs, make in SWEEPS:
            yield Row(operator, dtype, inputs, bound, with_another(make), parameters)


# Batch normalization: 64 channels, whose tensors are (1, 64).

CHANNELS = 64


def normalized(
    mean: float, deviation: float, scale: float = 1, bias: float = 1, spread: float = 3
) -> Make:
    """Return a generator of inputs at multiples of a deviation from a mean, with parameters."""

    def make(count: int, random: np.random.Generator) -> list[Array]:
        shape = (1, CHANNELS)
        means = mean * random.uniform(0.9, 1.1, shape)
        deviations = deviation * random.uniform(0.5, 1.5, shape)
        steps = random.uniform(-spread, spread, (count // CHANNELS, CHANNELS))
        scales, biases = scale * random.uniform(0.5, 2, shape), bias * random.uniform(-1, 1, shape)
        return [means + deviations * steps, means, deviations**2, scales, biases]

    return make


def normalizations() -> Iterator[Row]:
    """Yield batch normalization on well-conditioned inputs, and on inputs that cancel."""
    kinds = (
        ("float32", "usual", normalized(0.5, 1)),
        ("float32", "mean of 10,000 deviations", normalized(1e4, 1)),
        ("float32", "mean of 1,000,000, small variance", normalized(1e6, 0.5, spread=1)),
        ("float32", "subnormal", normalized(1e-39, 1e-39, 1e-2, 1e-39)),
        ("float32", "near overflow", normalized(1e19, 1e19, 5e37, 1e37)),
        ("float16", "usual", normalized(0.5, 1)),
        ("float16", "mean of 1,000 deviations", normalized(1e3, 1)),
    )
    for dtype, inputs, make in kinds:
        yield Row("batch_normalization", dtype, inputs, CURVED, make, {"epsilon": 1e-5})


# Normalization by the moments of groups: along the last axis, of 768 elements, or along the first.

LAYER = 768


def distributed(mean: float, deviation: float) -> Make:
    """Return a generator of elements around a mean, with scales and biases."""

    def make(count: int, random: np.random.Generator) -> list[Array]:
        x = mean + deviation * random.uniform(-2, 2, (max(2, count // LAYER), LAYER))
        return [x, random.uniform(0.5, 2, (1, LAYER)), random.uniform(-1, 1, (1, LAYER))]

    return make


def differentiated(mean: float, deviation: float) -> Make:
    """Return a generator of an input, a gradient, and the input's rounded statistics."""

    def make(count: int, random: np.random.Generator) -> list[Array]:
        x, *parameters = normalized(mean, deviation)(count, random)
        dy = random.uniform(-1, 1, x.shape)
        return [x, dy, x.mean(axis=0, keepdims=True), x.var(axis=0, keepdims=True), parameters[2]]

    return make


def own_moments() -> Iterator[Row]:
    """Yield mean-variance normalization, and batch normalization's training pass."""
    kinds = (
        ("float32", "usual", distributed(0.5, 1)),
        ("float32", "mean of 10,000 deviations", distributed(1e4, 1)),
        ("float32", "mean of 1,000,000, small variance", distributed(1e6, 0.5)),
        ("float32", "subnormal", distributed(0, 1e-39)),
        ("float32", "near overflow", distributed(1e37, 1e38)),
        ("float16", "usual", distributed(0.5, 1)),
        ("float16", "mean of 1,000 deviations", distributed(1e3, 1)),
        ("float16", "variance beyond float16", distributed(0, 3e4)),
    )
    uses: tuple[Mapping[str, float], ...] = ({}, {"use_mean": False})
    for use in uses:
        for dtype, inputs, make in kinds:
            parameters = {"epsilon": 1e-5, **use}
            bound = CURVED if dtype == "float32" else THOUSANDTH
            yield Row("mean_variance_normalization", dtype, inputs, bound, make, parameters)
    for dtype, inputs, mean in (
        ("float32", "usual", 0.5),
        ("float32", "mean of 10,000 deviations", 1e4),
        ("float16", "usual", 0.5),
        ("float16", "mean of 1,000 deviations", 1e3),
    ):
        for output, name in enumerate(("output", "mean", "variance")):
            yield Row(
                "batch_normalization_training",
                dtype,
                f"{inputs}: {name}",
                SUMMED if output else CURVED,
                channels_first(mean),
                {"epsilon": 1e-5},
                output=output,
            )


def channels_first(mean: float) -> Make:
    """Return a generator of inputs of channels, with scales and biases."""

    def make(count: int, random: np.random.Generator) -> list[Array]:
        x, _, _, scale, bias = normalized(mean, 1)(count, random)
        return [x, scale, bias]

    return make


def gradients() -> Iterator[Row]:
    """Yield the gradients of batch normalization."""
    for operator in ("batch_normalization_grad", "batch_normalization_training_grad"):
        for dtype, inputs, mean in (
            ("float32", "usual", 0.5),
            ("float32", "mean of 10,000 deviations", 1e4),
            ("float16", "usual", 0.5),
        ):
            for output, name in enumerate(("gradient", "scale_gradient", "bias_gradient")):
                yield Row(
                    operator,
                    dtype,
                    f"{inputs}: {name}",
                    SUMMED if output else CURVED,
                    differentiated(mean, 1),
                    {"epsilon": 1e-5},
                    output=output,
                )


# The softmax family along the last axis.


def logits(group: int, low: float, high: float) -> Make:
    """Return a generator of groups of uniformly distributed logits."""
    return lambda count, random: [random.uniform(low, high, (max(1, count // group), group))]


def dominated(group: int) -> Make:
    """Return a generator of groups in which one logit exceeds the others by 2 to 100."""

    def make(count: int, random: np.random.Generator) -> list[Array]:
        x = random.uniform(-1, 0, (max(10, count // group), group))
        x[:, group // 2] = np.linspace(2, 100, len(x))
        return [x]

    return make


def softmaxes() -> Iterator[Row]:
    """Yield the softmax family on groups of many kinds."""
    for dtype in ("float32", "float16"):
        kinds = [
            ("groups of 2", logits(2, -4, 4)),
            ("groups of 10", logits(10, -10, 10)),
            ("groups of 1,000", logits(1000, -10, 10)),
            ("groups of 100,000", logits(100_000, -10, 10)),
            ("100,000 nearly equal", logits(100_000, 0, 2**-10)),
            ("large offset", logits(1000, 2000, 2001)),
        ]
        if dtype == "float32":
            kinds.append(("subnormal", logits(1000, -1e-39, 1e-39)))
            kinds.append(("near overflow", logits(1000, -1.7e38, 1.7e38)))
        for inputs, make in kinds:
            yield Row("log_softmax", dtype, inputs, CURVED, make)
        for group in (2, 10, 1000, 100_000):
            inputs = f"one of {group:,} dominates"
            yield Row("log_softmax", dtype, inputs, DOMINATED, dominated(group), relative=True)
        for operator, bound in (
            ("softmax", CURVED if dtype == "float32" else FIFTIETH),
            ("hardmax", 0),
        ):
            for inputs, make in kinds:
                yield Row(operator, dtype, inputs, bound, make)
