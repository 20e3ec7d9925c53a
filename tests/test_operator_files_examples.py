"""The operator files in examples: the results of each."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from activation_reference import allowed_errors, exact_values
from activation_rows import ROWS
from operator_files import EXAMPLES, printed
from reference import assert_within

from dmlops._cli import main


def _example(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["run", str(EXAMPLES / f"{name}.json")]) == 0
    return printed(capsys.readouterr().out)


def test_every_example_is_tested() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.json")}
    assert names == {
        *("clip", "clip1", "batch_normalization", "batch_normalization_training"),
        *("mean_variance_normalization", "log_softmax", "softmax", "activations", "gradients"),
    }


def test_example_clip(capsys: pytest.CaptureFixture[str]) -> None:
    assert _example("clip", capsys)["x"].tolist() == [-2.5, -2.5, -2.5, -1, 1, 3, 5, 7, 9]


def test_example_clip1(capsys: pytest.CaptureFixture[str]) -> None:
    result = _example("clip1", capsys)["y"]
    assert (result - 2**62).tolist() == [[-1, -1, -1], [0, 1, 1]]


def test_example_batch_normalization(capsys: pytest.CaptureFixture[str]) -> None:
    result = _example("batch_normalization", capsys)["result"]
    assert result.dtype == np.float16
    assert result.tolist() == [[[[-0.5, 0], [2, 4]], [[8, 9], [10, 11]]]]


def test_example_batch_normalization_training(capsys: pytest.CaptureFixture[str]) -> None:
    results = {
        k: v.ravel().tolist() for k, v in _example("batch_normalization_training", capsys).items()
    }
    assert results == {
        **{"y": [-1, 0, 1, 4], "mean": [3], "variance": [3.5]},
        **{"dx": [0.375, -0.3125, 0, -0.0625], "dscale": [-2.5], "dbias": [0]},
    }


def test_example_gradients(capsys: pytest.CaptureFixture[str]) -> None:
    results = {k: v.ravel().tolist() for k, v in _example("gradients", capsys).items()}
    assert results == {
        **{"of relu": [0, 0, 3, 4], "of clip": [0, 0, 3, 0]},
        **{"dx": [4, 8, 12, 16], "dscale": [4.5], "dbias": [10]},
    }


def test_example_mean_variance_normalization(capsys: pytest.CaptureFixture[str]) -> None:
    results = _example("mean_variance_normalization", capsys)
    assert results["layer"].tolist() == [[-1, -1, 0, 3], [1.5, 0, -0.5, -2]]
    assert results["RMS"].tolist() == [[0.25, 0.5, 0.75, 1.5], [1.5, 0.75, 0.5, 0.25]]


def test_example_softmax(capsys: pytest.CaptureFixture[str]) -> None:
    results = _example("softmax", capsys)
    assert results["softmax"].tolist() == [[0.25] * 4, [0.5, 0, 0.5, 0]]
    assert results["hardmax"].tolist() == [[0] * 4, [1, 0, 0, 0]]


def test_example_log_softmax(capsys: pytest.CaptureFixture[str]) -> None:
    small = -1.670156131839396e-05
    results = _example("log_softmax", capsys)
    np.testing.assert_allclose(
        results["over first and last"].ravel(),
        [-222, -234, -112 + small, small, -231, 0, -11 + small, -112 + small],
        rtol=3e-7,
    )
    np.testing.assert_allclose(
        results["of rows"].ravel(),
        [-6.144193477732806e-06, -12.000006144193478, -112, 0, -231, 0, -math.exp(-101), -101],
        rtol=3e-7,
        atol=1e-44,
    )


def test_example_activations(capsys: pytest.CaptureFixture[str]) -> None:
    results = _example("activations", capsys)
    assert results.keys() == {"parameterized_relu", *(row.name for row in ROWS)}
    assert results["parameterized_relu"].tolist() == [-0.75, -1, -0.75, 0, 1, 2, 3]
    document = json.loads((EXAMPLES / "activations.json").read_text())
    x = np.arange(-3, 4, dtype=np.float32)
    for row in ROWS:
        desc = document["dispatchables"][row.name]["desc"]
        exact = exact_values(row, x, tuple(v for k, v in desc.items() if not k.endswith("Tensor")))
        assert_within(results[row.name], exact, allowed_errors(row, exact), row.name)
