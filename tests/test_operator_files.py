"""`dmlops run` and `dmlops validate`: operators in JSON, with DirectML's names."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from descriptors import (
    ACTIVATIONS,
    TABLE,
    activation,
    batch_normalization,
    clip,
    log_softmax1,
    tensor,
)
from operator_files import EXAMPLES, Runner, as_json, c_name, clip_file, printed, put
from subprocesses import python

import dmlops
from dmlops import _core
from dmlops._cli import main
from dmlops._operator_file import initial
from dmlops._operator_file.descriptors import DESCS
from dmlops._operator_file.parse import read_model

# Descriptors


@pytest.mark.parametrize("operator", TABLE)
def test_every_operator(operator: str, tmp_path: Path) -> None:
    strided = tensor((2, 3), "FLOAT16", strides=(8, 2), total_tensor_size_in_bytes=64)
    desc = TABLE[operator][0](strided)
    kind = f"DML_OPERATOR_{desc.operator_type.name}"
    path = tmp_path / "operator.json"
    for name in (kind, kind.removeprefix("DML_OPERATOR_")):
        document = {"dispatchables": {"it": {"type": name, "desc": as_json(desc)}}}
        path.write_text(json.dumps(document))
        assert read_model(str(path)).operators["it"].desc == desc


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("inline", [False, True])
def test_every_fused_activation(name: str, inline: bool, tmp_path: Path) -> None:
    fused = ACTIVATIONS[name]()
    desc = batch_normalization(tensor((1, 2, 3, 4)), fused_activation=fused, spatial=False)
    document: Any = {
        "dispatchables": {"it": {"type": "BATCH_NORMALIZATION", "desc": as_json(desc)}}
    }
    if inline:
        field = document["dispatchables"]["it"]["desc"]["FusedActivation"]
        field |= field.pop("Desc")
        for null in ("InputTensor", "OutputTensor"):
            del field[null]
    path = tmp_path / "operator.json"
    path.write_text(json.dumps(document))
    assert read_model(str(path)).operators["it"].desc == desc


def test_infinite_and_nan_numbers(tmp_path: Path) -> None:
    path = tmp_path / "operator.json"
    desc = clip(tensor(), min=-math.inf, max=math.inf)
    document = {"dispatchables": {"it": {"type": "ELEMENT_WISE_CLIP", "desc": as_json(desc)}}}
    path.write_text(json.dumps(document))
    assert read_model(str(path)).operators["it"].desc == desc
    path.write_text(json.dumps(put(document, "dispatchables/it/desc/Max", "nan")))
    assert math.isnan(read_model(str(path)).operators["it"].desc.max)


_DESC = "dispatchables/clip/desc/"


@pytest.mark.parametrize(
    ("place", "value", "parts"),
    [
        ("dispatchable", {}, ["unknown field 'dispatchable'", "nearest is 'dispatchables'"]),
        (_DESC + "Minn", 0, ["dispatchables.clip.desc:", "'Minn'", "'Min'"]),
        (_DESC + "InputTensor/sizes", [1], ["clip.desc.InputTensor:", "'sizes'", "'Sizes'"]),
        (_DESC + "InputTensor/data_type", 1, ["'data_type'", "'DataType'"]),
        (_DESC + "ScaleBias", {"Scale": 1, "Offset": 2}, ["desc.ScaleBias:", "'Offset'"]),
        (_DESC + "ScaleBias", {"Scale": 1}, ["'Bias' is missing"]),
        (_DESC + "Max", ..., ["dispatchables.clip.desc: the field 'Max' is missing"]),
        (_DESC + "Max", None, ["'Max' is missing"]),
        (_DESC + "Max", "6", ["desc.Max:", '"6"']),
        (_DESC + "Max", True, ["desc.Max:", "true"]),
        (_DESC + "Max", {"Value": 1}, ["desc.Max:", '{"Value": 1}']),
        (_DESC + "InputTensor/DataType", "FLOAT23", ["DataType:", "'FLOAT23'", "'FLOAT32'"]),
        (_DESC + "InputTensor/DataType", "DML_TENSOR_DATA_TYPE_INT33", ["'INT32'"]),
        (_DESC + "InputTensor/Flags", "OWNED", ["'OWNED'", "'OWNED_BY_DML'"]),
        (_DESC + "InputTensor/DimensionCount", 2, ["DimensionCount", "is 2", "1 entry"]),
        (_DESC + "InputTensor/Sizes", 3, ["InputTensor.Sizes", "an array is needed, not 3"]),
        (_DESC + "InputTensor/Sizes", [1.5], ["InputTensor.Sizes[0]", "whole number", "1.5"]),
        (_DESC + "InputTensor/Type", "TEXTURE", ["'TEXTURE'", "'BUFFER'"]),
        ("dispatchables/clip/type", "DML_OPERATOR_CLIP", ["clip.type", "'ELEMENT_WISE_CLIP'"]),
        ("dispatchables/clip/type", "hlsl", ["(HLSL) are not supported"]),
        ("dispatchables/clip/type", ..., ["'type' is missing"]),
        ("dispatchables/clip/executionFlags", ["DISABLE"], ["DISABLE_META_COMMANDS"]),
        ("dispatchables/clip/dmlCompileType", "Graph", ["DmlCompileGraph"]),
        ("dispatchables/clip", [], ["dispatchables.clip", "an object is needed, not []"]),
        ("commands/0/dispatchable", "clap", ["commands[0].dispatchable", "'clap'", "'clip'"]),
        ("commands/0/bindings/InputTensor", "y", ["commands[0].bindings", "'y'", "'x'"]),
        ("commands/0/bindings/InputTensor", ["x", "x"], ["2 resources", "one"]),
        ("commands/0/bindings/InputTensor", {"nam": "x"}, ["'nam'", "'name'"]),
        ("commands/0/bindings/InputTensor", {"name": "x", "elementCount": -1}, ["-1", "least 0"]),
        ("commands/0/bindings/Input", "x", ["commands[0].bindings:", "'Input'", "'InputTensor'"]),
        ("commands/0/bindings/OutputTensor", ..., ["'OutputTensor' is missing"]),
        ("commands/0/type", "dispatched", ["unknown command 'dispatched'", "'dispatch'"]),
        ("commands/0/type", ..., ["commands[0]: the field 'type' is missing"]),
        ("commands/0", {"type": "print", "resource": "X"}, ["commands[0].resource", "'x'"]),
        ("commands/0", {"type": "print"}, ["'resource' is missing"]),
        ("resources/x/type", "texture", ["resources.x.type", "'buffer'"]),
        ("resources/x/initialValue", 0, ["resources.x:", "'initialValues'"]),
        ("resources", {}, ["unknown resource 'x'; there are none"]),
        ("commands", [], ["there are no commands"]),
        ("dispatchables", ..., ["the field 'dispatchables' is missing"]),
    ],
)
def test_what_is_wrong_with_a_file(
    place: str, value: Any, parts: list[str], runner: Runner
) -> None:
    """Errors are one line with the path, the problem, and the nearest known name."""
    runner.refused(put(clip_file(), place, value), *parts)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('{"resources": {},\n "dispatchables" {}}', ["is not valid JSON", "line 2, column 18"]),
        ('{"a": 1, "a": 2}', ["'a' occurs twice"]),
        ("[" * 100_000, ["is nested too deeply"]),
        ("9" * 5000, ["a whole number of over 4300 digits"]),
        ("[]", ["an object is needed"]),
        ("", ["is not valid JSON"]),
    ],
)
def test_what_is_no_operator_file(text: str, parts: list[str], runner: Runner) -> None:
    runner.refused(text, *parts)


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"\xe9": 1}')
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "latin.json"):
        for command in ("run", "validate"):
            assert main([command, str(path)]) == 2
            assert str(path) in capsys.readouterr().err


# Rules of DirectML


def test_a_refused_descriptor_and_a_refused_binding_are_status_1(runner: Runner) -> None:
    empty = put(clip_file(), _DESC + "InputTensor/Sizes", [0])
    runner.refused(
        empty, "clip: DML_ELEMENT_WISE_CLIP_OPERATOR_DESC: InputTensor has", "size 0", status=1
    )
    small = put(clip_file(), "resources/x/initialValues", [1, 2])
    runner.refused(small, "clip:", "bound to 8 bytes; it needs 12", status=1)
    odd = {"name": "x", "elementOffset": 1}
    offset = put(clip_file(), "commands/0/bindings/InputTensor", odd)
    runner.refused(offset, "bytes at offset 4; the buffer has 12", status=1)


def test_levels(runner: Runner) -> None:
    status, _, err = runner(clip_file(), "run", "--feature-level", "2_1")
    assert status == 1
    assert "DML_FEATURE_LEVEL_3_0 accepts it" in err
    for name in ("3_0", "3.0", "LEVEL_3_0", "DML_FEATURE_LEVEL_3_0"):
        assert runner(clip_file(), "run", "--feature-level", name)[0] == 0
    for command in ("run", "validate"):
        with pytest.raises(SystemExit, match="2"):
            main([command, "x.json", "--feature-level", "7_0"])


def test_validate(runner: Runner) -> None:
    document = put(clip_file(), "dispatchables/gelu", {
        "type": "ACTIVATION_GELU", "desc": as_json(activation("gelu")(tensor()))
    })  # fmt: skip
    del document["resources"], document["commands"]
    assert runner(document, "validate", "--feature-level", "3_0") == (
        1,
        "clip: accepted at DML_FEATURE_LEVEL_3_0; the lowest is DML_FEATURE_LEVEL_3_0\n"
        "gelu: refused: DML_ACTIVATION_GELU_OPERATOR_DESC needs DML_FEATURE_LEVEL_5_1;"
        " the device has 3_0\n",
        "",
    )
    status, out, _ = runner(document, "validate")
    assert status == 0
    assert "gelu: accepted at DML_FEATURE_LEVEL_6_4; the lowest is DML_FEATURE_LEVEL_5_1" in out
    status, out, _ = runner(put(document, _DESC + "InputTensor/Sizes", [0]), "validate")
    assert status == 1
    assert out.startswith(
        "clip: refused: DML_ELEMENT_WISE_CLIP_OPERATOR_DESC: InputTensor has sizes (0,)"
    )
    assert out.splitlines()[0].endswith("; no level accepts it")


def test_bounds_of_integers(runner: Runner) -> None:
    desc = as_json(TABLE["clip1"][0](tensor((2,), "INT32"))) | {"Min": 0.5}
    document = {"dispatchables": {"it": {"type": "ELEMENT_WISE_CLIP1", "desc": desc}}}
    status, out, _ = runner(document, "validate")
    assert status == 1
    assert "Min must be an integer" in out


def test_fused_operators_that_cannot_be(runner: Runner) -> None:
    fused = {"Type": "ELEMENT_WISE_CLIP", "Desc": {"Min": 0, "Max": 1}}
    desc = as_json(batch_normalization(tensor())) | {"FusedActivation": fused}
    document = {"dispatchables": {"it": {"type": "BATCH_NORMALIZATION", "desc": desc}}}
    status, out, _ = runner(document, "validate")
    assert status == 1
    assert "FusedActivation is DML_ELEMENT_WISE_CLIP_OPERATOR_DESC, which cannot be fused" in out
    advised = re.findall(r"\w+", out.partition("it must be one of ")[2])
    assert advised[: len(ACTIVATIONS)] == [f"ACTIVATION_{name.upper()}" for name in ACTIVATIONS]
    runner.refused(put(document, "dispatchables/it/desc/FusedActivation", {"Alpha": 1}), "'Type'")


def _change(desc: Any, **fields: Any) -> dict[str, Any]:
    kind = desc.operator_type.name
    return {"dispatchables": {"it": {"type": kind, "desc": as_json(desc) | fields}}}


TWO = {"DataType": "FLOAT32", "Sizes": [3, 2]}
SOFTPLUS = {"Type": "ACTIVATION_SOFTPLUS", "Steepness": 0.5}
REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        _change(clip(tensor()), OutputTensor=TWO),
        "OutputTensor has sizes (3, 2), but InputTensor has",
    ),
    (_change(log_softmax1(tensor((2, 3))), Axes=[5]), "_DESC: Axes has 5, which is out of range"),
    (_change(log_softmax1(tensor((2, 3))), Axes=[]), "_DESC: Axes is empty"),
    (_change(log_softmax1(tensor((2, 3))), Axes=[-1]), "_DESC: Axes[0] is -1"),
    (
        _change(clip(tensor()), OutputTensor=TWO | {"Strides": [1, -1]}),
        "OutputTensor.Strides[1] is -1",
    ),
    (_change(TABLE["clip1"][0](tensor()), MinMaxDataType="INT8"), "_DESC: MinMaxDataType is INT8"),
    (_change(activation("softplus")(tensor()), Steepness=0.5), "_DESC: Steepness is 0.5"),
    (
        _change(batch_normalization(tensor((1, 2, 3, 4))), FusedActivation=SOFTPLUS),
        "FusedActivation DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC: Steepness is 0.5",
    ),
    (
        _change(TABLE["log_softmax"][0](tensor((2, 3, 4)))),
        "an effective rank of 3; without leading sizes of 1 at most 2 dimensions are allowed"
        " (DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC takes any)",
    ),
]


@pytest.mark.parametrize(("file", "part"), REFUSED, ids=range(len(REFUSED)))
def test_refusals_have_the_names_of_directml(
    file: dict[str, Any], part: str, runner: Runner
) -> None:
    status, out, _ = runner(file, "validate", "--feature-level", "5_1")
    assert status == 1
    assert part in out
    runner.refused(
        file | {"commands": [{"type": "print", "resource": "x"}], "resources": {"x": {}}},
        part, status=1, more=("--feature-level", "5_1"),
    )  # fmt: skip


def test_spatial_has_the_name_of_directml(runner: Runner) -> None:
    desc = batch_normalization(
        tensor((1, 2, 3, 4)), mean_tensor=tensor((1, 2, 1, 1)), spatial=False
    )
    out = runner(_change(desc), "validate", "--feature-level", "3_1")[1]
    assert "MeanTensor is broadcast in dimension 2" in out
    assert "Spatial = FALSE does not allow" in out


def test_every_name_has_its_translation() -> None:
    """All names in messages are translated from snake case; Python's own messages are not."""
    for desc in DESCS.values():
        names = [field.name for field in dataclasses.fields(desc)]
        text = _core.directml_names("; ".join(f"{name} is" for name in (desc.__name__, *names)))
        words = [word.removesuffix(" is") for word in text.split("; ")]
        assert words == [
            f"DML_{desc.operator_type.name}_OPERATOR_DESC", *map(c_name, names),
        ]  # fmt: skip
    with pytest.raises(dmlops.ValidationError, match="ElementWiseClipOperatorDesc: input_tensor"):
        dmlops.Device().compile(clip(tensor((0,))))


