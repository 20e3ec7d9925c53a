"""The demo: options, numbers, table, picture, and the whole program."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dmlops
from dmlops._cli import main
from dmlops._options import PICTURES

MAGIC = {
    ".png": b"\x89PNG",
    ".jpg": b"\xff\xd8\xff",
    ".webp": b"RIFF",
    ".pdf": b"%PDF",
    ".svg": b"<?xml",
}


@pytest.fixture(scope="module")
def demo() -> Any:
    """Return the demo's modules, which need its extra, with the digits and the results."""
    for package in ("sklearn", "matplotlib"):
        pytest.importorskip(package, reason="needs the extra 'demo'")
    names = ("data", "panels", "picture", "program", "steps", "table")
    demo = SimpleNamespace(**{name: import_module(f"dmlops._demo.{name}") for name in names})
    demo.digits = demo.data.digits()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo.steps, "SECONDS_PER_STEP", 0.01)
        demo.results = [demo.steps.measure(step) for step in demo.program.all_steps(demo.digits)]
    return demo


@pytest.fixture
def replayed(demo: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the program use existing results, and write no file."""
    results = iter(demo.results)
    monkeypatch.setattr(demo.data, "digits", lambda: demo.digits)
    monkeypatch.setattr(demo.steps, "measure", lambda _: next(results))
    monkeypatch.setattr(demo.picture.Figure, "savefig", lambda *_: None)
    return demo


# --- options, and missing packages: these need no extra -----------------------------------------


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("missing/picture.png", "the folder '{folder}/missing' does not exist"),
        ("file/picture.png", "the folder '{folder}/file' does not exist"),
        ("", "is a folder; name a file in it"),
        ("picture", "does not end in one of .png .jpg .webp .pdf .svg"),
        ("picture.docx", "does not end in one of .png .jpg .webp .pdf .svg"),
    ],
)
def test_bad_output_is_refused_before_anything_is_computed(
    output: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="2"):
        main(["demo", "--output", str(tmp_path / output)])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "argument --output" in captured.err
    assert message.format(folder=tmp_path) in captured.err
    assert "Loading" not in captured.err


def test_protected_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["demo", "--output", str(tmp_path / "picture.png")])
    assert "permission denied" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("missing", "names"),
    [
        (["sklearn"], "scikit-learn"),
        (["matplotlib"], "matplotlib"),
        (["sklearn", "matplotlib"], "scikit-learn and matplotlib"),
    ],
)
def test_missing_package_is_named_with_its_remedy(
    missing: list[str],
    names: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("sklearn", "matplotlib"):
        monkeypatch.setitem(sys.modules, module, None if module in missing else sys)
    path = tmp_path / "picture.png"
    assert main(["demo", "--output", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"dmlops: error: the demo needs {names}; install with: pip install 'dmlops[demo]'\n"
    )
    assert not path.exists()


# --- the numbers --------------------------------------------------------------------------------


def test_results_are_as_accurate_as_promised(demo: Any) -> None:
    assert [result.accurate for result in demo.results] == [True] * 6
    rounded = [result.max_ulp > 0 for result in demo.results]
    assert rounded == [result.step.dtype != "uint8" for result in demo.results]


def test_numpy_computes_the_same(demo: Any) -> None:
    for step in (result.step for result in demo.results):
        assert step.numpy_output.dtype == step.output.dtype
        error, _ = demo.steps.errors(step, step.numpy_output)
        unit = 0 if step.dtype == "uint8" else np.finfo(step.dtype).eps * np.abs(step.exact).max()
        assert error <= 4 * unit, step.title


def test_a_wrong_value_is_found(demo: Any) -> None:
    for step in (result.step for result in demo.results):
        output = step.output.copy()
        output.flat[7] += 1
        error, ulp = demo.steps.errors(step, output)
        assert error == pytest.approx(1, rel=0.01)
        assert ulp > step.promised_ulp


def test_photographs_are_not_copied(demo: Any) -> None:
    normalized, _, _, stretched, *_ = (result.step for result in demo.results)
    assert normalized.input.shape == (1, 3, 427, 640)
    assert normalized.input.strides[1:] == (4, 640 * 3 * 4, 3 * 4)  # channels-last memory
    assert not stretched.input.flags.c_contiguous
    assert stretched.input.base is not None


def test_operators_do_what_the_picture_says(demo: Any) -> None:
    float32, float16, tone, stretch, *_ = (result.step for result in demo.results)
    for step in (float32, float16):
        output = step.output.astype(np.float64)
        np.testing.assert_allclose(output.mean((0, 2, 3)), 0.5, atol=2e-3)
        np.testing.assert_allclose(output.std((0, 2, 3)), 0.2, atol=2e-3)
    assert (tone.output.min(), tone.output.max()) == (0, 1)
    assert (stretch.output.min(), stretch.output.max()) == (0, 255)
    assert stretch.output.std() > 2 * stretch.input.std()


def test_digits_agree_with_the_classifier(demo: Any) -> None:
    output = demo.results[-1].step.output
    assert demo.digits.difference(output) < demo.data.TOLERANCE
    assert demo.digits.difference(output + np.float32(0.001)) > demo.data.TOLERANCE
    np.testing.assert_allclose(np.exp(output).sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(demo.results[-2].step.output, np.exp(output), rtol=1e-5)
    assert np.mean(output.argmax(-1) == demo.digits.labels) > 0.9


def test_times_belong_to_their_function(demo: Any) -> None:
    random = np.random.default_rng(0).random
    slow, fast = demo.steps.shortest_times(lambda: random(200_000), lambda: None, 0.05)
    assert slow > 10 * fast > 0


# --- the table and the picture ------------------------------------------------------------------


def test_table_has_a_row_for_each_step_in_straight_columns(demo: Any) -> None:
    header, rule, *rows = demo.table.render(demo.results, demo.digits).splitlines()
    gaps = [index for index, character in enumerate(rule) if character == " "]
    for row in (header, *rows[:6]):
        assert all(row[index : index + 1] in ("", " ") for index in gaps)
    for row, result in zip(rows, demo.results, strict=False):
        assert row.startswith(result.step.title)
        assert result.step.operator in row
        assert row.split()[-1] == f"{result.numpy_seconds / result.dmlops_seconds:.1f}"
    assert rows[6] == ""
    for threads, text in ((1, ", 1 thread\n"), (2, ", 2 threads\n")):
        with dmlops.num_threads(threads):
            assert text in demo.table.render(demo.results, demo.digits)


@pytest.mark.parametrize("ending", PICTURES)
def test_picture_formats(demo: Any, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture{ending}"
    demo.picture.write(path, demo.results, demo.digits)
    assert path.read_bytes().startswith(MAGIC[ending])


def test_picture_does_not_depend_on_the_users_settings(demo: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    demo.picture.write(first, demo.results, demo.digits)
    settings = {"font.size": 30, "savefig.dpi": 20, "xtick.color": "red"}
    with import_module("matplotlib").rc_context(settings):
        demo.picture.write(second, demo.results, demo.digits)
    assert first.read_bytes() == second.read_bytes()


def test_labels_of_the_picture_do_not_overlap_or_leave_it(demo: Any) -> None:
    with import_module("matplotlib").rc_context(demo.panels.STYLE):
        figure = demo.picture.draw(demo.results, demo.digits)
        import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure).draw()
        labels = list(visible_labels(figure))
        boxes = [label.get_window_extent() for label in labels]
    width, height = figure.get_size_inches() * figure.dpi
    assert width == 1600
    assert len(labels) > 100
    for index, (label, box) in enumerate(zip(labels, boxes, strict=True)):
        assert 0 <= box.x0 < box.x1 <= width, label
        assert 0 <= box.y0 < box.y1 <= height, label
        for other, other_box in zip(labels[:index], boxes[:index], strict=True):
            assert not box.overlaps(other_box), (label, other)


def visible_labels(figure: Any) -> Iterator[Any]:
    """Yield all text of a figure; ticks beyond an axis' limits exist but are not drawn."""
    yield from figure.texts
    for axes in figure.axes:
        yield from (title for title in (axes.title, axes._left_title) if title.get_text())
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = axis.get_view_interval()
            if axis.label.get_text():
                yield axis.label
            for tick in axis.get_major_ticks():
                if low <= tick.get_loc() <= high:
                    yield tick.label1


# --- the program --------------------------------------------------------------------------------


def test_less_accurate_results_are_a_failure(
    replayed: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worse = iter([dataclasses.replace(replayed.results[0], max_ulp=99), *replayed.results[1:]])
    monkeypatch.setattr(replayed.steps, "measure", lambda _: next(worse))
    monkeypatch.setattr(replayed.data, "TOLERANCE", 0)
    assert main(["demo"]) == 1
    captured = capsys.readouterr()
    assert "less accurate than promised: normalize flower, digits against" in captured.err
    assert "normalize flower" in captured.out


def test_unwritable_picture_is_a_message(
    replayed: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replayed.picture.Figure, "savefig", full)
    assert main(["demo"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("dmlops: error: the picture cannot be written: [Errno 28] No space")


def test_demo_runs_without_a_display(demo: Any, tmp_path: Path) -> None:
    displays = ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")
    result = subprocess.run(
        [sys.executable, "-m", "dmlops", "demo"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name not in displays},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1] == "Drawing the picture ..."
    for step in (result.step for result in demo.results):
        assert step.title in result.stdout
    assert result.stdout.endswith("Picture: dmlops-demo.png\n")
    pixels = import_module("matplotlib.image").imread(tmp_path / "dmlops-demo.png")
    assert pixels.shape[1] == 1600
    assert pixels[..., :3].std() > 0.1
