"""The cases of the golden digests: every operator, data type and path through the kernels."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping

from activation_rows import FUSABLE, ROWS, Row
from descriptors import NORMALIZATION_GRADIENTS, SEVERAL_OUTPUTS
from golden import Case
from reference import FLOATS, INTEGERS

LARGE = (521, 517)  # split over threads in every data type; no size is a multiple of the other
SMALL = (5, 31, 35)
AROUND_ONE = "mixed:{seed}:-8:5"
# The activations of the first digests. Later ones have seeds of their own, so that they change no
# other digest.
FIRST_FUSABLE, FIRST_OTHERS = FUSABLE[:17], tuple(row for row in ROWS if not row.fusable)[:2]


def all_cases() -> Iterator[Case]:
    """Yield the cases. Seeds are consecutive, so new cases are added at the end."""
    families = (
        *(clips, activations, normalizations, softmaxes, further, other_softmaxes),
        *(two_inputs, mean_variance_normalizations, trainings, small_activations),
    )
    yield from seeded(itertools.chain.from_iterable(family() for family in families))
    for row in ROWS:
        if row not in FIRST_FUSABLE + FIRST_OTHERS:
            yield from seeded(later(row), 1_000_000 + 1000 * row.value)


def seeded(cases: Iterator[Case], first: int = 0) -> Iterator[Case]:
    """Yield cases with their seeds."""
    for seed, case in zip(itertools.count(first, 8), cases, strict=False):
        yield dataclasses.replace(case, recipe=case.recipe.format(seed=seed))


def case(
    operator: str,
    dtype: str,
    shape: tuple[int, ...],
    recipe: str,
    parameters: Mapping[str, object],
) -> Case:
    """Return a case without a seed."""
    texts = tuple((name, str(value)) for name, value in parameters.items())
    return Case(operator, dtype, shape, recipe, texts)


def clips() -> Iterator[Case]:
    """Yield clip with bounds inside the type's range, with a scale, and with odd bounds."""
    for dtype in FLOATS:
        scale = {"scale": 0.3, "scale_bias": -0.7}
        yield case("clip", dtype, LARGE, AROUND_ONE, {"min": -1.5, "max": 2.1})
        yield case("clip", dtype, LARGE, AROUND_ONE, {"min": -1.5, "max": 2.1} | scale)
        for parameters in (
            *({}, {"min": 3.0, "max": -3.0}, {"min": "nan", "max": 1.0}),
            *({"min": "-inf", "max": 0.1}, {"min": -0.0, "max": "inf"}, scale),
        ):
            yield case("clip", dtype, SMALL, AROUND_ONE, parameters)
    for dtype in INTEGERS:
        bits = int(dtype.lstrip("uint"))
        unsigned = dtype[0] == "u"
        middle = 1 << (bits - 1) if unsigned else 0
        bounds = {"min": middle - (1 << (bits - 3)) - 1, "max": middle + (1 << (bits - 2)) + 3}
        yield case("clip", dtype, LARGE, "any:{seed}", bounds)
        for shape, factor, offset in ((LARGE, 0.3, -0.7), (SMALL, -2.5, 11.0), (SMALL, 1.0, 0.0)):
            scaled = {**bounds, "scale": factor, "scale_bias": offset}
            yield case("clip", dtype, shape, "any:{seed}", scaled)


def activation(row: Row, dtype: str) -> Iterator[Case]:
    """Yield an activation with its defaults and with parameters of the tests."""
    for i, numbers in enumerate(row.parameters[:5]):
        parameters = dict(zip(row.fields, numbers, strict=True))
        yield case(row.name, dtype, SMALL if i else LARGE, AROUND_ONE, parameters)


def small_activation(row: Row, dtype: str) -> Iterator[Case]:
    """Yield a small case of an activation without parameters, whose only other case is large."""
    if not row.fields:
        yield case(row.name, dtype, SMALL, AROUND_ONE, {})


def fused(row: Row, dtype: str) -> Case:
    """Return an activation that is fused."""
    parameters: dict[str, object] = {"axes": "1", "epsilon": 0.001, "fused": row.name}
    numbers = row.parameters[min(1, len(row.parameters) - 1)]
    parameters |= dict(zip(row.fields, numbers, strict=True))
    return case("batch_normalization", dtype, (3, 5, 37), AROUND_ONE, parameters)


