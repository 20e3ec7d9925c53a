from array import array
from collections.abc import Sequence
from typing import Any, Protocol, SupportsFloat, SupportsIndex, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

from dmlops._device import OperatorDesc
from dmlops._enums import FeatureLevel
from dmlops._fused_activation import FusedActivation
from dmlops._scale_bias import ScaleBias
from dmlops._tensor_desc import BufferTensorDesc

# Overloads overlap in theory: an array of another library may offer the buffer protocol too.
# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false

# Arrays other than numpy.ndarray. An ndarray has no __hash__, which excludes ndarrays of an
# unsupported dtype.
class _SupportsDLPack(Protocol):
    def __dlpack__(self) -> object: ...
    def __hash__(self) -> int: ...

class _SupportsBuffer(Protocol):
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __hash__(self) -> int: ...

# Arrays of the Array API standard, of PyTorch, and of JAX, which have no hash.
class _Standard(_SupportsDLPack, Protocol):
    def __array_namespace__(self) -> Any: ...

class _Torch(_SupportsDLPack, Protocol):
    def detach(self) -> Any: ...

class _Jax(Protocol):
    def __dlpack__(self) -> object: ...
    def block_until_ready(self) -> Any: ...

# pandas.Series and xarray.DataArray, dask.array.Array.
class _Labelled(Protocol):
    @property
    def name(self) -> Any: ...
    def to_numpy(self) -> NDArray[Any]: ...

class _Lazy(Protocol):
    def __dask_graph__(self) -> Any: ...

_Buffer = _SupportsBuffer | bytearray | array[Any]
_Scalar = np.float32 | np.float16 | np.integer[Any]
_Same = TypeVar("_Same", bound=_Standard | _Torch | _Jax | _Labelled | _Lazy | _Scalar)
_Peer = _SupportsDLPack | _Jax | _Labelled | _Lazy | _Scalar
_Other = _Buffer | _Peer
_Parameter = _Other | NDArray[Any]
_Number = SupportsFloat | SupportsIndex

