"""ONNX's own backend tests for the operators that dmlops has."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from dmlops import _table

pytest.importorskip("onnx")

with warnings.catch_warnings():  # some of its cases overflow on purpose
    warnings.simplefilter("ignore")
    from onnx.backend.test import BackendTest

    import dmlops.onnx

    class Strict(dmlops.onnx.DmlopsBackend):
        """Fails where the backend would have its tests skipped."""

        @classmethod
        def is_compatible(cls, *_: Any, **__: Any) -> bool:
            return True

    SUITE = BackendTest(Strict, __name__)

# Excludes bfloat16, and models that expand an operator into others ("expanded").
ACTIVATIONS = [row.onnx.lower() for row in _table.ACTIVATIONS if row.onnx]
WANTED = re.compile(
    rf"""test_(
    ({"|".join(ACTIVATIONS)})(_(?!bfloat16)\w+)?
    | batchnorm_(example|epsilon)(_training_mode)? | clip(_\w+)? | constant
    | gelu_default_[12] | identity(_sequence|_opt)? | (hardmax|(log)?softmax)_\w+
    | (instancenorm|(layer|rms|group)_normalization)_\w+ | mvn | prelu_\w+
    # models that PyTorch exported, to old opsets
    | BatchNorm\w+_eval | PReLU_\w+ | ELU | SELU | Softplus | Sigmoid | Tanh | ReLU | LeakyReLU
    | LeakyReLU_with_negval | LogSoftmax | Softmax | log_softmax_(lastdim|dim3)
    | softmax_(lastdim|functional_dim3) | operator_selu | single_relu_model
    )_cpu""",
    re.VERBOSE,
)
COUNT = 130  # other releases of onnx have a few more or less


def _select() -> None:
    for name, case in SUITE.test_cases.items():
        methods = {
            key: value
            for key, value in vars(case).items()
            if WANTED.fullmatch(key) and "expanded" not in key
        }
        if methods:
            globals()[name] = type(name, (case.__bases__[0],), methods)


_select()


def selected() -> list[str]:
    return [
        key
        for value in list(globals().values())
        if isinstance(value, type)
        for key in vars(value)
        if WANTED.fullmatch(key)
    ]


def test_enough_are_selected() -> None:
    assert len(selected()) >= COUNT, len(selected())
    for name in ACTIVATIONS:
        assert any(key.startswith(f"test_{name}_") for key in selected()), name


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("test_gelu_tanh_1_cpu", "Gelu: approximate='tanh'"),
        ("test_celu_bfloat16_cpu", "Celu: data type bfloat16; dmlops supports float16, float32"),
        ("test_l1normalization_axis_0_cpu", "LpNormalization: dmlops has no such operator"),
        ("test_add_cpu", r"Add: dmlops has no such operator\ndmlops has Batch"),
        ("test_clip_expanded_cpu", "CastLike|Less"),
    ],
)
def test_others_are_refused_by_name(name: str, refusal: str) -> None:
    (case,) = (case for case in SUITE.test_cases.values() if hasattr(case, name))
    test: Any = case(name)
    with pytest.raises(dmlops.onnx.UnsupportedError, match=refusal):
        getattr(test, name)()
