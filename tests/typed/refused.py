"""Calls that type checkers must refuse, as the library does; a comment without use is an error.

Every function is one wrong call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import dmlops

f64: NDArray[np.float64] = np.ones((2, 3))
f32: NDArray[np.float32] = np.ones((2, 3), np.float32)
f16: NDArray[np.float16] = np.ones((2, 3), np.float16)
i64: NDArray[np.int64] = np.ones((2, 3), np.int64)
tensor = dmlops.BufferTensorDesc.from_array(f32)


class Series:
    """The subset of pandas.Series by which the stubs tell it."""

    name = "series"

    def to_numpy(self) -> NDArray[np.float32]:
        """Return the values."""
        return f32


def float64() -> None:
    dmlops.elu(f64)  # type: ignore[type-var]  # pyright: ignore


def float64_in_clip() -> None:
    dmlops.clip(f64, 0, 1)  # type: ignore[type-var]  # pyright: ignore


def a_float64_alone() -> None:
    dmlops.elu(np.float64(1))  # type: ignore[type-var]  # pyright: ignore


def integers_in_log_softmax() -> None:
    dmlops.log_softmax(i64)  # type: ignore[type-var]  # pyright: ignore


def wide_integers_in_relu() -> None:
    dmlops.relu(i64)  # type: ignore[type-var]  # pyright: ignore


def a_list() -> None:
    dmlops.hard_sigmoid([1.0, 2.0])  # type: ignore[call-overload]  # pyright: ignore


def another_dtype_of_out() -> None:
    dmlops.clip(f32, 0, 1, out=f16)  # type: ignore[type-var]  # pyright: ignore


def another_dtype_of_the_mean() -> None:
    dmlops.batch_normalization(f32, f16, f32, f32, f32)  # type: ignore[type-var]  # pyright: ignore


def labels_and_several_results() -> None:
    dmlops.batch_normalization_training(Series(), f32, f32)  # type: ignore[call-overload]  # pyright: ignore


def labels_in_a_parameter() -> None:
    dmlops.batch_normalization(np.float32(1), Series(), f32, f32, f32)  # type: ignore[call-overload]  # pyright: ignore


def labels_in_out() -> None:
    dmlops.gelu(Series(), out=Series())  # type: ignore[call-overload]  # pyright: ignore


def another_dtype_of_several_results() -> None:
    dmlops.batch_normalization_training(f32, f32, f32, out=(f16, None, None))  # type: ignore[type-var]  # pyright: ignore


def float64_of_several_results() -> None:
    dmlops.batch_normalization_training(f64, f64, f64)  # type: ignore[type-var]  # pyright: ignore


def too_few_results() -> None:
    dmlops.batch_normalization_training(f32, f32, f32, out=(f32, f32))  # type: ignore[arg-type]  # pyright: ignore


def out_by_position() -> None:
    dmlops.gelu(f32, f32)  # type: ignore[call-overload]  # pyright: ignore


def a_bound_that_is_text() -> None:
    dmlops.clip(f32, "0")  # type: ignore[call-overload]  # pyright: ignore


def an_unknown_parameter() -> None:
    dmlops.leaky_relu(f32, slope=0.1)  # type: ignore[call-overload]  # pyright: ignore


def a_factor_and_summand_as_a_tuple() -> None:
    dmlops.clip(f32, scale_bias=(2.0, 1.0))  # type: ignore[call-overload]  # pyright: ignore


def a_function_as_activation() -> None:
    dmlops.batch_normalization(f32, f32, f32, f32, f32, fused_activation=dmlops.relu)  # type: ignore[call-overload]  # pyright: ignore


def fractional_axes() -> None:
    dmlops.log_softmax(f32, axes=0.5)  # type: ignore[call-overload]  # pyright: ignore


def a_descriptor_without_axes() -> None:
    dmlops.ActivationLogSoftmax1OperatorDesc(input_tensor=tensor, output_tensor=tensor)  # type: ignore[call-arg]  # pyright: ignore


def fields_by_position() -> None:
    dmlops.ActivationReluOperatorDesc(tensor, tensor)  # type: ignore[call-arg]  # pyright: ignore


def a_field_changed() -> None:
    tensor.sizes = (1,)  # type: ignore[misc]  # pyright: ignore


def a_function_as_descriptor() -> None:
    dmlops.Device().compile(dmlops.relu)  # type: ignore[arg-type]  # pyright: ignore


def threads_as_text() -> None:
    dmlops.set_num_threads("4")  # type: ignore[arg-type]  # pyright: ignore