def later(row: Row) -> Iterator[Case]:
    """Yield an activation in every form."""
    for dtype in FLOATS:
        yield from activation(row, dtype)
        yield from small_activation(row, dtype)
        if row.fusable:
            yield fused(row, dtype)


def activations() -> Iterator[Case]:
    """Yield each activation, in integers too."""
    for dtype, row in itertools.product(FLOATS, FIRST_FUSABLE):
        yield from activation(row, dtype)
    for dtype in ("int8", "int16", "int32"):
        yield case("relu", dtype, LARGE, "any:{seed}", {})
    for dtype in ("int8", "int16", "int32", "uint8", "uint16", "uint32"):
        for shape, bias, threshold in ((LARGE, 0.0, 0.5), (SMALL, 2.75, 20.0)):
            parameters = {"bias": bias, "threshold": threshold}
            yield case("shrink", dtype, shape, "any:{seed}", parameters)


def normalizations() -> Iterator[Case]:
    """Yield tensors that vary along different axes, and every fused activation."""
    shapes: tuple[tuple[tuple[int, ...], str], ...] = (
        *(((3, 5, 37), "1"), ((2, 33, 66), "2"), ((4, 3, 7, 11), "0+1+2+3"), ((7, 129), "")),
        *(((2, 3, 4, 5, 6, 7), "0+2+5"), ((300, 3), "1"), ((64, 65), "0"), (LARGE, "0")),
        *((LARGE, "1"), (LARGE, "0+1"), ((3, 89_791), "0"), ((8, 4, 91, 93), "1")),
    )
    for dtype in FLOATS:
        for shape, axes in shapes:
            parameters: dict[str, object] = {"axes": axes, "epsilon": 1e-05}
            yield case("batch_normalization", dtype, shape, AROUND_ONE, parameters)
        for row in FIRST_FUSABLE:
            yield fused(row, dtype)


def further() -> Iterator[Case]:
    """Yield the activations that cannot be fused."""
    for row, dtype in itertools.product(FIRST_OTHERS, FLOATS):
        yield from activation(row, dtype)


def other_softmaxes() -> Iterator[Case]:
    """Yield softmax and hardmax over groups of several lengths, and over several axes."""
    for operator, dtype in itertools.product(("softmax", "hardmax"), FLOATS):
        for length in (1, 2, 7, 33, 128, 1024, 4099):
            yield case(operator, dtype, (3, length, 5), "bounded:{seed}:-3:5", {"axes": "1"})
        yield case(operator, dtype, (41, 300), "any:{seed}", {"axes": "1"})
        for axes in ("2", "0+2", "0+1+2"):
            yield case(operator, dtype, (9, 18, 37), "bounded:{seed}:-3:4", {"axes": axes})
        yield case(operator, dtype, LARGE, "bounded:{seed}:-6:5", {"axes": "0"})
        yield case(operator, dtype, LARGE, "bounded:{seed}:-6:5", {"axes": "1"})


def two_inputs() -> Iterator[Case]:
    """Yield the gradients of clip and relu, and parameterized_relu, in every data type."""
    for dtype in FLOATS:
        for shape, low, high in ((LARGE, -1.5, 2.1), (SMALL, "nan", 0.1), (SMALL, -0.0, "inf")):
            yield case("clip_grad", dtype, shape, AROUND_ONE, {"min": low, "max": high})
    for dtype in INTEGERS:
        quarter = 1 << (int(dtype.lstrip("uint")) - 2)
        for shape, low, high in ((LARGE, 3, quarter + 5), (SMALL, quarter, 0)):
            yield case("clip_grad", dtype, shape, "any:{seed}", {"min": low, "max": high})
    for operator, dtype in itertools.product(
        ("relu_grad", "parameterized_relu"), (*FLOATS, "int8", "int16", "int32")
    ):
        for shape in (LARGE, SMALL):
            yield case(operator, dtype, shape, AROUND_ONE if dtype in FLOATS else "any:{seed}", {})


