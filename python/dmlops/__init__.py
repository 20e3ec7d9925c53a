"""Tensor operators on the CPU with DirectML's semantics."""

from dmlops._core import version as _version
from dmlops._operators import batch_normalization, clip, hard_sigmoid, log_softmax
from dmlops._runtime import available_isas, build_info, get_num_threads, isa, set_num_threads
from dmlops._scale_bias import ScaleBias

__version__ = _version()
__all__ = [
    "ScaleBias",
    "available_isas",
    "batch_normalization",
    "build_info",
    "clip",
    "get_num_threads",
    "hard_sigmoid",
    "isa",
    "log_softmax",
    "set_num_threads",
]

# A wrong DMLOPS_ISA or DMLOPS_NUM_THREADS is better said at once than in the middle of the work.
isa()
get_num_threads()
