"""Tensor operators on the CPU with DirectML's semantics."""

# Without a __getattr__, which would slow down every access by 20 ns, a third of a small call.

# The core would import NumPy, too, but would report an interrupt as a failed import.
import numpy as _numpy  # noqa: F401

from dmlops import _foreign as _foreign  # the core calls it
from dmlops._activation_descs import *
from dmlops._activations import *
from dmlops._core import BindingError, CompiledOperator, ValidationError
from dmlops._core import version as _version
from dmlops._device import BufferBinding, Device, required_feature_level
from dmlops._enums import FeatureLevel, TensorDataType, TensorFlags
from dmlops._library import get_cmake_dir, get_examples_dir, get_include, get_source_dir
from dmlops._operator_descs import *
from dmlops._operator_type import OperatorType
from dmlops._operators import *
from dmlops._runtime import (
    available_isas,
    build_info,
    get_num_threads,
    isa,
    num_threads,
    set_num_threads,
)
from dmlops._runtime import check_environment as _check_environment
from dmlops._runtime import runs_as_command as _runs_as_command
from dmlops._scale_bias import ScaleBias
from dmlops._tensor_desc import BufferTensorDesc, calc_buffer_tensor_size

__version__ = _version()
__all__ = [
    "BindingError",
    "BufferBinding",
    "BufferTensorDesc",
    "CompiledOperator",
    "Device",
    "FeatureLevel",
    "OperatorType",
    "ScaleBias",
    "TensorDataType",
    "TensorFlags",
    "ValidationError",
    "available_isas",
    "build_info",
    "calc_buffer_tensor_size",
    "get_cmake_dir",
    "get_examples_dir",
    "get_include",
    "get_num_threads",
    "get_source_dir",
    "isa",
    "num_threads",
    "required_feature_level",
    "set_num_threads",
]
# begin: operators, by tools/generate.py
__all__ += [
    "ActivationCeluOperatorDesc",
    "ActivationEluOperatorDesc",
    "ActivationGeluOperatorDesc",
    "ActivationHardSigmoidOperatorDesc",
    "ActivationHardSwishOperatorDesc",
    "ActivationHardmax1OperatorDesc",
    "ActivationHardmaxOperatorDesc",
    "ActivationIdentityOperatorDesc",
    "ActivationLeakyReluOperatorDesc",
    "ActivationLinearOperatorDesc",
    "ActivationLogSoftmax1OperatorDesc",
    "ActivationLogSoftmaxOperatorDesc",
    "ActivationParameterizedReluOperatorDesc",
    "ActivationParametricSoftplusOperatorDesc",
    "ActivationReluGradOperatorDesc",
    "ActivationReluOperatorDesc",
    "ActivationScaledEluOperatorDesc",
    "ActivationScaledTanhOperatorDesc",
    "ActivationShrinkOperatorDesc",
    "ActivationSigmoidOperatorDesc",
    "ActivationSoftmax1OperatorDesc",
    "ActivationSoftmaxOperatorDesc",
    "ActivationSoftplusOperatorDesc",
    "ActivationSoftsignOperatorDesc",
    "ActivationSwishOperatorDesc",
    "ActivationTanhOperatorDesc",
    "ActivationThresholdedReluOperatorDesc",
    "BatchNormalizationGradOperatorDesc",
    "BatchNormalizationOperatorDesc",
    "BatchNormalizationTrainingGradOperatorDesc",
    "BatchNormalizationTrainingOperatorDesc",
    "ElementWiseClip1OperatorDesc",
    "ElementWiseClipGrad1OperatorDesc",
    "ElementWiseClipGradOperatorDesc",
    "ElementWiseClipOperatorDesc",
    "MeanVarianceNormalization1OperatorDesc",
    "MeanVarianceNormalization2OperatorDesc",
    "MeanVarianceNormalizationOperatorDesc",
    "batch_normalization",
    "batch_normalization_grad",
    "batch_normalization_training",
    "batch_normalization_training_grad",
    "celu",
    "clip",
    "clip_grad",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_swish",
    "hardmax",
    "identity",
    "leaky_relu",
    "linear",
    "log_softmax",
    "mean_variance_normalization",
    "parameterized_relu",
    "parametric_softplus",
    "relu",
    "relu_grad",
    "scaled_elu",
    "scaled_tanh",
    "shrink",
    "sigmoid",
    "softmax",
    "softplus",
    "softsign",
    "swish",
    "tanh",
    "thresholded_relu",
]
# end: operators

# Tracebacks and pickles name the public module.
for _error in (BindingError, ValidationError):
    _error.__module__ = __name__

# Reports an invalid environment variable at import instead of at the first large call.
# The command line checks the environment itself, to print the error without a traceback.
if not _runs_as_command():
    _check_environment()
