"""dmlops accuracy: its exact formulas, how it counts errors, and every row within its bound."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from descriptors import SEVERAL_OUTPUTS

import dmlops
from dmlops._accuracy import page, peers
from dmlops._accuracy.exact import exact
from dmlops._accuracy.measure import errors, largest, measure, ulp
from dmlops._accuracy.rows import Row, all_rows
from dmlops._cli import main
from dmlops._table import ACTIVATIONS, Operator

Array = npt.NDArray[Any]
ROWS = all_rows()
COUNT = 64  # elements per row that are compared with 50 digits


# The formulas of the table, which the documentation shows, in mpmath's arithmetic.
FORMULAS = {row.function: compile(row.formula, row.function, "eval") for row in ACTIVATIONS}
NAMES = {name: getattr(mpmath, name) for name in ("erf", "exp", "ln", "sqrt", "tanh")}


def rows_of(*operators: str) -> list[Row]:
    return [row for row in ROWS if row.operator in operators and row.dtype == "float32"]


def close(value: Any, expected: Any, magnitude: Any) -> bool:
    """Return True within a ten-thousandth of float32's ulp of the magnitude."""
    high = float(expected)
    allowed = 1e-4 * float(ulp(np.array([magnitude], np.longdouble), np.float32)[0])
    return abs(float(value) - high) <= allowed or value == high


@pytest.mark.parametrize("row", rows_of(*FORMULAS), ids=lambda row: row.name)
def test_formulas_against_200_digits(row: Row) -> None:
    # The subtractions of some formulas cancel 45 digits where the result is next to 2^-149.
    with mpmath.workdps(200):
        parameters = {k: mpmath.mpf(float(np.float32(v))) for k, v in row.parameters.items()}
        inputs = [x[:COUNT] for x in row.inputs_of(1000)]
        value, magnitude = exact(row.operator, inputs, row.parameters)
        for x, got, size in zip(inputs[0].tolist(), value, magnitude, strict=True):
            names = NAMES | parameters | {"x": mpmath.mpf(x)}
            expected = eval(FORMULAS[row.operator], names)
            assert close(got, expected, size), f"{x!r}: {got!r}, not {expected}"


@pytest.mark.parametrize("row", rows_of("batch_normalization"), ids=lambda row: row.name)
def test_normalization_against_50_digits(row: Row) -> None:
    inputs = row.inputs_of(1000)
    value, magnitude = row.exact(inputs)
    with mpmath.workdps(50):
        epsilon = mpmath.mpf(float(np.float32(1e-5)))
        for index in np.ndindex(2, 20):
            parts = [x[index] if len(x) > 1 else x[0, index[1]] for x in inputs]
            x, mean, variance, scale, bias = (mpmath.mpf(float(part)) for part in parts)
            expected = scale * (x - mean) / mpmath.sqrt(variance + epsilon) + bias
            assert close(value[index], expected, magnitude[index])


def normalized_by(x: list[Any], use_mean: bool) -> tuple[Any, Any]:
    """Return mean and variance with 50 digits."""
    mean = mpmath.fsum(x) / len(x) if use_mean else mpmath.mpf(0)
    return mean, mpmath.fsum((v - mean) ** 2 for v in x) / len(x)


def numbers(array: Array) -> list[Any]:
    return [mpmath.mpf(float(v)) for v in array.ravel()]


@pytest.mark.parametrize("row", rows_of("mean_variance_normalization"), ids=lambda row: row.name)
def test_own_moments_against_50_digits(row: Row) -> None:
    inputs = row.inputs_of(1000)
    value, magnitude = row.exact(inputs)
    with mpmath.workdps(50):
        epsilon = mpmath.mpf(float(np.float32(1e-5)))
        x, scale, bias = (numbers(array[0]) for array in inputs)
        mean, variance = normalized_by(x, bool(row.parameters.get("use_mean", True)))
        root = mpmath.sqrt(variance + epsilon)
        for i in range(COUNT):
            expected = scale[i] * (x[i] - mean) / root + bias[i]
            assert close(value[0, i], expected, magnitude[0, i])