# The command line


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\ufeff// größer\n" + json.dumps(clip_file())  # UTF-8 in every locale
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "ascii"))
    assert main(["run", "-"]) == 0
    assert printed(capsys.readouterr().out)["x"].tolist() == [0, 2, 6]


@pytest.mark.parametrize("command", ["info", "validate", "run"])
@pytest.mark.parametrize(
    "name", ["DMLOPS_ISA", "DMLOPS_NUM_THREADS", "DMLOPS_NON_TEMPORAL_THRESHOLD"]
)
def test_a_wrong_environment_is_one_line(command: str, name: str) -> None:
    words = [] if command == "info" else [str(EXAMPLES / "clip.json")]
    run = python("-m", "dmlops", command, *words, **{name: "sse9"})  # type: ignore[arg-type]
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"dmlops: error: {name}=sse9")
    assert run.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="variables are text")
@pytest.mark.parametrize(
    "name", ["DMLOPS_ISA", "DMLOPS_NUM_THREADS", "DMLOPS_NON_TEMPORAL_THRESHOLD"]
)
def test_a_wrong_environment_may_be_any_bytes(name: str) -> None:
    run = python("-m", "dmlops", "info", **{name: "3\n\udcff"})  # type: ignore[arg-type]
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"dmlops: error: {name}=3\\x0a\\xff ")


