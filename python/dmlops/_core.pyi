from array import array
from typing import Any, Protocol, SupportsFloat, SupportsIndex, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from dmlops._activations import *  # noqa: F403
from dmlops._enums import FeatureLevel
from dmlops._operator_descs import OperatorDesc
from dmlops._operators import *  # noqa: F403
from dmlops._tensor_desc import BufferTensorDesc

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
# The result has the type of the input, and `out` may have the type.
_Same = TypeVar("_Same", bound=_Standard | _Torch | _Jax)
# The result has the type of the input, and is always new.
_New = TypeVar("_New", bound=_Labelled | _Lazy | _Scalar)
_LazySame = TypeVar("_LazySame", bound=_Lazy)
# Of several results, those after the first have the type of the parameter whose shape they have.
_Group = TypeVar("_Group", bound=_Standard | _Torch | _Jax | _Scalar | NDArray[Any])
_Other = _Buffer | _SupportsDLPack | _Jax | _Scalar
_Parameter = _Other | _Lazy | NDArray[Any]
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

def add_docstring(function: object, text: str) -> None: ...
def version() -> str: ...
def directml_names(message: str) -> str: ...
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

SUM_BLOCK: int
SUM_LANES: int
MOMENT_LANES: int

def softmax_sums(
    name: str, x: NDArray[Any], max: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def softmax_finish(
    name: str,
    x: NDArray[Any],
    max: NDArray[np.float32],
    sums: NDArray[np.float64],
    maxima: NDArray[np.float64],
) -> NDArray[Any]: ...
def run_stage(
    operator_type: int,
    stage: int,
    group_elements: int,
    tensors: dict[str, NDArray[Any]],
    sums: list[NDArray[np.float64]],
    reduced: int,
    epsilon: float,
    flags: list[bool],
    fused_activation: Any,
) -> None: ...