@pytest.mark.parametrize("row", rows_of(*SEVERAL_OUTPUTS), ids=lambda row: row.name)
def test_training_against_50_digits(row: Row) -> None:
    inputs = row.inputs_of(1000)
    value, magnitude = row.exact(inputs)
    with mpmath.workdps(50):
        epsilon = mpmath.mpf(float(np.float32(1e-5)))
        for channel in range(8):
            x, *others = (numbers(array[:, channel]) for array in inputs)
            own = normalized_by(x, use_mean=True)
            if row.operator == "batch_normalization_training":
                (scale,), (bias,) = others
                root = mpmath.sqrt(own[1] + epsilon)
                normalized = [scale * (v - own[0]) / root + bias for v in x]
                expected = (normalized, [own[0]], [own[1]])[row.output]
            else:
                dy, (mean,), (variance,), (scale,) = others
                inverse, center = 1 / mpmath.sqrt(variance + epsilon), own[0]
                if row.operator == "batch_normalization_grad":
                    shifts = [mpmath.mpf(0)] * len(x)
                else:
                    each = zip(x, dy, strict=True)
                    slope = mpmath.fsum(g * (v - center) for v, g in each) / len(x) * inverse**2
                    shifts = [(v - center) * slope + mpmath.fsum(dy) / len(x) for v in x]
                gradient = [
                    scale * inverse * (g - shift) for g, shift in zip(dy, shifts, strict=True)
                ]
                each = zip(x, dy, strict=True)
                of_scale = mpmath.fsum(g * (v - mean) for v, g in each) * inverse
                expected = (gradient, [of_scale], [mpmath.fsum(dy)])[row.output]
            found = zip(value[:, channel], expected, magnitude[:, channel], strict=True)
            assert all(close(got, right, size) for got, right, size in found)


@pytest.mark.parametrize("row", rows_of("softmax"), ids=lambda row: row.name)
def test_softmax_against_50_digits(row: Row) -> None:
    inputs = [x[:2, :1000] for x in row.inputs_of(1000)]
    value, magnitude = row.exact(inputs)
    with mpmath.workdps(50):
        for x, got, sizes in zip(inputs[0], value, magnitude, strict=True):
            logits = numbers(x)
            terms = [mpmath.exp(v - max(logits)) for v in logits]
            for term, one, size in list(zip(terms, got, sizes, strict=True))[:COUNT]:
                assert close(one, term / mpmath.fsum(terms), size)


def test_hardmax_and_gradients_by_hand() -> None:
    x, dy = np.array([[1, 3, 3, -2]], np.float32), np.array([[1, 2, 3, 4]], np.float32)
    assert exact("hardmax", [x], {})[0].tolist() == [[0, 1, 0, 0]]
    assert exact("relu_grad", [x - 1, dy], {})[0].tolist() == [[0, 2, 3, 0]]
    assert exact("clip_grad", [x, dy], {"min": -2, "max": 3})[0].tolist() == [[1, 0, 0, 0]]
    assert exact("parameterized_relu", [x, dy], {})[0].tolist() == [[1, 3, 3, -8]]


SMALL_GROUPS = [row for row in rows_of("log_softmax") if "100,000" not in row.inputs]


@pytest.mark.parametrize("row", SMALL_GROUPS, ids=lambda row: row.name)
def test_log_softmax_against_50_digits(row: Row) -> None:
    inputs = row.inputs_of(1000)
    value, magnitude = exact(row.operator, inputs, {})
    with mpmath.workdps(50):
        for x, got, sizes in list(zip(inputs[0], value, magnitude, strict=True))[:10]:
            logits = numbers(x)
            top = max(logits)
            log = mpmath.log(mpmath.fsum(mpmath.exp(v - top) for v in logits))
            for one, result, size in list(zip(logits, got, sizes, strict=True))[:COUNT]:
                unit = abs(one - top - log) if row.relative else size
                assert close(result, one - top - log, unit)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_dmlops_keeps_every_promise(row: Row) -> None:
    """On few elements, to be quick; the page in the documentation shows a million for each."""
    line = measure(row, {peers.OURS: peers.Dmlops()}, 10_000)
    assert line.kept, f"{line.worst[peers.OURS]}, allowed are {line.allowed:.2f} ulp"


@pytest.mark.parametrize(
    "row", [row for row in ACTIVATIONS if row.error is not None], ids=lambda row: row.function
)
def test_largest_errors_in_docstrings(row: Operator) -> None:
    """The stated error occurs at the stated place, and a sample has no larger one."""
    assert row.error is not None
    stated, place = row.error
    sample = np.random.default_rng(0).uniform(-10, 10, 200_000)
    x = np.concatenate([[place], sample]).astype(np.float32)
    y = peers.Dmlops()(row.function, [x.copy()], row.defaults)
    assert isinstance(y, np.ndarray)
    found = errors(y, *exact(row.function, [x], row.defaults))
    assert round(float(found[0]), 3) == stated
    assert round(float(found.max()), 3) == stated


