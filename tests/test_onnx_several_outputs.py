"""dmlops.onnx: nodes with several outputs; refusals of normalizations."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from onnx_models import NEWEST, parsed
from reference import as_tuple, assert_same_bits

import dmlops

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("dmlops.onnx")

Array = npt.NDArray[Any]


def test_several_outputs_in_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs that later nodes read, that are outputs of the graph, unused, and left out."""
    model = parsed("""
        several (float[2, 3, 4] x) => (float[2, 3, 4] y, float[3] mean, float[2, 3, 1] inverse)
        <float[4] scale = {1, 2, 3, 4}, float[3] one = {1, 1, 1}, float[3] zero = {0, 0, 0}>
        {
            layer, left_out, inverse = LayerNormalization (x, scale)
            positive = Relu (inverse)
            normal, mean, unused = BatchNormalization <training_mode = 1>
                (layer, one, zero, zero, one)
            y = Relu (normal)
        }
    """)
    model.graph.node[0].output[1] = ""
    prepared = backend.prepare(model)
    x = samples.uniform((2, 3, 4), np.float32)
    outputs = prepared.run([x])
    scale = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 4)
    layer = dmlops.mean_variance_normalization(x, scale)
    one = np.ones((1, 3, 1), np.float32)
    normal, mean, _ = dmlops.batch_normalization_training(layer, one, 0 * one)
    assert_same_bits(outputs.y, dmlops.relu(normal))
    np.testing.assert_allclose(outputs.mean, (1 - np.float32(0.9)) * mean.ravel(), rtol=2**-22)
    assert outputs.inverse.shape == (2, 3, 1)

    # Every value is freed after its last use: while the last node runs, `normal` alone is alive.
    made: list[weakref.ref[Array]] = []
    alive: list[int] = []
    for step in prepared._steps:

        def run(*arrays: Any, inner: Any = step.run) -> Any:
            alive.append(sum(each() is not None for each in made))
            results = inner(*arrays)
            made.extend(weakref.ref(value) for value in as_tuple(results))
            return results

        monkeypatch.setattr(step, "run", run)
    prepared.run([x])
    # Before each node: nothing; layer, inverse; the same; inverse, normal, mean.
    assert alive == [0, 2, 2, 3]


X = "float[2, 4, 3] x"
C4 = "float[4] s = {1, 1, 1, 1}, float[4] b = {1, 1, 1, 1}"
WRONG = {
    "axis": ("LayerNormalization <axis = 3> (x, b)", C4, "axis 3 is out of range for an input of"),
    "rms axis": ("RMSNormalization <axis = -4> (x, b)", C4, "axis -4 is out of range for an input"),
    "axes": ("MeanVarianceNormalization (x)", "", "axis 3 is out of range for an input of 3"),
    "scale": (
        "LayerNormalization <axis = 1> (x, s)",
        C4,
        "Scale has shape (4,), which does not broadcast to that of X, (2, 4, 3)",
    ),
    "bias": (
        "LayerNormalization (x, s, b)",
        "float[4, 1] s = {1, 1, 1, 1}, float[1, 1, 1, 1] b = {1}",
        "B has shape (1, 1, 1, 1), which does not broadcast to that of X, (2, 4, 3): aligned",
    ),
    "rms scale": (
        "RMSNormalization (x, s)",
        C4,
        "scale has shape (4,), which does not broadcast to that of X, (2, 4, 3)",
    ),
    "channels": (
        "InstanceNormalization (x, s, b)",
        "float[3] s = {1, 1, 1}, float[4] b = {1, 1, 1, 1}",
        "scale has shape (3,), but input has shape (2, 4, 3), for which it must be (4,)",
    ),
    "scale per group": (
        "GroupNormalization <num_groups = 2> (x, s, b)",
        "float[2] s = {1, 1}, float[2] b = {1, 1}",
        "scale has shape (2,), but X has shape (2, 4, 3), for which it must be (4,)",
    ),
    "groups": (
        "GroupNormalization <num_groups = 3> (x, s, b)",
        C4,
        "num_groups=3 must be positive and divide 4 channels",
    ),
    "no groups": (
        "GroupNormalization <num_groups = 0> (x, s, b)",
        C4,
        "num_groups=0 must be positive and divide 4 channels",
    ),
    "data type": (
        "LayerNormalization (x, s)",
        "float16[3] s = {1, 1, 1}",
        "Scale has data type float16, but X has float32; convert Scale",
    ),
}


