"""A user's program that runs, and passes type checkers."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import dmlops

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value: Any, _: Any) -> Any:
        """Do nothing at run time; type checkers check the type."""
        return value


Float = TypeVar("Float", np.float32, np.float16)

f32: NDArray[np.float32] = np.ones((2, 3), np.float32)
f16: NDArray[np.float16] = np.ones((2, 3), np.float16)
u8: NDArray[np.uint8] = np.ones((2, 3), np.uint8)
i32: NDArray[np.int32] = np.ones((2, 3), np.int32)
unknown: NDArray[Any] = f32

# The result has the dtype and the shape of the input.
assert_type(dmlops.clip(f32, 0, 6), NDArray[np.float32])
assert_type(dmlops.clip(u8, min=np.uint8(1), max=2.0), NDArray[np.uint8])
assert_type(dmlops.hard_sigmoid(f16), NDArray[np.float16])
assert_type(dmlops.log_softmax(f16, axes=(0, -1)), NDArray[np.float16])
assert_type(dmlops.relu(i32), NDArray[np.int32])
assert_type(dmlops.shrink(u8, 1, 2), NDArray[np.uint8])
matrix = np.ones((2, 3), np.float32)
assert_type(dmlops.gelu(matrix).shape, tuple[int, int])

# Through `out` too.
result = np.empty_like(f32)
assert_type(dmlops.elu(f32, 0.5, out=result), NDArray[np.float32])
scaled = dmlops.clip(i32, scale_bias=dmlops.ScaleBias(2, 1), out=np.empty_like(i32))
assert_type(scaled, NDArray[np.int32])

# Objects other than ndarrays, and arrays of unknown dtype.
assert_type(dmlops.elu(np.float32(1)), np.float32)
assert_type(dmlops.softsign(array("f", [1, 2])), NDArray[Any])
assert_type(dmlops.clip(memoryview(b"ab"), 1, 2), NDArray[Any])
assert_type(dmlops.tanh(unknown).ndim, int)


class Tensor:
    """The subset of PyTorch's tensors that dmlops requires."""

    def __init__(self, array: NDArray[Any]) -> None:
        """Take the array to offer."""
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        """Offer the memory."""
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Return the CPU as device."""
        return self.array.__dlpack_device__()

    def detach(self) -> Tensor:
        """Return itself: there are no gradients."""
        return self


# Results have the caller's array type; `out` has the same type, or is a NumPy array.
assert_type(dmlops.gelu(Tensor(f32), out=Tensor(result)), Tensor)
assert_type(dmlops.gelu(Tensor(f32), out=result), NDArray[Any])

# Of several results, each has the type of the argument whose shape it has. Elements of `out` may be
# None.
group: NDArray[np.float32] = np.ones((1, 3), np.float32)
Arrays = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
Tensors = tuple[Tensor, Tensor, Tensor]
Both = tuple[Tensor, NDArray[np.float32], NDArray[np.float32]]
assert_type(dmlops.batch_normalization_training(f32, group, group), Arrays)
arrays = dmlops.batch_normalization_training(f32, group, group, out=(result, None, None))
assert_type(arrays, Arrays)
t, g = Tensor(f32), Tensor(group)
assert_type(dmlops.batch_normalization_training(t, g, g), Tensors)
first = dmlops.batch_normalization_training(t, g, g, out=(Tensor(result), None, None))
assert_type(first, Tensors)
second = dmlops.batch_normalization_grad(t, t, g, g, g, out=(None, Tensor(group.copy()), None))
assert_type(second, Tensors)
assert_type(dmlops.batch_normalization_training(t, group, group), Both)
both = dmlops.batch_normalization_training(t, group, group, out=(None, group.copy(), None))
assert_type(both, Both)
both = dmlops.batch_normalization_training_grad(t, f32, group, group, group)
assert_type(both, Both)
numbers = dmlops.batch_normalization_training(f32, g, group)
assert_type(numbers, tuple[NDArray[np.float32], Tensor, Tensor])
mixed = dmlops.batch_normalization_training(t, g, g, out=(result, None, group.copy()))
assert_type(mixed, tuple[Any, Any, Any])
one: NDArray[np.float32] = np.ones(1, np.float32)
buffers = dmlops.batch_normalization_training(array("f", [1, 2]), one, one)
assert_type(buffers, tuple[NDArray[Any], NDArray[Any], NDArray[Any]])


def standardized(
    x: NDArray[Float], mean: NDArray[Float], variance: NDArray[Float]
) -> NDArray[Float]:
    """Accept a user's own type variable."""
    one = np.ones_like(mean)
    activation = dmlops.ActivationLeakyReluOperatorDesc(alpha=0.1)
    return dmlops.batch_normalization(x, mean, variance, one, one, fused_activation=activation)


assert_type(standardized(f16, f16, f16), NDArray[np.float16])
named = dmlops.batch_normalization(f32, f32, f32, f32, f32, fused_activation="relu")
assert_type(named, NDArray[np.float32])

# Descriptors.
x = dmlops.BufferTensorDesc.from_array(f32)
sizes: list[int] = [1, 3, 8, 8]
y = dmlops.BufferTensorDesc(
    dmlops.TensorDataType.FLOAT16, sizes, strides=np.array([0, 1, 0, 0]).tolist()
)
assert_type(y.sizes, tuple[int, ...])
desc = dmlops.ActivationLogSoftmax1OperatorDesc(input_tensor=x, output_tensor=x, axes=[1])
assert_type(desc.axes, tuple[int, ...])
assert_type(desc.operator_type, dmlops.OperatorType)
assert_type(dmlops.required_feature_level(desc), dmlops.FeatureLevel)
compiled = dmlops.Device(dmlops.FeatureLevel.LEVEL_5_1).compile(desc)
assert_type(compiled, dmlops.CompiledOperator)
compiled.dispatch(inputs=[f32], outputs={"output_tensor": dmlops.BufferBinding(result)})

# Run-time facts.
assert_type(dmlops.isa(), str)
assert_type(dmlops.available_isas(), tuple[str, ...])
assert_type(dmlops.get_num_threads(), int)
assert_type(dmlops.build_info()["threads"], int)
assert_type(dmlops.build_info()["available_isas"], list[str])
assert_type(dmlops.build_info()["version"], str)
assert_type(dmlops.__version__, str)
