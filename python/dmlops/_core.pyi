from collections.abc import Sequence
from typing import Any, Protocol, SupportsFloat, SupportsIndex, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from dmlops._activation_descs import ActivationDesc
from dmlops._device import OperatorDesc
from dmlops._enums import FeatureLevel
from dmlops._scale_bias import ScaleBias
from dmlops._tensor_desc import BufferTensorDesc

class _SupportsDLPack(Protocol):
    def __dlpack__(self) -> object: ...

_ArrayLike = _SupportsDLPack | Buffer
_Number = SupportsFloat | SupportsIndex

_Float = TypeVar("_Float", np.float32, np.float16)
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

@overload
def clip(
    input: NDArray[_Element],
    min: _Number | None = None,
    max: _Number | None = None,
    *,
    scale_bias: ScaleBias | None = None,
    out: NDArray[_Element] | None = None,
) -> NDArray[_Element]: ...
@overload
def clip(
    input: _ArrayLike,
    min: _Number | None = None,
    max: _Number | None = None,
    *,
    scale_bias: ScaleBias | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def elu(
    input: NDArray[_Float],
    alpha: _Number = 1.0,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def elu(
    input: _ArrayLike,
    alpha: _Number = 1.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def celu(
    input: NDArray[_Float],
    alpha: _Number = 1.0,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def celu(
    input: _ArrayLike,
    alpha: _Number = 1.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def hard_sigmoid(
    input: NDArray[_Float],
    alpha: _Number = 0.2,
    beta: _Number = 0.5,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def hard_sigmoid(
    input: _ArrayLike,
    alpha: _Number = 0.2,
    beta: _Number = 0.5,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def identity(
    input: NDArray[_Float],
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def identity(
    input: _ArrayLike,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def leaky_relu(
    input: NDArray[_Float],
    alpha: _Number = 0.01,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def leaky_relu(
    input: _ArrayLike,
    alpha: _Number = 0.01,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def linear(
    input: NDArray[_Float],
    alpha: _Number = 1.0,
    beta: _Number = 0.0,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def linear(
    input: _ArrayLike,
    alpha: _Number = 1.0,
    beta: _Number = 0.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def parametric_softplus(
    input: NDArray[_Float],
    alpha: _Number = 1.0,
    beta: _Number = 1.0,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def parametric_softplus(
    input: _ArrayLike,
    alpha: _Number = 1.0,
    beta: _Number = 1.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def relu(
    input: NDArray[_Float],
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def relu(
    input: _ArrayLike,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def scaled_elu(
    input: NDArray[_Float],
    alpha: _Number = 1.6732632,
    gamma: _Number = 1.050701,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def scaled_elu(
    input: _ArrayLike,
    alpha: _Number = 1.6732632,
    gamma: _Number = 1.050701,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def scaled_tanh(
    input: NDArray[_Float],
    alpha: _Number = 1.0,
    beta: _Number = 0.5,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def scaled_tanh(
    input: _ArrayLike,
    alpha: _Number = 1.0,
    beta: _Number = 0.5,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def sigmoid(
    input: NDArray[_Float],
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def sigmoid(
    input: _ArrayLike,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def softplus(
    input: NDArray[_Float],
    steepness: _Number = 1.0,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def softplus(
    input: _ArrayLike,
    steepness: _Number = 1.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def softsign(
    input: NDArray[_Float],
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def softsign(
    input: _ArrayLike,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def tanh(
    input: NDArray[_Float],
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def tanh(
    input: _ArrayLike,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def thresholded_relu(
    input: NDArray[_Float],
    alpha: _Number = 1.0,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def thresholded_relu(
    input: _ArrayLike,
    alpha: _Number = 1.0,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def shrink(
    input: NDArray[_Float],
    bias: _Number = 0.0,
    threshold: _Number = 0.5,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def shrink(
    input: _ArrayLike,
    bias: _Number = 0.0,
    threshold: _Number = 0.5,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def gelu(
    input: NDArray[_Float],
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def gelu(
    input: _ArrayLike,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def batch_normalization(
    input: NDArray[_Float],
    mean: NDArray[_Float],
    variance: NDArray[_Float],
    scale: NDArray[_Float],
    bias: NDArray[_Float],
    epsilon: _Number = 1e-5,
    *,
    fused_activation: ActivationDesc | None = None,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def batch_normalization(
    input: _ArrayLike,
    mean: _ArrayLike,
    variance: _ArrayLike,
    scale: _ArrayLike,
    bias: _ArrayLike,
    epsilon: _Number = 1e-5,
    *,
    fused_activation: ActivationDesc | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
@overload
def log_softmax(
    input: NDArray[_Float],
    axes: SupportsIndex | Sequence[SupportsIndex] = -1,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
@overload
def log_softmax(
    input: _ArrayLike,
    axes: SupportsIndex | Sequence[SupportsIndex] = -1,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
def add_docstring(function: object, text: str) -> None: ...
def version() -> str: ...
def isa() -> str: ...
def available_isas() -> tuple[str, ...]: ...
def get_num_threads() -> int: ...
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
