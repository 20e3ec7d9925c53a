"""ONNX for tests: the opsets that define an operator."""

from __future__ import annotations

import pytest

onnx = pytest.importorskip("onnx")

NEWEST: int = onnx.defs.onnx_opset_version()


def versions(operator: str) -> list[int]:
    """Return the opsets that redefine the operator, and the newest."""
    schemas = onnx.defs.get_all_schemas_with_history()
    valid = (s for s in schemas if s.name == operator and not s.domain and not s.deprecated)
    return sorted({s.since_version for s in valid} | {NEWEST})