_Shape = TypeVar("_Shape", bound=tuple[Any, ...])
_Float = TypeVar("_Float", np.float32, np.float16)
_Signed = TypeVar("_Signed", np.float32, np.float16, np.int8, np.int16, np.int32)
_Narrow = TypeVar(
    "_Narrow", np.float32, np.float16, np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32
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
_Out = NDArray[_T] | None

@overload
def clip(
    input: _Array[_Shape, _Element],
    min: _Number | None = None,
    max: _Number | None = None,
    *,
    scale_bias: ScaleBias | None = None,
    out: _Out[_Element] = None,
) -> _Array[_Shape, _Element]: ...
@overload
def clip(
    input: _Same,
    min: _Number | None = None,
    max: _Number | None = None,
    *,
    scale_bias: ScaleBias | None = None,
    out: _Same | None = None,
) -> _Same: ...
@overload
def clip(
    input: _Other,
    min: _Number | None = None,
    max: _Number | None = None,
    *,
    scale_bias: ScaleBias | None = None,
    out: _Out[Any] = None,
) -> NDArray[Any]: ...
@overload
def elu(
    input: _Array[_Shape, _Float], alpha: _Number = 1.0, *, out: _Out[_Float] = None
) -> _Array[_Shape, _Float]: ...
@overload
def elu(input: _Same, alpha: _Number = 1.0, *, out: _Same | None = None) -> _Same: ...
@overload
def elu(input: _Other, alpha: _Number = 1.0, *, out: _Out[Any] = None) -> NDArray[Any]: ...
@overload
def celu(
    input: _Array[_Shape, _Float], alpha: _Number = 1.0, *, out: _Out[_Float] = None
) -> _Array[_Shape, _Float]: ...
@overload
def celu(input: _Same, alpha: _Number = 1.0, *, out: _Same | None = None) -> _Same: ...
@overload
def celu(input: _Other, alpha: _Number = 1.0, *, out: _Out[Any] = None) -> NDArray[Any]: ...
@overload
def hard_sigmoid(
    input: _Array[_Shape, _Float],
    alpha: _Number = 0.2,
    beta: _Number = 0.5,
    *,
    out: _Out[_Float] = None,
) -> _Array[_Shape, _Float]: ...
@overload
def hard_sigmoid(
    input: _Same, alpha: _Number = 0.2, beta: _Number = 0.5, *, out: _Same | None = None
) -> _Same: ...
@overload
def hard_sigmoid(
    input: _Other, alpha: _Number = 0.2, beta: _Number = 0.5, *, out: _Out[Any] = None
) -> NDArray[Any]: ...
@overload
def identity(
    input: _Array[_Shape, _Float], *, out: _Out[_Float] = None
) -> _Array[_Shape, _Float]: ...
@overload
def identity(input: _Same, *, out: _Same | None = None) -> _Same: ...
@overload
def identity(input: _Other, *, out: _Out[Any] = None) -> NDArray[Any]: ...
@overload
def leaky_relu(
    input: _Array[_Shape, _Float], alpha: _Number = 0.01, *, out: _Out[_Float] = None
) -> _Array[_Shape, _Float]: ...
@overload
def leaky_relu(input: _Same, alpha: _Number = 0.01, *, out: _Same | None = None) -> _Same: ...
@overload
def leaky_relu(input: _Other, alpha: _Number = 0.01, *, out: _Out[Any] = None) -> NDArray[Any]: ...
@overload
def linear(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.0,
    beta: _Number = 0.0,
    *,
    out: _Out[_Float] = None,
) -> _Array[_Shape, _Float]: ...
@overload
def linear(
    input: _Same, alpha: _Number = 1.0, beta: _Number = 0.0, *, out: _Same | None = None
) -> _Same: ...
@overload
def linear(
    input: _Other, alpha: _Number = 1.0, beta: _Number = 0.0, *, out: _Out[Any] = None
) -> NDArray[Any]: ...
@overload
def parametric_softplus(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.0,
    beta: _Number = 1.0,
    *,
    out: _Out[_Float] = None,
) -> _Array[_Shape, _Float]: ...
@overload
def parametric_softplus(
    input: _Same, alpha: _Number = 1.0, beta: _Number = 1.0, *, out: _Same | None = None
) -> _Same: ...
@overload
def parametric_softplus(
    input: _Other, alpha: _Number = 1.0, beta: _Number = 1.0, *, out: _Out[Any] = None
) -> NDArray[Any]: ...
@overload
def relu(
    input: _Array[_Shape, _Signed], *, out: _Out[_Signed] = None
) -> _Array[_Shape, _Signed]: ...
@overload
def relu(input: _Same, *, out: _Same | None = None) -> _Same: ...
@overload
def relu(input: _Other, *, out: _Out[Any] = None) -> NDArray[Any]: ...
@overload
def scaled_elu(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.6732632,
    gamma: _Number = 1.050701,
    *,
    out: _Out[_Float] = None,
) -> _Array[_Shape, _Float]: ...
@overload
def scaled_elu(
    input: _Same, alpha: _Number = 1.6732632, gamma: _Number = 1.050701, *, out: _Same | None = None
) -> _Same: ...
@overload
def scaled_elu(
    input: _Other, alpha: _Number = 1.6732632, gamma: _Number = 1.050701, *, out: _Out[Any] = None
) -> NDArray[Any]: ...
@overload
def scaled_tanh(
    input: _Array[_Shape, _Float],
    alpha: _Number = 1.0,
    beta: _Number = 0.5,
    *,
    out: _Out[_Float] = None,
) -> _Array[_Shape, _Float]: ...
@overload
def scaled_tanh(
    input: _Same, alpha: _Number = 1.0, beta: _Number = 0.5, *, out: _Same | None = None
) -> _Same: ...
@overload
def scaled_tanh(
    input: _Other, alpha: _Number = 1.0, beta: _Number = 0.5, *, out: _Out[Any] = None
) -> NDArray[Any]: ...
@overload
def sigmoid(
    input: _Array[_Shape, _Float], *, out: _Out[_Float] = None
) -> _Array[_Shape, _Float]: ...
@overload
def sigmoid(input: _Same, *, out: _Same | None = None) -> _Same: ...
@overload
def sigmoid(input: _Other, *, out: _Out[Any] = None) -> NDArray[Any]: ...
@overload
def softplus(
    input: _Array[_Shape, _Float], steepness: _Number = 1.0, *, out: _Out[_Float] = None
) -> _Array[_Shape, _Float]: ...
@overload
def softplus(input: _Same, steepness: _Number = 1.0, *, out: _Same | None = None) -> _Same: ...
@overload
def softplus(input: _Other, steepness: _Number = 1.0, *, out: _Out[Any] = None) -> NDArray[Any]: ...
@overload
def softsign(
    input: _Array[_Shape, _Float], *, out: _Out[_Float] = None
) -> _Array[_Shape, _Float]: ...
@overload
def softsign(input: _Same, *, out: _Same | None = None) -> _Same: ...
@overload
def softsign(input: _Other, *, out: _Out[Any] = None) -> NDArray[Any]: ...
@overload
def tanh(input: _Array[_Shape, _Float], *, out: _Out[_Float] = None) -> _Array[_Shape, _Float]: ...
@overload
def tanh(input: _Same, *, out: _Same | None = None) -> _Same: ...
@overload
def tanh(input: _Other, *, out: _Out[Any] = None) -> NDArray[Any]: ...
@overload
def thresholded_relu(
    input: _Array[_Shape, _Float], alpha: _Number = 1.0, *, out: _Out[_Float] = None
) -> _Array[_Shape, _Float]: ...
@overload
def thresholded_relu(input: _Same, alpha: _Number = 1.0, *, out: _Same | None = None) -> _Same: ...
@overload
def thresholded_relu(
    input: _Other, alpha: _Number = 1.0, *, out: _Out[Any] = None
) -> NDArray[Any]: ...
@overload
def shrink(
    input: _Array[_Shape, _Narrow],
    bias: _Number = 0.0,
    threshold: _Number = 0.5,
    *,
    out: _Out[_Narrow] = None,
) -> _Array[_Shape, _Narrow]: ...
@overload
def shrink(
    input: _Same, bias: _Number = 0.0, threshold: _Number = 0.5, *, out: _Same | None = None
) -> _Same: ...
@overload
def shrink(
    input: _Other, bias: _Number = 0.0, threshold: _Number = 0.5, *, out: _Out[Any] = None
) -> NDArray[Any]: ...
@overload
def gelu(input: _Array[_Shape, _Float], *, out: _Out[_Float] = None) -> _Array[_Shape, _Float]: ...
@overload
def gelu(input: _Same, *, out: _Same | None = None) -> _Same: ...
@overload
def gelu(input: _Other, *, out: _Out[Any] = None) -> NDArray[Any]: ...
@overload
def batch_normalization(
    input: _Array[_Shape, _Float],
    mean: NDArray[_Float],
    variance: NDArray[_Float],
    scale: NDArray[_Float],
    bias: NDArray[_Float],
    epsilon: _Number = 1e-5,
    *,
    fused_activation: FusedActivation | None = None,
    out: _Out[_Float] = None,
) -> _Array[_Shape, _Float]: ...
@overload
def batch_normalization(
    input: _Same,
    mean: _Parameter,
    variance: _Parameter,
    scale: _Parameter,
    bias: _Parameter,
    epsilon: _Number = 1e-5,
    *,
    fused_activation: FusedActivation | None = None,
    out: _Same | None = None,
) -> _Same: ...
@overload
def batch_normalization(
    input: _Other,
    mean: _Parameter,
    variance: _Parameter,
    scale: _Parameter,
    bias: _Parameter,
    epsilon: _Number = 1e-5,
    *,
    fused_activation: FusedActivation | None = None,
    out: _Out[Any] = None,
) -> NDArray[Any]: ...
@overload
def log_softmax(
    input: _Array[_Shape, _Float],
    axes: SupportsIndex | Sequence[SupportsIndex] = -1,
    *,
    out: _Out[_Float] = None,
) -> _Array[_Shape, _Float]: ...
@overload
def log_softmax(
    input: _Same, axes: SupportsIndex | Sequence[SupportsIndex] = -1, *, out: _Same | None = None
) -> _Same: ...
@overload
def log_softmax(
    input: _Other, axes: SupportsIndex | Sequence[SupportsIndex] = -1, *, out: _Out[Any] = None
) -> NDArray[Any]: ...
def add_docstring(function: object, text: str) -> None: ...
def version() -> str: ...
def isa() -> str: ...
def set_isa(name: str) -> None: ...
def available_isas() -> tuple[str, ...]: ...
def get_num_threads() -> int: ...
def non_temporal_threshold() -> int: ...
def set_non_temporal_threshold(bytes: int) -> None: ...
def split_threshold() -> int: ...
def set_split_threshold(bytes: int) -> None: ...
def set_num_threads(n: int) -> None: ...
def exchange_own_num_threads(n: int) -> int: ...
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
    def __reduce__(self) -> tuple[Any, ...]: ...
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
