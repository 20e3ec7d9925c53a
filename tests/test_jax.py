"""JAX's tracers: the code that error messages show."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import samples
from reference import assert_same_bits

import dmlops as _dmlops

dmlops: Any = _dmlops  # its types are those of NumPy arrays

X = samples.uniform((6, 8), np.float32)
ROW, ONE, TWO = (np.full(shape, 2, np.float32) for shape in ((1, 8), (1, 1), (1, 1)))


@pytest.fixture
def jax(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    return pytest.importorskip("jax")


# A function, its arrays by the names of the parameters, and its other arguments.
CALLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("gelu", {"input": X}, {}),
    ("log_softmax", {"input": X}, {"axes": 0}),
    ("mean_variance_normalization", {"input": X}, {"axes": (0, 1), "use_mean": False}),
    ("mean_variance_normalization", {"input": X, "bias": ROW}, {"epsilon": 0.5}),
    ("clip", {"input": X, "max": np.float32(0.5)}, {"min": -0.5}),
    (
        "batch_normalization",
        {"input": X, "mean": ROW, "variance": ROW, "scale": ONE, "bias": TWO},
        {},
    ),
    (
        "batch_normalization",
        {"input": X, "mean": ROW, "variance": ROW, "scale": ONE, "bias": TWO},
        {"epsilon": 1.0, "fused_activation": "relu"},
    ),
    ("batch_normalization_training", {"input": X, "scale": ROW, "bias": ROW}, {"epsilon": 1.0}),
    ("clip", {"input": X}, {"min": -np.inf, "max": np.float16(0.5)}),
    ("clip", {"input": X}, {"min": None, "scale_bias": dmlops.ScaleBias(np.float32(2), -np.inf)}),
    ("clip", {"input": X}, {"max": np.array(0.25), "scale_bias": None}),
    ("softmax", {"input": X}, {"axes": [0, 1]}),
    ("softmax", {"input": X}, {"axes": range(2)}),
    ("softmax", {"input": X}, {"axes": np.int64(0)}),
    ("softmax", {"input": X}, {"axes": np.array([0])}),
    ("mean_variance_normalization", {"input": X}, {"scale": None, "use_mean": np.False_}),
    (
        "mean_variance_normalization",
        {"input": X},
        {"fused_activation": dmlops.ActivationEluOperatorDesc(alpha=0.5)},
    ),
    (
        "mean_variance_normalization",
        {"input": X},
        {"fused_activation": dmlops.ActivationReluOperatorDesc},
    ),
]
DERIVATIVES = "; to differentiate it, define its derivative with jax.custom_jvp"


@pytest.mark.parametrize("transform", ["jit", "vmap", "vmap of jit"])
@pytest.mark.parametrize("case", CALLS, ids=lambda case: case[0])
def test_the_advice_works(transform: str, case: Any, jax: Any) -> None:
    """The code keeps all arguments, also those that are not arrays."""
    name, arrays, others = case
    transforms = {
        "jit": jax.jit,
        "vmap": jax.vmap,
        "vmap of jit": lambda function: jax.vmap(jax.jit(function)),
    }
    apply, is_batched = transforms[transform], transform != "jit"

    def direct(*given: Any) -> Any:
        return getattr(dmlops, name)(**dict(zip(arrays, given, strict=True)), **others)

    expected = direct(*arrays.values())
    batches = [np.stack([array, array]) for array in arrays.values()]
    given = batches if is_batched else list(arrays.values())
    with pytest.raises(TypeError, match=f"{name}: input is a .*Tracer, which stands") as caught:
        apply(direct)(*given)
    end = re.escape(DERIVATIVES)
    code = re.search(rf"(?m)through (jax\.pure_callback\(.*\)){end}$", str(caught.value))
    assert code is not None

    def advised(*traced: Any) -> Any:
        scope = {"jax": jax, "dmlops": dmlops, **dict(zip(arrays, traced, strict=True))}
        return eval(code[1], scope)

    results = jax.tree_util.tree_leaves(apply(advised)(*given))
    for result, right in zip(results, jax.tree_util.tree_leaves(expected), strict=True):
        one = result[1] if is_batched else result
        assert_same_bits(np.asarray(one), np.asarray(right))


def test_the_advice_is_short_for_arrays_alone(jax: Any) -> None:
    words = r"relu_grad: input_gradient is a .*through jax\.pure_callback\(dmlops\.relu_grad, "
    call = rf'{words}input, input, input_gradient, vmap_method="sequential"\){DERIVATIVES}$'
    with pytest.raises(TypeError, match=rf"(?m){call}"):
        jax.jit(lambda gradient: dmlops.relu_grad(X, gradient))(X)


def test_derivatives(jax: Any) -> None:
    for transform in (lambda function: function, jax.jit):
        words = rf"(?m)input is a .*Tracer.*\(dmlops\.gelu, input, input, .*\){DERIVATIVES}$"
        with pytest.raises(TypeError, match=words):
            jax.grad(transform(lambda x: dmlops.gelu(x).sum()))(X)
    relu = jax.custom_jvp(lambda x: jax.pure_callback(dmlops.relu, x, x))
    relu.defjvp(
        lambda primals, tangents: (
            relu(*primals),
            jax.pure_callback(dmlops.relu_grad, primals[0], *primals, jax.numpy.ones_like(*primals))
            * tangents[0],
        )
    )
    slope = jax.grad(lambda x: relu(x).sum())(X)
    assert_same_bits(np.asarray(slope), (X > 0).astype(np.float32))


def test_none_is_kept_unless_it_is_the_default(jax: Any) -> None:
    """The code would leave the argument out, and normalize another axis or lack an array."""
    words = r"softmax: input is a .*inside of jax\.pure_callback$"
    with pytest.raises(TypeError, match=rf"(?m){words}"):
        jax.jit(lambda x: dmlops.softmax(x, axes=None))(X)
    with pytest.raises(TypeError, match=r"(?m)batch_normalization: .*of jax\.pure_callback$"):
        jax.jit(lambda x: dmlops.batch_normalization(x, ROW, ROW, None, None))(X)


def test_other_errors_are_kept(jax: Any) -> None:
    with pytest.raises(TypeError, match=r"gelu\(\) got an unexpected keyword argument 'axis'"):
        jax.jit(lambda x: dmlops.gelu(x, axis=0))(X)
    with pytest.raises(TypeError, match=r"from_array: array is a .*inside of jax\.pure_callback"):
        jax.jit(dmlops.BufferTensorDesc.from_array)(X)
