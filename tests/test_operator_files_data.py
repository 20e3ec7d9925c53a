"""Operator files: initial values, files that are read and written, parts of resources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import samples
from descriptors import TABLE, operands, tensor, tensor_names
from operator_files import Runner, as_json, c_name, copy_file, followed, put
from reference import assert_same_bits

import dmlops
from dmlops._operator_file import execute, initial, resources

Array = npt.NDArray[Any]


# The operators


@pytest.mark.parametrize("operator", TABLE)
def test_every_operator_runs(operator: str, runner: Runner) -> None:
    desc = TABLE[operator][0](tensor((1, 1, 3, 2)))
    names = tensor_names(desc)
    inputs, _ = operands(desc)
    arrays = [samples.uniform((1, 1, 3, 2), np.float32, 0.5, 4, seed=i) for i in range(len(names))]
    dmlops.Device().compile(desc).dispatch(arrays[:inputs], results := arrays[inputs:])
    resources: dict[str, Any] = {name: {} for name in names}
    for name, array in zip(names[:inputs], arrays, strict=False):
        resources[name] = {
            "initialValuesDataType": "FLOAT32",
            "initialValues": array.ravel().tolist(),
        }
    file = {
        "resources": resources,
        "dispatchables": {"it": {"type": desc.operator_type.name, "desc": as_json(desc)}},
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "it",
                "bindings": {c_name(name): name for name in names},
            },
            *({"type": "print", "resource": name} for name in names[inputs:]),
        ],
    }
    printed = runner.arrays(file)
    assert list(printed) == names[inputs:]
    for array, expected in zip(printed.values(), results, strict=True):
        assert_same_bits(array, expected)


# Initial values


@pytest.mark.parametrize(
    ("data_type", "values", "expected"),
    [
        ("FLOAT32", [1, 2.5, "-inf"], [1, 2.5, -np.inf]),
        ("FLOAT16", [65504, 0.1, "inf"], [65504, np.float16(0.1), np.inf]),
        ("FLOAT32", [16777217, 0.1, 1e-45], [16777216, np.float32(0.1), np.float32(1e-45)]),
        ("UINT64", [0, 2**64 - 1, 2**53 + 1], [0, 2**64 - 1, 2**53 + 1]),
        ("INT8", [-128, 127, 0], [-128, 127, 0]),
        ("INT64", [-(2**63), 2**63 - 1, -1], [-(2**63), 2**63 - 1, -1]),
        ("FLOAT32", {"valueCount": 3, "value": 0.1}, [np.float32(0.1)] * 3),
        ("FLOAT32", {"valueCount": 3, "value": "inf"}, [np.inf] * 3),
        ("FLOAT16", {"valueCount": 3, "valueStart": 1, "valueDelta": 2.5}, [1, 3.5, 6]),
        ("INT16", {"valueCount": 3, "valueStart": 1, "valueDelta": -2}, [1, -1, -3]),
        (
            "UINT64",
            {"valueCount": 3, "valueStart": 2**64 - 1, "valueDelta": -(2**62)},
            [2**64 - 1, 3 * 2**62 - 1, 2**63 - 1],
        ),
    ],
)
def test_initial_values(data_type: str, values: Any, expected: list[Any], runner: Runner) -> None:
    result = runner.arrays(copy_file(data_type, [3], values))["y"]
    assert result.dtype == data_type.lower()
    assert result.tolist() == expected


def test_nan_as_an_initial_value(runner: Runner) -> None:
    file = copy_file("FLOAT32", [2], ["nan", 1])
    status, out, _ = runner(file)
    assert (status, out.splitlines()[-1]) == (0, "[nan,  1.]")


def test_long_sequences(monkeypatch: pytest.MonkeyPatch, runner: Runner) -> None:
    monkeypatch.setattr(initial, "_BLOCK", 7)
    for data_type, start, delta in [("INT64", 2**60, -3), ("FLOAT32", 0.5, 0.25), ("UINT8", 9, 0)]:
        values = {"valueCount": 50, "valueStart": start, "valueDelta": delta}
        result = runner.arrays(copy_file(data_type, [50], values))["y"]
        assert result.tolist() == [start + delta * i for i in range(50)]


@pytest.mark.parametrize(
    ("data_type", "values", "parts"),
    [
        ("INT8", [1, 128, 0], ["resources.x", "128 does not fit INT8 (-128 to 127)"]),
        ("UINT8", [-1, 0, 0], ["-1 does not fit UINT8 (0 to 255)"]),
        ("INT32", [1.5, 0, 0], ["1.5 is not an integer; INT32 needs integers"]),
        ("INT32", ["nan", 0, 0], ["NaN is not an integer"]),
        (
            "UINT8",
            {"valueCount": 3, "valueStart": 254, "valueDelta": 1},
            ["256 does not fit UINT8"],
        ),
        ("UINT8", {"valueCount": 3, "valueStart": 0, "valueDelta": 0.5}, ["0.5 is not an integer"]),
        ("FLOAT16", [65520, 0, 0], ["65520", "does not fit FLOAT16"]),
        ("FLOAT32", {"valueCount": 3, "value": 1e39}, ["1e+39 does not fit FLOAT32"]),
        ("FLOAT32", [10**400, 0, 0], ["does not fit FLOAT64"]),
        ("FLOAT32", [[1, 2], [3]], ["initialValues: the rows are not all of one length"]),
        ("FLOAT32", [[1, 2], 3], ["the rows are not all of one length"]),
        ("FLOAT32", [], ["there are no values"]),
        ("FLOAT32", {"valueCount": 0, "value": 1}, ["is 0; it must be at least 1"]),
        ("FLOAT32", {"valueCount": 2}, ["'value' is missing"]),
        ("FLOAT32", {"valueCount": 2, "valueStart": 1}, ["'valueDelta' is missing"]),
        ("FLOAT32", {"sorcePath": "x.npy"}, ["'sorcePath'", "'sourcePath'"]),
        ("FLOAT32", {"valueCount": 2**62, "value": 1}, ["not enough memory for"]),
        ("FLOAT32", "1, 2, 3", ["an object is needed"]),
    ],
)
def test_wrong_initial_values(
    data_type: str, values: Any, parts: list[str], runner: Runner
) -> None:
    runner.refused(copy_file(data_type, [3], values), *parts)


def test_offset_and_size_of_a_resource(runner: Runner) -> None:
    more = {"initialValuesOffsetInBytes": 16, "sizeInBytes": 64}
    file = copy_file("FLOAT32", [3], [1, 2, 3], **more)
    part = {"name": "x", "elementOffset": 4}
    file = put(file, "commands/0/bindings/InputTensor", part)
    assert runner.arrays(file)["y"].tolist() == [1, 2, 3]
    runner.refused(put(file, "resources/x/sizeInBytes", 20), "sizeInBytes is 20", "end at 28")
    large = put(file, "dispatchables/copy/desc/InputTensor/TotalTensorSizeInBytes", 48)
    assert runner.arrays(large)["y"].tolist() == [1, 2, 3]
    larger = put(file, "dispatchables/copy/desc/InputTensor/TotalTensorSizeInBytes", 52)
    runner.refused(larger, "52 bytes at offset 16; the buffer has 64", status=1)


def test_offset_of_an_output(runner: Runner) -> None:
    file = copy_file("FLOAT32", [3], [1, 2, 3])
    place = {"name": "y", "elementOffset": 400}
    assert runner.arrays(put(file, "commands/0/bindings/OutputTensor", place))["y"].tolist() == [
        1, 2, 3,
    ]  # fmt: skip


def test_size_of_an_output(runner: Runner) -> None:
    """The resource has room for a second output."""
    file = put(copy_file("FLOAT32", [3], [1, 2, 3]), "resources/y/sizeInBytes", 64)
    (first,) = file["commands"]
    second = put(first, "bindings/OutputTensor", {"name": "y", "elementOffset": 12})
    assert runner.arrays(followed(file, second))["y"].tolist() == [1, 2, 3]


def test_an_output_beyond_its_size(runner: Runner) -> None:
    file = copy_file("FLOAT32", [4], [1, 2, 3, 4])
    for size, offset in ((4, 0), (16, 16), (76, 16)):
        bound = {"name": "y", "elementOffset": offset}
        short = put(file, "resources/y/sizeInBytes", size)
        short = put(short, "commands/0/bindings/OutputTensor", bound)
        runner.refused(
            short, rf"OutputTensor is bound to 16 bytes at offset {4 * offset}", status=1
        )
    assert runner.arrays(put(file, "resources/y/sizeInBytes", 16))["y"].tolist() == [1, 2, 3, 4]


def test_parts_of_one_resource(runner: Runner) -> None:
    """Four elements of one buffer are clipped into four others."""
    file = put(copy_file("FLOAT32", [4], list(range(8))), "dispatchables/copy/desc/Max", 2)
    bindings = {
        "InputTensor": {"name": "x", "elementOffset": 0, "elementCount": 4},
        "OutputTensor": [{"name": "x", "elementOffset": 4, "elementSizeInBytes": 4}],
    }
    file = put(put(file, "commands/0/bindings", bindings), "resources/y", ...)
    assert runner.arrays(file)["x"].tolist() == [0, 1, 2, 2]
    bindings["OutputTensor"] = {"name": "x", "elementOffset": 2}
    runner.refused(put(file, "commands/0/bindings", bindings), "multiple of 16", status=1)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"initialValuesOffsetInBytes": 2, "sizeInBytes": 64},
        {"initialValues": "deferred", "sizeInBytes": 64},
    ],
)
def test_offsets_count_elements_of_the_initial_values(more: dict[str, Any], runner: Runner) -> None:
    """Writing another data type, here twice, does not change the unit."""
    file = copy_file("FLOAT16", [8], [1, 2, 3, 4, 5, 6, 7, 8])
    zeros = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 12, "value": 0}}
    file["resources"] |= {"y": zeros | more, "all": {}}
    file = put(file, "commands/0/bindings/OutputTensor", {"name": "y", "elementOffset": 4})
    described = {"DataType": "UINT8", "Sizes": [48]}
    desc = {"InputTensor": described, "OutputTensor": described, "Min": 0, "Max": 255}
    file["dispatchables"]["bytes"] = {"type": "ELEMENT_WISE_CLIP", "desc": desc}
    whole = {"InputTensor": "y", "OutputTensor": "all"}
    show = {"type": "dispatch", "dispatchable": "bytes", "bindings": whole}
    result = runner.arrays(followed(file, *file["commands"], show))["all"]
    assert result.view(np.float16).tolist() == [0] * 8 + [1, 2, 3, 4, 5, 6, 7, 8] + [0] * 8


def test_offsets_in_values_of_several_types_count_bytes(runner: Runner) -> None:
    values = [{"type": "FLOAT32", "value": value} for value in range(8)]
    file = copy_file("FLOAT32", [4], values)
    file = put(file, "resources/x/initialValuesDataType", "UNKNOWN")
    part = {"name": "x", "elementOffset": 16}
    file = put(file, "commands/0/bindings/InputTensor", part)
    assert runner.arrays(file)["y"].tolist() == [4, 5, 6, 7]


def test_inputs_need_initial_values(runner: Runner) -> None:
    file = put(copy_file("FLOAT32", [3], [1, 2, 3]), "resources/x", {})
    runner.refused(file, "resources.x: the field 'initialValues' is missing; only outputs")
    show = {"type": "print", "resource": "z"}
    file = put(followed(copy_file("FLOAT32", [3], [1, 2, 3]), show), "resources/z", {})
    runner.refused(file, "resources.z: the field 'initialValues' is missing; only outputs")


def test_owned_inputs_are_as_before_the_first_command(runner: Runner) -> None:
    file = copy_file("FLOAT32", [3], [1, 2, 3])
    again = put(file, "dispatchables/copy/desc/InputTensor/Flags", "OWNED_BY_DML")
    zero = put(file, "dispatchables/copy/desc/Max", 0)["dispatchables"]["copy"]
    file = put(again, "dispatchables/zero", zero)
    clear = {
        "type": "dispatch",
        "dispatchable": "zero",
        "bindings": {"InputTensor": "x", "OutputTensor": "x"},
    }
    file["commands"].insert(0, clear)
    results = runner.arrays(file)
    assert results["x"].tolist() == [0, 0, 0]
    assert results["y"].tolist() == [1, 2, 3]


# Files


@pytest.mark.parametrize("name", ["x.npy", "folder/x.NPY"])
@pytest.mark.parametrize("written", [False, True])
def test_npy_files_are_mapped_and_never_changed(
    name: str, written: bool, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = runner.folder / name
    path.parent.mkdir(exist_ok=True)
    values = np.array([[-1.5, 2, 9]], np.float32)
    with path.open("wb") as file:
        np.save(file, values)
    before = path.read_bytes()
    loaded: list[Any] = []
    load = resources.load

    def remember(*args: Any, **kwargs: Any) -> Any:
        loaded.append(load(*args, **kwargs))
        return loaded[-1]

    monkeypatch.setattr(execute, "load", remember)
    document = copy_file("FLOAT32", [3], {"sourcePath": name})
    if written:
        document = put(document, "commands/0/bindings/OutputTensor", "x")
    document = put(put(document, "dispatchables/copy/desc/Max", 3), "resources/y", ...)
    if not written:
        document["resources"]["y"] = {}
    assert list(runner.arrays(document).values())[-1].ravel().tolist() == [-1.5, 2, 3]
    assert isinstance(loaded[0].array, np.memmap)
    assert path.read_bytes() == before


@pytest.mark.parametrize("dtype", [">f4", "<f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files_of_any_order(dtype: str, order: Any, runner: Runner) -> None:
    values = np.arange(6).reshape(2, 3).astype(dtype, order=order)
    np.save(runner.folder / "x.npy", values)
    file = copy_file("FLOAT32", [2, 3], {"sourcePath": "x.npy"})
    assert runner.arrays(file)["y"].tolist() == values.tolist()


def test_raw_files(runner: Runner) -> None:
    np.arange(4, dtype=np.int16).tofile(runner.folder / "x.bin")
    file = copy_file("INT16", [4], {"sourcePath": "x.bin"})
    assert runner.arrays(file)["y"].tolist() == [0, 1, 2, 3]
    for absent in ("UNKNOWN", "UINT4", None):
        without = put(file, "resources/x/initialValuesDataType", absent)
        runner.refused(without, "it must be one of FLOAT32, FLOAT16, UINT32")


def test_folder(runner: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    other.mkdir()
    np.save(other / "x.npy", np.array([1, 2, 3], np.float32))
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy"}
    file = followed(copy_file("FLOAT32", [3], {"sourcePath": "x.npy"}), write)
    runner.refused(file, "x.npy: No such file")
    assert runner(file, "run", "--folder", str(other))[0] == 0
    assert np.load(other / "y.npy").tolist() == [1, 2, 3]


def test_files_that_hold_no_tensor(runner: Runner) -> None:
    np.save(runner.folder / "complex.npy", np.zeros(3, complex))
    np.save(runner.folder / "empty.npy", np.zeros((0, 3), np.float32))
    np.save(runner.folder / "objects.npy", np.array([{}], object))
    (runner.folder / "text.npy").write_text("1, 2, 3")
    whole = (runner.folder / "complex.npy").read_bytes()
    (runner.folder / "short.npy").write_bytes(whole[:-8])
    (runner.folder / "odd.bin").write_bytes(b"123")
    (runner.folder / "x.png").write_bytes(b"123")
    for name, part in [
        ("complex.npy", "complex128"), ("empty.npy", "no elements"), ("objects.npy", "objects.npy"),
        ("text.npy", "text.npy"), ("short.npy", "short.npy"), ("odd.bin", "odd.bin"),
        ("x.png", "neither .npy nor .bin nor .dat"), ("none.npy", "No such file"), ("", "empty"),
    ]:  # fmt: skip
        runner.refused(copy_file("FLOAT32", [3], {"sourcePath": name}), "resources.x", part)


@pytest.mark.parametrize("huge", [1, 2**28])
def test_write_file(huge: int, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "HUGE", huge)
    monkeypatch.setattr(resources, "_BLOCK", 4)
    values = [[1, 2, 3], [4, 5, 6]]
    writes = [
        {"type": "writeFile", "resource": "y", "targetPath": "y.npy"},
        {"type": "print", "resource": "y"},
        {"type": "writeFile", "resource": "x", "targetPath": "x.dat"},
    ]
    status, out, err = runner(followed(copy_file("FLOAT16", [2, 3], values), *writes))
    assert (status, err) == (0, "")
    assert f"y: FLOAT16 [2, 3], written to {runner.folder / 'y.npy'}" in out
    result = np.load(runner.folder / "y.npy")
    assert result.dtype == np.float16
    assert result.tolist() == values
    assert np.fromfile(runner.folder / "x.dat", np.float16).tolist() == [1, 2, 3, 4, 5, 6]
    assert sorted(path.name for path in runner.folder.iterdir()) == [
        "operator.json", "x.dat", "y.npy",
    ]  # fmt: skip


def test_a_file_may_replace_its_own_source(runner: Runner) -> None:
    np.save(runner.folder / "x.npy", np.array([1, 2, 30], np.float32))
    write = {"type": "writeFile", "resource": "y", "targetPath": "x.npy"}
    file = followed(copy_file("FLOAT32", [3], {"sourcePath": "x.npy"}), write)
    assert runner(put(file, "dispatchables/copy/desc/Max", 9))[0] == 0
    assert np.load(runner.folder / "x.npy").tolist() == [1, 2, 9]


@pytest.mark.parametrize("huge", [1, 2**28])
def test_a_refused_run_leaves_no_file(
    huge: int, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "HUGE", huge)
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy"}
    runner.refused(followed(copy_file("FLOAT32", [3], [1, 2]), write), "8 bytes", status=1)
    for target, part in [("none/y.npy", "No such file"), ("y.png", ".npy"), ("", "empty")]:
        file = followed(copy_file("FLOAT32", [3], [1, 2, 3]), {**write, "targetPath": target})
        runner.refused(file, part)
    assert [path.name for path in runner.folder.iterdir()] == ["operator.json"]
    (runner.folder / "y.npy").mkdir()  # a folder is no file to replace
    runner.refused(followed(copy_file("FLOAT32", [3], [1, 2, 3]), write), "y.npy")
    assert len(list(runner.folder.iterdir())) == 2


def test_strided_results_are_shown_as_the_tensor(runner: Runner) -> None:
    described = {"DataType": "FLOAT32", "Sizes": [2, 3], "Strides": [1, 4]}
    file = copy_file("FLOAT32", [2, 3], [[1, 2, 3], [4, 5, 6]])
    file = put(file, "dispatchables/copy/desc/OutputTensor", described)
    write = {"type": "writeFile", "resource": "y", "targetPath": "y.npy"}
    assert runner(followed(file, write))[0] == 0
    assert np.load(runner.folder / "y.npy").tolist() == [[1, 2, 3], [4, 5, 6]]


def test_print_shortens_unless_verbose(runner: Runner) -> None:
    file = copy_file("FLOAT32", [2000], {"valueCount": 2000, "valueStart": 0, "valueDelta": 1})
    for verbose in (False, True):
        show = {"type": "print", "resource": "y", "verbose": verbose}
        assert ("1.000e+03," in runner(followed(file, show))[1]) == verbose


@pytest.mark.parametrize("values", ["[1e400, 0, 0]", '{"valueCount": 3, "value": -1e400}'])
def test_numbers_beyond_float64(values: str, runner: Runner) -> None:
    text = json.dumps(copy_file("FLOAT32", [3], "VALUES")).replace('"VALUES"', values)
    runner.refused(text, "initialValues", "a number does not fit FLOAT64")


def test_infinity_as_a_literal(runner: Runner) -> None:
    file = copy_file("FLOAT32", [2], "VALUES")
    file["dispatchables"]["copy"]["desc"] |= {"Min": -7, "Max": 7}
    text = json.dumps(file).replace('"VALUES"', "[Infinity, -Infinity]")
    assert runner.arrays(text)["y"].tolist() == [7, -7]
