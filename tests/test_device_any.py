"""Any descriptor of any operator: results of accepted ones agree with the references.

Hypothesis changes random fields of a valid descriptor. The rules decide if the result is valid.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import two_inputs
from activation_reference import allowed_errors, exact_values, integer_shrink
from activation_rows import ROWS
from bound_memory import Memory, layouts
from descriptors import (
    ACTIVATIONS,
    AXES,
    FLAGS,
    FOUR_DIMENSIONS,
    ROWS_ONLY,
    SEVERAL_OUTPUTS,
    TABLE,
    tensor,
    tensor_names,
)
from hypothesis import given
from hypothesis import strategies as st
from variants import on_every_variant

import dmlops
from dmlops import BufferTensorDesc, Device, FeatureLevel, ScaleBias, TensorDataType

Array = npt.NDArray[Any]
_ROWS = {row.name: row for row in ROWS}


def _tensors(desc: Any) -> dict[str, BufferTensorDesc]:
    given = {name: getattr(desc, name) for name in tensor_names(desc)}
    return {name: described for name, described in given.items() if described is not None}


_BOOLEANS = ("cross_channel", "normalize_variance", "use_mean", "use_variance")
_SECOND = {  # the second input of an operator of two
    "clip_grad": "input_gradient_tensor",
    "clip_grad1": "input_gradient_tensor",
    "relu_grad": "input_gradient_tensor",
    "parameterized_relu": "slope_tensor",
}

_MOMENTS = tuple(name for name in TABLE if name.startswith("mean_variance"))
_WHOLE = ("input", "input_gradient", "fused_add")  # of the input's sizes


# Operators that are checked alike.
_FAMILIES: dict[str, tuple[str, ...]] = {
    "clip": ("clip", "clip1"),
    "batch normalization": ("batch_normalization",),
    "softmax of rows": ROWS_ONLY,
    "softmax": AXES,
    "moments": _MOMENTS,
    "several outputs": SEVERAL_OUTPUTS,
    "two inputs": tuple(_SECOND),
    "activations of integers": ("relu", "shrink"),
    "all": tuple(TABLE),
}


@st.composite
def _valid(draw: st.DrawFn, operators: tuple[str, ...]) -> Any:
    """Draw an operator on tensors of any layout."""
    operator = draw(st.sampled_from(operators))
    dtype = draw(st.sampled_from(TABLE[operator][1][-1][2]))
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    if operator in ROWS_ONLY:
        sizes = (1,) * max(len(sizes) - 2, 0) + sizes[-2:]
    if operator == FOUR_DIMENSIONS:
        sizes = (1, 1, 1, *sizes)[-4:]
    more: dict[str, Any] = {}
    if operator in (*_MOMENTS, *SEVERAL_OUTPUTS):
        more = draw(_normalization(operator, sizes, dtype))
    elif operator in ("clip", "clip1"):
        more = {"min": draw(st.integers(0, 2)), "max": draw(st.integers(0, 3))}
        more["scale_bias"] = draw(st.sampled_from([None, ScaleBias(1.5, -0.5)]))
    elif operator in AXES:
        more["axes"] = tuple(draw(st.permutations(range(len(sizes)))))[: draw(st.integers(1, 5))]
    elif operator == "batch_normalization":
        for name in ("mean", "variance", "scale", "bias"):
            own = tuple(draw(st.sampled_from([1, size])) for size in sizes)
            more[f"{name}_tensor"] = tensor(own, dtype, strides=draw(layouts(own, False)))
        fused = draw(st.sampled_from([None, *ACTIVATIONS]))
        more["fused_activation"] = fused and ACTIVATIONS[fused]()
    elif operator in _SECOND:
        more = {_SECOND[operator]: tensor(sizes, dtype, strides=draw(layouts(sizes, False)))}
        if operator.startswith("clip"):
            more |= {"min": draw(st.integers(0, 2)), "max": draw(st.integers(0, 3))}
    else:
        more |= dict(draw(_parameters(operator)))
    x = tensor(sizes, dtype, strides=draw(layouts(sizes, False)))
    y = tensor(sizes, dtype, strides=draw(layouts(sizes, True)))
    return TABLE[operator][0](x, output_tensor=y, **more)


@st.composite
def _normalization(
    draw: st.DrawFn, operator: str, sizes: tuple[int, ...], dtype: str
) -> dict[str, Any]:
    """Draw the fields of a normalization by moments, or of its gradients, but for the output."""
    usual = TABLE[operator][0](tensor(sizes, dtype))
    groups = tuple(draw(st.sampled_from([1, size])) for size in sizes)
    fields: dict[str, Any] = {}
    for name in list(_tensors(usual))[1:]:
        key = name.removesuffix("_tensor")
        own = groups
        if key in _WHOLE:
            own = sizes
        elif operator in _MOMENTS:
            own = tuple(draw(st.sampled_from([1, size])) for size in sizes)
        strides = draw(layouts(own, key.startswith("output")))
        fields[name] = tensor(own, dtype, strides=strides)
        if key == "fused_add" and draw(st.booleans()):
            fields[name] = None
    if operator in _MOMENTS and draw(st.booleans()):
        fields |= {"scale_tensor": None, "bias_tensor": None}
    for name in ("output_tensor", "output_gradient_tensor"):
        fields.pop(name, None)
    for name in _BOOLEANS:
        if hasattr(usual, name):
            fields[name] = draw(st.booleans())
    if hasattr(usual, "axes"):
        fields["axes"] = tuple(draw(st.permutations(range(len(sizes)))))[: draw(st.integers(0, 5))]
    if hasattr(usual, "fused_activation"):
        fused = draw(st.sampled_from([None, *ACTIVATIONS]))
        fields["fused_activation"] = fused and ACTIVATIONS[fused]()
    return fields


@st.composite
def _parameters(draw: st.DrawFn, operator: str) -> list[tuple[str, float]]:
    if operator not in _ROWS:
        return []
    row = _ROWS[operator]
    return list(zip(row.fields, draw(st.sampled_from(row.parameters)), strict=True))


_SIZES = st.lists(st.integers(0, 4), max_size=9).map(tuple)
_TENSOR_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "data_type": st.sampled_from(list(TensorDataType)),
    "sizes": _SIZES,
    "strides": _SIZES,
    "flags": st.sampled_from(FLAGS),
    "total_tensor_size_in_bytes": st.sampled_from([0, 4, 16, 64, 4096]),
    "guaranteed_base_offset_alignment": st.sampled_from([0, 1, 2, 3, 16, 64]),
}
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "min_max_data_type": st.sampled_from(list(TensorDataType)),
    "axes": _SIZES,
    "spatial": st.booleans(),
    **dict.fromkeys(_BOOLEANS, st.booleans()),
    "epsilon": st.sampled_from([0.0, 1.0]),
    "steepness": st.sampled_from([0.5, 2.0]),
    "fused_activation": st.sampled_from([ACTIVATIONS[name]() for name in ACTIVATIONS])
    | st.just(ACTIVATIONS["relu"](input_tensor=tensor())),
}


@st.composite
def _changed(draw: st.DrawFn, operators: tuple[str, ...]) -> Any:
    """Draw a descriptor that may be valid or not."""
    desc = draw(_valid(operators))
    for _ in range(draw(st.integers(0, 2))):
        others = [name for name in _FIELDS if hasattr(desc, name)]
        name = draw(st.sampled_from([*_tensors(desc), *others]))
        if name in _FIELDS:
            desc = dataclasses.replace(desc, **{name: draw(_FIELDS[name])})
            continue
        field = draw(st.sampled_from(list(_TENSOR_FIELDS)))
        change = {field: draw(_TENSOR_FIELDS[field])}
        if field in ("sizes", "strides") and draw(st.booleans()):  # of the right rank
            rank = len(getattr(desc, name).sizes)
            change = {field: tuple(draw(st.integers(0, 30)) for _ in range(rank))}
        of_all = draw(st.booleans())
        for other, described in _tensors(desc).items():
            if other == name or of_all:
                new = dataclasses.replace(described, **change)
                desc = dataclasses.replace(desc, **{other: new})
    return desc


def _check_activation(name: str, desc: Any, x: Array, result: Array) -> None:
    row = _ROWS[name]
    parameters = tuple(getattr(desc, field) for field in row.fields)
    if x.dtype.kind == "f":
        exact = exact_values(row, x, parameters)
        reference.assert_within(result, exact, allowed_errors(row, exact), name)
    elif name == "relu":
        reference.assert_same_values(result, np.maximum(x, 0))
    else:
        reference.assert_same_values(result, integer_shrink(x, *parameters))


def _check_normalization(desc: Any, inputs: list[Array], result: Array) -> None:
    if desc.fused_activation is None:
        expected, allowed = reference.batch_normalization(*inputs, epsilon=desc.epsilon)
        return reference.assert_within(result, expected, allowed)
    x, mean, variance, scale, bias = (a.astype(np.float32) for a in inputs)
    between = dmlops.batch_normalization(x, mean, variance, scale, bias, desc.epsilon)
    name = desc.fused_activation.operator_type.name.removeprefix("ACTIVATION_").lower()
    row = _ROWS[name]
    parameters = tuple(getattr(desc.fused_activation, field) for field in row.fields)
    exact = exact_values(row, between, parameters)
    allowed = allowed_errors(row, exact)
    if result.dtype == np.float16:  # whose factor is a single number, with another rounding
        _, error = reference.batch_normalization(*inputs, epsilon=desc.epsilon)
        with np.errstate(invalid="ignore"):
            moved = [exact_values(row, between + e, parameters) for e in (error, -error)]
            allowed = allowed + np.max([np.nan_to_num(abs(y - exact)) for y in moved], axis=0)
    return reference.assert_within(result, exact, allowed, name)


def _function_of_groups(desc: Any, inputs: list[Array]) -> Any:
    """Call the function, whose bits are expected; its own tests compare it with references."""
    name = desc.operator_type.name.lower()
    if name in SEVERAL_OUTPUTS:
        more = {} if name.endswith("grad") else {"fused_activation": desc.fused_activation}
        return getattr(dmlops, name)(*inputs, epsilon=desc.epsilon, **more)
    axes = getattr(desc, "axes", (1, 2, 3) if getattr(desc, "cross_channel", False) else (2, 3))
    function: Any = dmlops.mean_variance_normalization
    return function(
        *inputs,
        axes=axes,
        use_mean=getattr(desc, "use_mean", True),
        use_variance=getattr(desc, "use_variance", getattr(desc, "normalize_variance", True)),
        epsilon=desc.epsilon,
        fused_activation=desc.fused_activation,
    )


def _check(desc: Any, inputs: list[Array], results: list[Array]) -> None:
    kind, result = desc.operator_type.name, results[0]
    if kind.lower() in (*_MOMENTS, *SEVERAL_OUTPUTS):
        expected = _function_of_groups(desc, inputs)
        for actual, right in zip(results, reference.as_tuple(expected), strict=True):
            reference.assert_same_bits(actual, right)
    elif kind.startswith("ELEMENT_WISE_CLIP_GRAD"):
        reference.assert_same_values(
            result, two_inputs.clip_grad(inputs[0], inputs[1], desc.min, desc.max)
        )
    elif kind == "ACTIVATION_RELU_GRAD":
        reference.assert_same_values(result, two_inputs.relu_grad(*inputs))
    elif kind == "ACTIVATION_PARAMETERIZED_RELU":
        reference.assert_same_values(result, two_inputs.parameterized_relu(*inputs))
    elif kind.startswith("ELEMENT_WISE_CLIP"):
        scale = desc.scale_bias and (desc.scale_bias.scale, desc.scale_bias.bias)
        expected = reference.clip(inputs[0], desc.min, desc.max, scale)
        reference.assert_same_values(result, expected)
    elif kind == "BATCH_NORMALIZATION":
        _check_normalization(desc, inputs, result)
    elif kind.removesuffix("1").endswith("MAX"):
        axes = getattr(desc, "axes", (inputs[0].ndim - 1,))
        function = kind.removeprefix("ACTIVATION_").removesuffix("1").lower()
        reference.assert_within(result, *getattr(reference, function)(inputs[0], axes))
    else:
        _check_activation(kind.removeprefix("ACTIVATION_").lower(), desc, inputs[0], result)


def _run(desc: Any, level: FeatureLevel, seed: int, write: Callable[..., Any]) -> None:
    memories = {
        name: Memory(described, 64 * (seed % 2), seed + i)
        for i, (name, described) in enumerate(_tensors(desc).items())
    }
    if "variance_tensor" in memories:
        memory = memories["variance_tensor"]
        memory.view[...] = np.abs(np.array(memory.view))
    before = {name: memory.heap.copy() for name, memory in memories.items()}
    outputs = [memories.pop(name) for name in list(memories) if name.startswith("output")]
    around = [output.without_elements() for output in outputs]
    owned = {n: m.binding() for n, m in memories.items() if getattr(desc, n).flags}
    others = {n: m.binding() for n, m in memories.items() if n not in owned}
    compiled = Device(level).compile(desc, owned)
    write(compiled, others, outputs)
    _check(desc, [m.values() for m in memories.values()], [output.values() for output in outputs])
    for output, before_it in zip(outputs, around, strict=True):
        assert (output.without_elements() == before_it).all(), "padding was written"
    for name, memory in memories.items():
        assert (memory.heap == before[name]).all(), "an input was written"


def _dispatch(compiled: Any, inputs: dict[str, Any], outputs: list[Memory]) -> None:
    """Dispatch, after bindings that are refused and write nothing."""
    untouched = [output.heap.copy() for output in outputs]
    *first, binding = (output.binding() for output in outputs)
    short = dataclasses.replace(binding, size_in_bytes=0)
    odd = dataclasses.replace(binding, offset=binding.offset + 1)
    for wrong in (short, odd, None):
        with pytest.raises(dmlops.BindingError):
            compiled.dispatch(inputs, [*first, wrong])
    with pytest.raises(dmlops.BindingError):
        compiled.dispatch([], [*first, binding])
    for output, heap in zip(outputs, untouched, strict=True):
        assert (output.heap == heap).all()
    compiled.dispatch(inputs, [*first, binding])


@pytest.mark.parametrize("family", _FAMILIES)
@given(data=st.data(), level=st.sampled_from(list(FeatureLevel)), seed=st.integers(0, 99))
def test_any_descriptor(family: str, data: st.DataObject, level: FeatureLevel, seed: int) -> None:
    """Expect success at the descriptor's level, and refusal at lower levels, or at all."""
    desc = data.draw(_changed(_FAMILIES[family]))
    try:
        lowest = dmlops.required_feature_level(desc)
    except (dmlops.ValidationError, TypeError) as error:
        with pytest.raises(type(error)):
            Device(level).compile(desc)
        return
    if level < lowest:
        with pytest.raises(dmlops.ValidationError, match=f"DML_FEATURE_{lowest.name}"):
            Device(level).compile(desc)
        level = lowest
    on_every_variant(lambda: _run(desc, level, seed, _dispatch))