def test_errors_by_hand() -> None:
    one, largest32 = np.array([1.0], np.longdouble), np.finfo(np.float32).max
    unit = 2.0**-23
    for result, expected, error in (
        (1.0, 1.0, 0),
        (1 + unit, 1.0, 1),
        (1.0, 1 + unit / 4, 0.25),
        (math.nan, 1.0, math.inf),
        (2.0**-149, 0.0, 1),
        (-(2.0**-149), 2.0**-149, 2),
        (math.inf, math.inf, 0),
        (math.inf, 2.0**128, 0),
        (math.inf, float(largest32), 1),
        (-math.inf, math.inf, 2.0**25),
    ):
        value = np.array([expected], np.longdouble)
        found = errors(np.array([result], np.float32), value, np.abs(value))
        assert found[0] == error, (result, expected)
    assert ulp(one, np.float16)[0] == 2.0**-10
    assert ulp(np.array([1e-6], np.longdouble), np.float16)[0] == 2.0**-24
    worst = largest(np.ones(3, np.float32), np.array([1, 2, np.nan]), np.ones(3), np.zeros(3))
    assert worst.where == "[1], input 0.0"
    assert (worst.got, worst.exact) == (1, 2)


def test_a_loss_of_accuracy_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def coarse(self: Any, operator: str, inputs: Any, parameters: Any) -> Array:
        rounded: Array = np.tanh(inputs[0].astype(np.float16)).astype(np.float32)
        return rounded

    monkeypatch.setattr(peers.Dmlops, "__call__", coarse)
    assert main(["accuracy", "--quick", "--only", "tanh/float32/-1", "--peers", "numpy"]) == 1
    captured = capsys.readouterr()
    assert "less accurate than promised: tanh/float32/-1 to 1" in captured.err
    assert "TOO LARGE" in captured.out


def test_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "page.md"
    target.write_text(f"# Title\n\n{page.BEGIN}\nold\n{page.END}\n\nend\n", encoding="utf-8")
    figures = tmp_path / "figures.json"
    words = ["accuracy", "--quick", "--only", "hard_sigmoid", "--only", "gelu/float16"]
    assert main([*words, "--peers", "numpy", "--page", str(target), "--json", str(figures)]) == 0
    captured = capsys.readouterr()
    assert "hard_sigmoid(alpha=0.2, beta=0.5)/float32/-1 to 1" in captured.out
    assert "numpy: not compared (gelu)" in captured.out
    assert "[1/5]" in captured.err
    text = target.read_text(encoding="utf-8")
    assert text.startswith("# Title\n\n<!--")
    assert text.endswith("-->\n\nend\n")
    assert "old" not in text
    assert "| `hard_sigmoid(alpha=0.2, beta=0.5)` | all magnitudes | 1.00 | **0.50** |" in text
    rows = json.loads(figures.read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 5
    assert all(0 < row["ulp"]["dmlops"] <= row["allowed"] for row in rows)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_result_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--only", "softsign/float32", "--peers", "numpy", "--json", "/dev/full"]
    assert main(["accuracy", "--quick", *words]) == 2
    assert "cannot write: [Errno 28]" in capsys.readouterr().err


def test_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "picture.svg"
    words = ["accuracy", "--quick", "--only", "softsign/float32", "--peers", "numpy"]
    assert main([*words, "--picture", str(target)]) == 0
    assert b"<svg" in target.read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "cosh"], "no row's name contains 'cosh'"),
        (["--only", "tanh", "--only", "cosh"], "no row's name contains 'cosh'; a valid name is"),
        (["--json", "."], "'.' is a folder"),
        (["--picture", "a.docx"], "does not end in one of .png .jpg .webp .pdf .svg"),
        (["--peers", "numpy,mathlab"], "mathlab unknown; the peers are numpy, torch"),
        (["--page", "no-such-folder/page.md"], "the folder 'no-such-folder' does not exist"),
        (["--only", "relu/float16", "--page", "README.md"], "no lines '<!-- begin"),
    ],
)
def test_mistakes(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_text("text", encoding="utf-8")
    try:
        status: Any = main(["accuracy", "--quick", "--peers", "numpy", *words])
    except SystemExit as exit:  # of argparse
        status = exit.code
    assert status == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "[1/" not in captured.err  # nothing was measured


@pytest.mark.parametrize("seed", range(8))
def test_deviations_next_to_a_mean_that_is_near_zero(seed: int) -> None:
    """2 ulp, and 2^-47 of the mean in each deviation; in exact arithmetic up to the root."""
    draws = np.random.default_rng(seed)
    x = (draws.standard_normal(60) + draws.uniform(-4, 4)).astype(np.float32)
    for _ in range(6):  # the last element approaches the mean
        x[-1] = x.mean(dtype=np.float64)
    values = [Fraction(float(value)) for value in x]
    mean = sum(values) / len(x)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(x))
    expected = np.array([float(value - mean) / deviation for value in values])
    error = np.abs(dmlops.mean_variance_normalization(x, axes=0, epsilon=0) - expected)
    limit = 2 * np.spacing(np.abs(expected).astype(np.float32))
    assert (error <= limit + 2.0**-47 * abs(float(mean)) / deviation).all()
