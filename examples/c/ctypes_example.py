"""The C interface from Python's ctypes, as any language with a foreign function interface calls it.

Usage: python ctypes_example.py /where/dmlops/is/installed/lib/libdmlops.so
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from ctypes import POINTER, byref, c_double, c_float, c_int32, c_int64, c_size_t, c_uint64, c_void_p

ABI_VERSION = 3  # DMLOPS_ABI_VERSION, of the header that this file was written to
FLOAT32, FLOAT64 = 1, 9  # DML_TENSOR_DATA_TYPE
TANH = 51  # DML_OPERATOR_ACTIVATION_TANH


class View(ctypes.Structure):
    """dmlops_view."""

    _fields_ = (
        ("data", c_void_p),
        ("type", c_int32),
        ("rank", c_int32),
        ("sizes", c_int64 * 8),
        ("strides", c_int64 * 8),
    )


class Value(ctypes.Union):
    """The union of dmlops_scalar."""

    _fields_ = (("float64", c_double), ("int64", c_int64), ("uint64", c_uint64))


class Scalar(ctypes.Structure):
    """dmlops_scalar."""

    _fields_ = (("type", c_int32), ("value", Value))


class Activation(ctypes.Structure):
    """dmlops_activation."""

    _fields_ = (("type", c_int32), ("parameters", c_float * 2))


def load(path: str) -> ctypes.CDLL:
    """Load the library and declare the functions that are used."""
    library = ctypes.CDLL(path)
    if library.dmlops_abi_version() != ABI_VERSION:
        raise SystemExit(f"{path} has binary interface {library.dmlops_abi_version()}")
    library.dmlops_last_error.restype = ctypes.c_char_p
    view = POINTER(View)
    library.dmlops_packed_view.argtypes = [c_void_p, c_int32, c_int32, POINTER(c_int64), view]
    library.dmlops_clip.argtypes = [view, POINTER(Scalar), POINTER(Scalar), c_void_p, view]
    library.dmlops_activate.argtypes = [POINTER(Activation), view, view]
    library.dmlops_log_softmax.argtypes = [view, POINTER(c_int64), c_size_t, view]
    return library


def main(path: str) -> None:
    """Run operators on the memory of an array."""
    library = load(path)

    def call(name: str, *arguments: object) -> None:
        if getattr(library, name)(*arguments) != 0:
            raise ValueError(library.dmlops_last_error().decode())

    def view_of(values: array[float], *sizes: int) -> View:
        view = View()
        shape = (c_int64 * len(sizes))(*sizes)
        call("dmlops_packed_view", values.buffer_info()[0], FLOAT32, len(sizes), shape, byref(view))
        return view

    x, y = array("f", [-3, 0.5, 9, 1]), array("f", [0] * 4)
    input, output = view_of(x, 2, 2), view_of(y, 2, 2)

    bounds = [Scalar(FLOAT64, Value(float64=bound)) for bound in (0, 6)]
    call("dmlops_clip", input, bounds[0], bounds[1], None, output)
    print("clip", y.tolist())
    assert y.tolist() == [0, 0.5, 6, 1]

    call("dmlops_activate", Activation(TANH), input, output)
    print("tanh", y.tolist())

    axes = (c_int64 * 2)(0, 1)
    call("dmlops_log_softmax", input, axes, len(axes), output)
    print("log_softmax", y.tolist())

    try:
        call("dmlops_log_softmax", input, (c_int64 * 1)(2), 1, output)
    except ValueError as error:
        print("refused:", error)
    else:
        raise SystemExit("an axis that does not exist was accepted")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