def prepared_of(body: str, initializers: str, y: str = "y") -> Any:
    graph = f"g ({X}) => (float[2, 4, 3] y) <{initializers}> {{ {y} = {body} }}"
    model = parsed(graph, NEWEST)
    model.graph.node[0].name = "it"
    return backend.prepare(model)


@pytest.mark.parametrize("case", WRONG)
def test_invalid_nodes(case: str) -> None:
    body, initializers, message = WRONG[case]
    with pytest.raises(backend.ModelError) as raised:
        prepared_of(body, initializers)
    name = body.partition(" ")[0]
    assert f"{name} (node 'it'): {message}" in str(raised.value)


def test_inference_with_several_outputs() -> None:
    initializers = ", ".join(f"float[4] {name} = {{1, 1, 1, 1}}" for name in "sbmv")
    words = "3 outputs, but inference has only Y; remove the others"
    with pytest.raises(backend.ModelError, match=words):
        prepared_of("BatchNormalization (x, s, b, m, v)", initializers, y="y, mean, variance")


@pytest.mark.parametrize(
    ("body", "initializers", "words"),
    [
        ("LayerNormalization <stash_type = 16> (x, s)", "float s = {1}", "stash_type=16; dmlops"),
        ("RMSNormalization <stash_type = 11> (x, s)", "float s = {1}", "stash_type=11; dmlops"),
        ("GroupNormalization <num_groups = 1, stash_type = 10> (x, s, b)", C4, "stash_type=10;"),
        (
            "RMSNormalization (x, s)",
            "double s = {1}",
            "scale of data type float64; dmlops supports",
        ),
        (
            "BatchNormalization (x, s, b, m, v)",
            C4 + ", double[4] m = {1, 1, 1, 1}, double[4] v = {1, 1, 1, 1}",
            "input_mean of data type float64; dmlops supports float16, float32",
        ),
    ],
)
def test_unsupported_nodes(body: str, initializers: str, words: str) -> None:
    with pytest.raises(backend.UnsupportedError, match=words):
        prepared_of(body, initializers)


def test_group_normalization_of_sizes_that_are_not_known() -> None:
    model = parsed(
        "g (float[N, C, D] x, float[C] s) => (float[N, C, D] y) "
        "{ y = GroupNormalization <num_groups = 2> (x, s, s) }",
        opset=21,
    )
    prepared = backend.prepare(model)
    x, one = samples.uniform((2, 4, 3), np.float32), np.ones(4, np.float32)
    assert prepared.run([x, one]).y.shape == x.shape
    assert prepared.run([x[:0], one]).y.shape == (0, 4, 3)
    with pytest.raises(ValueError, match=r"GroupNormalization: num_groups=2 must .* 3 channels"):
        prepared.run([x[:, :3], one[:3]])


@pytest.mark.parametrize(
    ("operator", "x", "s"),
    [
        ("BatchNormalization (x, s, s, s, s)", (1, 3, 4), (1,)),
        ("BatchNormalization <training_mode = 1> (x, s, s, s, s)", (1, 3, 4), (1,)),
        ("InstanceNormalization (x, s, s)", (1, 3, 4), (1,)),
        ("GroupNormalization <num_groups = 1> (x, s, s)", (1, 4, 4), (1,)),
    ],
)
def test_parameters_of_other_sizes_than_the_channels_in_a_run(
    operator: str, x: tuple[int, ...], s: tuple[int, ...]
) -> None:
    """dmlops would broadcast a parameter of size 1."""
    model = parsed(
        f"g (float[N, C, L] x, float[K] s) => (float[N, C, L] y) {{ y = {operator} }}", opset=21
    )
    model.graph.node[0].name = "it"
    prepared = backend.prepare(model)
    with pytest.raises(ValueError, match=r"\(node 'it'\): scale has shape") as raised:
        prepared.run([np.ones(x, np.float32), np.ones(s, np.float32)])
    name = operator.partition(" ")[0]
    words = f"has shape {x}, for which it must be ({x[1]},)"
    assert str(raised.value).startswith(f"{name} (node 'it'): scale has shape {s}, but ")
    assert str(raised.value).endswith(words)
