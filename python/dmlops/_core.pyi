from array import array
from collections.abc import Sequence
from typing import Any, Protocol, SupportsFloat, SupportsIndex, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

from dmlops._activation_descs import ActivationDesc
from dmlops._device import OperatorDesc
from dmlops._enums import FeatureLevel
from dmlops._scale_bias import ScaleBias
from dmlops._tensor_desc import BufferTensorDesc

# What is no ndarray. An ndarray has no hash and so is no peer: a wrong dtype must not pass.
class _SupportsDLPack(Protocol):
    def __dlpack__(self) -> object: ...
    def __hash__(self) -> int: ...

class _SupportsBuffer(Protocol):
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __hash__(self) -> int: ...

_Scalar = np.float32 | np.float16 | np.integer[Any]
_Peer = _SupportsDLPack | _SupportsBuffer | bytearray | array[Any] | _Scalar
_Number = SupportsFloat | SupportsIndex

_Shape = TypeVar("_Shape", bound=tuple[Any, ...])
_Float = TypeVar("_Float", np.float32, np.float16)
_Signed = TypeVar("_Signed", np.float32, np.float16, np.int8, np.int16, np.int32)
_Narrow = TypeVar(
    "_Narrow",
    np.float32,
    np.float16,
    np.int8,
    np.int16,
    np.int32,
    np.uint8,
    np.uint16,
    np.uint32,
)
_Element = TypeVar(
    "_Element",
    np.float32,
    np.float16,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
)
_T = TypeVar("_T", bound=np.generic)
_Array = np.ndarray[_Shape, np.dtype[_T]]

@overload
def clip(
    input: _Array[_Shape, _Element],
    min: _Number | None = None,
    max: _Number | None = None,
    *,
    scale_bias: ScaleBias | None = None,
    out: NDArray[_Element] | None = None,
) -> _Array[_Shape, _Element]: ...
@overload
def clip(
    input: _Peer,
    min: _Number | None = None,
    max: _Number | None = None,
    *,
    scale_bias: ScaleBias | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def elu(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.0,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def elu(
    input: _Peer,
    alpha: _Number = 1.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def celu(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.0,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def celu(
    input: _Peer,
    alpha: _Number = 1.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def hard_sigmoid(
    input: _Array[_Shape, _Float],
    alpha: _Number = 0.2,
    beta: _Number = 0.5,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def hard_sigmoid(
    input: _Peer,
    alpha: _Number = 0.2,
    beta: _Number = 0.5,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def identity(
    input: _Array[_Shape, _Float],
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def identity(
    input: _Peer,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def leaky_relu(
    input: _Array[_Shape, _Float],
    alpha: _Number = 0.01,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def leaky_relu(
    input: _Peer,
    alpha: _Number = 0.01,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def linear(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.0,
    beta: _Number = 0.0,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def linear(
    input: _Peer,
    alpha: _Number = 1.0,
    beta: _Number = 0.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def parametric_softplus(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.0,
    beta: _Number = 1.0,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def parametric_softplus(
    input: _Peer,
    alpha: _Number = 1.0,
    beta: _Number = 1.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def relu(
    input: _Array[_Shape, _Signed],
    *,
    out: NDArray[_Signed] | None = None,
) -> _Array[_Shape, _Signed]: ...
@overload
def relu(
    input: _Peer,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def scaled_elu(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.6732632,
    gamma: _Number = 1.050701,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def scaled_elu(
    input: _Peer,
    alpha: _Number = 1.6732632,
    gamma: _Number = 1.050701,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def scaled_tanh(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.0,
    beta: _Number = 0.5,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def scaled_tanh(
    input: _Peer,
    alpha: _Number = 1.0,
    beta: _Number = 0.5,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def sigmoid(
    input: _Array[_Shape, _Float],
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def sigmoid(
    input: _Peer,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def softplus(
    input: _Array[_Shape, _Float],
    steepness: _Number = 1.0,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def softplus(
    input: _Peer,
    steepness: _Number = 1.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def softsign(
    input: _Array[_Shape, _Float],
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def softsign(
    input: _Peer,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def tanh(
    input: _Array[_Shape, _Float],
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def tanh(
    input: _Peer,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def thresholded_relu(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.0,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def thresholded_relu(
    input: _Peer,
    alpha: _Number = 1.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def shrink(
    input: _Array[_Shape, _Narrow],
    bias: _Number = 0.0,
    threshold: _Number = 0.5,
    *,
    out: NDArray[_Narrow] | None = None,
) -> _Array[_Shape, _Narrow]: ...
@overload
def shrink(
    input: _Peer,
    bias: _Number = 0.0,
    threshold: _Number = 0.5,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def gelu(
    input: _Array[_Shape, _Float],
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def gelu(
    input: _Peer,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def batch_normalization(
    input: _Array[_Shape, _Float],
    mean: NDArray[_Float],
    variance: NDArray[_Float],
    scale: NDArray[_Float],
    bias: NDArray[_Float],
    epsilon: _Number = 1e-5,
    *,
    fused_activation: ActivationDesc | None = None,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def batch_normalization(
    input: _Peer,
    mean: _Peer | NDArray[Any],
    variance: _Peer | NDArray[Any],
    scale: _Peer | NDArray[Any],
    bias: _Peer | NDArray[Any],
    epsilon: _Number = 1e-5,
    *,
    fused_activation: ActivationDesc | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def log_softmax(
    input: _Array[_Shape, _Float],
    axes: SupportsIndex | Sequence[SupportsIndex] = -1,
    *,
    out: NDArray[_Float] | None = None,
) -> _Array[_Shape, _Float]: ...
@overload
def log_softmax(
    input: _Peer,
    axes: SupportsIndex | Sequence[SupportsIndex] = -1,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
def add_docstring(function: object, text: str) -> None: ...
def version() -> str: ...
def isa() -> str: ...
def set_isa(name: str) -> None: ...
def available_isas() -> tuple[str, ...]: ...
def get_num_threads() -> int: ...
def non_temporal_threshold() -> int: ...
def set_non_temporal_threshold(bytes: int) -> None: ...
def set_num_threads(n: int) -> None: ...
def compiler() -> str: ...
def build_flags() -> str: ...

class ValidationError(ValueError): ...
class BindingError(ValueError): ...

_Bindings = list[Any] | tuple[Any, ...] | dict[str, Any]

@final
class CompiledOperator:
    @property
    def desc(self) -> OperatorDesc: ...
    @property
    def feature_level(self) -> FeatureLevel: ...
    def dispatch(self, inputs: _Bindings, outputs: _Bindings) -> None: ...

def compile(
    desc: OperatorDesc, feature_level: FeatureLevel, initial: _Bindings | None
) -> CompiledOperator: ...
def validate(desc: OperatorDesc, feature_level: FeatureLevel) -> None: ...
def required_feature_level(desc: OperatorDesc) -> int: ...
def calc_buffer_tensor_size(tensor: BufferTensorDesc) -> int: ...

LOG_SOFTMAX_BLOCK: int

def check_batch_normalization(
    input: Any, mean: Any, variance: Any, scale: Any, bias: Any, /
) -> None: ...
def log_softmax_sums(
    x: NDArray[Any], max: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def log_softmax_finish(
    x: NDArray[Any],
    max: NDArray[np.float32],
    sums: NDArray[np.float64],
    maxima: NDArray[np.float64],
) -> NDArray[Any]: ...