def test_a_wrong_environment_is_an_error_of_the_import() -> None:
    run = python("-c", "import dmlops", DMLOPS_NUM_THREADS="none")
    assert run.returncode == 1
    message = "ValueError: DMLOPS_NUM_THREADS=none is not a whole number from 1 to 1024\n"
    assert run.stderr.endswith(message)


def test_status_of_the_process() -> None:
    run = python("-m", "dmlops", "run", str(EXAMPLES / "clip.json"), "--feature-level", "2_0")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.endswith("DML_FEATURE_LEVEL_3_0 accepts it\n")
    assert python("-m", "dmlops", "run", "no.json").returncode == 2
    assert dmlops.__version__ in python("-m", "dmlops", "--version", DMLOPS_ISA="x").stdout


def test_somebodys_own_activation_is_left_alone() -> None:
    code = (
        "import dmlops; base = dmlops.ActivationReluOperatorDesc.__base__\n"
        "class Own(base): pass\n"
        "from dmlops._cli import main; raise SystemExit(main(['run', '../examples/clip.json']))"
    )
    run = python("-c", code)
    assert run.returncode == 0, run.stderr


def test_memory_that_runs_out_is_one_line(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("Unable to allocate 32.0 MiB")

    monkeypatch.setattr(initial, "_convert", fail)
    runner.refused(clip_file(), "not enough memory", "32.0 MiB")
