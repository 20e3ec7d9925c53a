"""The equivalents in docs/names.md compute the same in NumPy, PyTorch and ONNX."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import samples

import dmlops
from dmlops import _activations, _operators
from dmlops import _table as table

PAGE = Path(__file__).parents[1] / "docs" / "names.md"
if not PAGE.is_file():  # as in an sdist
    pytest.skip("the documentation is not here", allow_module_level=True)

# dmlops, NumPy, PyTorch, ONNX, WebNN.
ROWS = re.findall(
    r"^\| `(\w+\(.*?\))` \|(.*)\|(.*)\|(.*)\|(.*)\|$",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE,
)
# The kind, dmlops, PyTorch, ONNX.
NORMALIZATIONS = re.findall(
    r"^\| ([\w, ]+) \| `(\w+\(.*\).*)` \| `(.*)` \| `(\w+)`.*\|$",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE,
)
# The kind, dmlops, PyTorch.
GRADIENTS = re.findall(
    r"^\| ([\w ]+) \| `(\w+_grad\(.*\))` \| `(.*)` \|$",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE,
)
X = np.linspace(-4, 4, 81, dtype=np.float32).reshape(9, 9)


def assert_equivalent(ours: str, theirs: str, **names: Any) -> None:
    names = {"np": np, "x": X, "dmlops": dmlops} | names
    expected = np.asarray(eval(theirs.strip(" `"), names))
    result = eval(f"dmlops.{ours}", names).reshape(expected.shape)
    # Both compute in float32, some by formulas that cancel a few bits: 100 ulp.
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_no_row_is_overlooked() -> None:
    rows = (*ROWS, *(row[1:] for row in (*NORMALIZATIONS, *GRADIENTS)))
    listed = {ours.split("(")[0] for ours, *_ in rows}
    assert listed | {"batch_normalization"} == {*_operators.__all__, *_activations.__all__}


@pytest.mark.parametrize("row", [row for row in ROWS if row[1].strip()], ids=lambda row: row[0])
def test_numpy(row: tuple[str, ...]) -> None:
    assert_equivalent(row[0], row[1])


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    for row in ROWS:
        assert_equivalent(row[0], row[2], torch=torch, t=torch.from_numpy(X), F=torch.nn.functional)


@pytest.mark.parametrize("row", NORMALIZATIONS, ids=lambda row: row[0])
def test_torch_normalizations(row: tuple[str, ...]) -> None:
    torch = pytest.importorskip("torch")
    kind, ours, theirs, _ = row
    x = samples.uniform((2, 4, 3, 5), np.float32)
    shape = (1, 1, 3, 5) if kind == "layer" else (1, 4, 1, 1)
    scale, bias = (samples.uniform(shape, np.float32, seed=seed) for seed in (1, 2))
    weight, addend = (torch.from_numpy(array.squeeze()) for array in (scale, bias))
    theirs = re.sub(r"\bbias\b", "addend", theirs)
    names: dict[str, Any] = {"x": x, "n": 2, "groups": 2, "scale": scale, "bias": bias}
    names |= {"t": torch.from_numpy(x), "F": torch.nn.functional}
    assert_equivalent(ours, theirs, weight=weight, addend=addend, **names)


@pytest.mark.parametrize("row", GRADIENTS, ids=lambda row: row[0])
def test_torch_gradients(row: tuple[str, ...]) -> None:
    torch = pytest.importorskip("torch")
    _, ours, theirs = row
    x, dy = (samples.uniform((2, 4, 3, 5), np.float32, seed=seed) for seed in (1, 2))
    groups = {
        "mean": x.mean((0, 2, 3), keepdims=True),
        "variance": x.var((0, 2, 3), keepdims=True),
        "scale": samples.uniform((1, 4, 1, 1), np.float32, seed=3),
    }
    results = eval(f"dmlops.{ours}", {"dmlops": dmlops, "x": x, "dy": dy, **groups})
    mean, variance, weight = (torch.from_numpy(array.squeeze()) for array in groups.values())
    t, bias = torch.from_numpy(x), torch.zeros(4)
    for each in (t, weight, bias):
        each.requires_grad_()
    names = {"torch": torch, "F": torch.nn.functional, "t": t, "dt": torch.from_numpy(dy)}
    names |= {"mean": mean, "variance": variance, "weight": weight, "bias": bias}
    expected = eval(theirs, names)
    for result, each in zip(results, expected, strict=True):
        # Sums of 30 products, in PyTorch in float32.
        np.testing.assert_allclose(result.ravel(), each.numpy().ravel(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("row", [row for row in ROWS if row[3].strip()], ids=lambda row: row[0])
def test_onnx(row: tuple[str, ...]) -> None:
    onnx = pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    operators = re.findall(r"`(\w+)`", row[3])
    assert set(operators) <= {schema.name for schema in onnx.defs.get_all_schemas()}
    if len(operators) > 1:
        return  # a composition
    function, arguments = row[0].removesuffix(")").split("(", 1)
    given = inspect.signature(getattr(dmlops, function)).bind(*eval(f"[{arguments}]", {"x": X}))
    attributes, inputs = {}, {}
    for name, value in given.arguments.items():
        if (attribute := table.ROWS[function].onnx_attributes.get(name)) is not None:
            attributes[attribute] = float(value)
        else:
            inputs[name] = np.asarray(value, np.float32)
    node = onnx.helper.make_node(*operators, list(inputs), ["y"], **attributes)
    *starts, end = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in [*inputs, "y"]
    )
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "row", starts, [end]))
    (expected,) = reference.ReferenceEvaluator(model).run(None, inputs)
    assert_equivalent(row[0], "expected", expected=expected)


def test_onnx_normalizations() -> None:
    operators = pytest.importorskip("dmlops.onnx").OPERATORS
    for _, ours, _, name in NORMALIZATIONS:
        assert ours.split("(")[0] in operators[name].function + operators[name].note