def mean_variance_normalizations() -> Iterator[Case]:
    """Yield groups of several lengths and over several axes, every use, and an activation."""
    operator, bounded = "mean_variance_normalization", "bounded:{seed}:-3:5"
    none = {"without": "scale+bias"}
    for dtype in FLOATS:
        for length in (1, 2, 7, 33, 128, 1025, 4099):
            yield case(operator, dtype, (3, length, 5), bounded, {"axes": "1"} | none)
        for shape, axes, varying in (
            *(((9, 18, 37), "2", "2"), ((9, 18, 37), "0+2", "1"), ((9, 18, 37), "0+1+2", "")),
            *(((3, 5, 37), "", "1"), ((3, 4, 5, 7), "1+2", "0+3"), ((41, 300), "1", "0+1")),
            *((LARGE, "0", "1"), (LARGE, "1", "1"), ((8, 4, 91, 93), "2+3", "1")),
        ):
            yield case(operator, dtype, shape, bounded, {"axes": axes, "varying": varying})
        for parameters in (
            {"use_mean": False, "without": "bias"},
            {"use_variance": False, "without": "scale"},
            {"use_mean": False, "use_variance": False},
            {"epsilon": 0.0, "fused": "tanh"},
            {"epsilon": 3.5, "fused": "scaled_elu", "alpha": 0.5, "gamma": 2.0},
        ):
            common: dict[str, object] = {"axes": "2", "varying": "2"}
            yield case(operator, dtype, (5, 31, 35), bounded, common | parameters)
        yield case(operator, dtype, (41, 300), "any:{seed}", {"axes": "1"} | none)


def trainings() -> Iterator[Case]:
    """Yield batch normalization's training pass and gradients."""
    bounded = "bounded:{seed}:-3:5"
    for operator, dtype in itertools.product(SEVERAL_OUTPUTS, FLOATS):
        alone = {} if operator in NORMALIZATION_GRADIENTS else {"without": "fused_add"}
        for shape, axes in (
            *(((3, 5, 37), "1"), ((2, 33, 66), "2"), ((4, 3, 7, 11), "0+1+2+3"), ((7, 129), "")),
            *(((2, 3, 4, 5, 6, 7), "0+2+5"), ((300, 3), "1"), ((64, 65), "0"), (LARGE, "0")),
            *((LARGE, "1"), (LARGE, ""), ((8, 4, 91, 93), "1")),
        ):
            yield case(operator, dtype, shape, bounded, {"axes": axes, "epsilon": 1e-05} | alone)
        if operator in NORMALIZATION_GRADIENTS:
            continue
        for more in ({"epsilon": 0.001}, {"fused": "relu"}, {"fused": "elu", "alpha": 0.5}):
            along: dict[str, object] = {"axes": "1"}
            yield case(operator, dtype, (3, 5, 37), bounded, along | more)
        yield case(
            operator, dtype, LARGE, bounded, {"axes": "1", "epsilon": 0.5, "fused": "sigmoid"}
        )


def small_activations() -> Iterator[Case]:
    """Yield small cases of the activations without parameters."""
    for dtype, row in itertools.product(FLOATS, FIRST_FUSABLE):
        yield from small_activation(row, dtype)
    for dtype in ("int8", "int16", "int32"):
        yield case("relu", dtype, SMALL, "any:{seed}", {})


def softmaxes() -> Iterator[Case]:
    """Yield groups of every kind of length: few or many dominating elements, and any bits."""
    lengths = (1, 2, 3, 4, 7, 16, 31, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000)
    for dtype in FLOATS:
        for length in (*lengths, 1024, 1025, 4099):
            for low, high in ((-8, -1), (-3, 5)):
                recipe = f"bounded:{{seed}}:{low}:{high}"
                yield case("log_softmax", dtype, (3, length, 5), recipe, {"axes": "1"})
        for length in (2, 65, 300):
            yield case("log_softmax", dtype, (41, length), "any:{seed}", {"axes": "1"})
        for axes in ("0", "2", "0+1", "1+2", "0+2", "0+1+2"):
            yield case("log_softmax", dtype, (9, 18, 37), "bounded:{seed}:-3:4", {"axes": axes})
        for shape, axes in ((LARGE, "0"), (LARGE, "1"), (LARGE, "0+1"), ((7, 331, 113), "1")):
            yield case("log_softmax", dtype, shape, "bounded:{seed}:-6:5", {"axes": axes})
