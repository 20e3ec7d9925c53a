"""The competitors, by the names that the table shows."""

from __future__ import annotations

from importlib import import_module

from dmlops._bench.peers.base import Peer

OURS, ROOFLINE = "dmlops", "memcpy"
# oneDNN has no Python package of its own: PyTorch and OpenVINO bring it.
PEERS = {
    "numpy": "NumPy",
    "torch": "Torch",
    "onnxruntime": "OnnxRuntime",
    "openvino": "OpenVino",
    "jax": "Jax",
    "numexpr": "NumExpr",
}


def load(names: list[str], threads: int) -> tuple[dict[str, Peer], dict[str, str]]:
    """Return the installed peers, and for each missing one the reason."""
    loaded: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    classes = {OURS: "Dmlops", ROOFLINE: "Memcpy", **{name: PEERS[name] for name in names}}
    for name, kind in classes.items():
        module = import_module(f"dmlops._bench.peers.{name}")
        try:
            loaded[name] = getattr(module, kind)(threads)
        except ImportError as error:
            missing[name] = "not installed" if error.name == module.__name__ else str(error)
    return loaded, missing
