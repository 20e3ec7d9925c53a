"""DirectML's descriptors of clip, batch normalization and log softmax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, SupportsIndex

from dmlops._activation_descs import ActivationDesc
from dmlops._enums import OperatorType, TensorDataType, member
from dmlops._fused_activation import FusedActivation, fused_activation
from dmlops._scale_bias import ScaleBias
from dmlops._tensor_desc import BufferTensorDesc, Descriptor, integers


@dataclass(frozen=True, kw_only=True, repr=False)
class ElementWiseClipOperatorDesc(Descriptor):
    """``max(min, minimum(g(x), max))`` with float32 bounds, ``g(x) = x * scale + bias``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc
        Of the same data type and sizes.
    scale_bias : ScaleBias, optional
        Applied first. None is no change.
    min, max : float
        Truncated toward zero and saturated for integer tensors. NaN is no bound.

    Notes
    -----
    DirectML's DML_ELEMENT_WISE_CLIP_OPERATOR_DESC. Works in place.

    Examples
    --------
    >>> import numpy as np
    >>> from dmlops import BufferTensorDesc, Device, ElementWiseClipOperatorDesc, TensorDataType
    >>> x = BufferTensorDesc(TensorDataType.INT8, (4,))
    >>> desc = ElementWiseClipOperatorDesc(input_tensor=x, output_tensor=x, min=-2.5, max=1e9)
    >>> values = np.array([-100, -2, 0, 100], np.int8)
    >>> Device().compile(desc).dispatch(inputs=[values], outputs=[values])
    >>> values
    array([ -2,  -2,   0, 100], dtype=int8)
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ELEMENT_WISE_CLIP
    input_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc
    scale_bias: ScaleBias | None = None
    min: float
    max: float


@dataclass(frozen=True, kw_only=True, repr=False)
class ElementWiseClip1OperatorDesc(Descriptor):
    """Clip with bounds in the tensor's own data type, exact for 64-bit integers.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc
        Of the same data type and sizes.
    scale_bias : ScaleBias, optional
        Applied first. None is no change.
    min_max_data_type : TensorDataType
        Data type of the bounds; must be that of the tensors.
    min, max : float or int
        Values of that data type. NaN is no bound.

    Notes
    -----
    DirectML's DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC. Works in place.

    Examples
    --------
    >>> import numpy as np
    >>> from dmlops import BufferTensorDesc, Device, ElementWiseClip1OperatorDesc, TensorDataType
    >>> values = np.array([2**62 + 3, 5], np.int64)
    >>> x = BufferTensorDesc.from_array(values)
    >>> desc = ElementWiseClip1OperatorDesc(
    ...     input_tensor=x,
    ...     output_tensor=x,
    ...     min_max_data_type=TensorDataType.INT64,
    ...     min=7,
    ...     max=2**62 + 1,
    ... )
    >>> Device().compile(desc).dispatch(inputs=[values], outputs=[values])
    >>> values - 2**62
    array([                   1, -4611686018427387897])
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ELEMENT_WISE_CLIP1
    input_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc
    scale_bias: ScaleBias | None = None
    min_max_data_type: TensorDataType
    min: float
    max: float

    def __post_init__(self) -> None:
        """Convert the name or number of the data type."""
        where = f"{type(self).__name__}: min_max_data_type"
        self._set("min_max_data_type", member(where, TensorDataType, self.min_max_data_type))


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchNormalizationOperatorDesc(Descriptor):
    """``scale * (x - mean) / sqrt(variance + epsilon) + bias``, then an activation.

    Parameters
    ----------
    input_tensor : BufferTensorDesc
        The tensor to normalize.
    mean_tensor, variance_tensor, scale_tensor, bias_tensor : BufferTensorDesc
        The parameters, of the input's data type and dimension count; each size is 1 or the input's.
    output_tensor : BufferTensorDesc
        Of the input's data type and sizes.
    spatial : bool, default True
        Below feature level 4.0, False forbids mean and variance to be broadcast in height or width;
        ignored from 4.0 on.
    epsilon : float, default 1e-5
        Added to the variance.
    fused_activation : descriptor or name of an activation, optional
        A descriptor without tensors, such as ``ActivationReluOperatorDesc()``, or a name, such as
        ``"relu"``, for the default parameters.

    Notes
    -----
    DirectML's DML_BATCH_NORMALIZATION_OPERATOR_DESC. Does not work in place.

    Examples
    --------
    >>> import numpy as np
    >>> from dmlops import (
    ...     ActivationReluOperatorDesc,
    ...     BatchNormalizationOperatorDesc,
    ...     BufferTensorDesc,
    ...     Device,
    ... )
    >>> x = np.array([[[1, 3], [5, 9]]], np.float32)  # 1 image, 2 channels, 2 pixels
    >>> mean, variance, scale, bias = (
    ...     np.array(v, np.float32).reshape(1, 2, 1) for v in ([2, 7], [1, 4], [1, 1], [0, 10])
    ... )
    >>> image, channels = BufferTensorDesc.from_array(x), BufferTensorDesc.from_array(mean)
    >>> desc = BatchNormalizationOperatorDesc(
    ...     input_tensor=image,
    ...     mean_tensor=channels,
    ...     variance_tensor=channels,
    ...     scale_tensor=channels,
    ...     bias_tensor=channels,
    ...     output_tensor=image,
    ...     epsilon=0.0,
    ...     fused_activation=ActivationReluOperatorDesc(),
    ... )
    >>> result = np.empty_like(x)
    >>> Device().compile(desc).dispatch(inputs=[x, mean, variance, scale, bias], outputs=[result])
    >>> result
    array([[[ 0.,  1.],
            [ 9., 11.]]], dtype=float32)
    """

    operator_type: ClassVar[OperatorType] = OperatorType.BATCH_NORMALIZATION
    input_tensor: BufferTensorDesc
    mean_tensor: BufferTensorDesc
    variance_tensor: BufferTensorDesc
    scale_tensor: BufferTensorDesc
    bias_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc
    spatial: bool = True
    epsilon: float = 1e-5
    fused_activation: ActivationDesc | None = None

    if TYPE_CHECKING:  # see BufferTensorDesc

        def __init__(
            self,
            *,
            input_tensor: BufferTensorDesc,
            mean_tensor: BufferTensorDesc,
            variance_tensor: BufferTensorDesc,
            scale_tensor: BufferTensorDesc,
            bias_tensor: BufferTensorDesc,
            output_tensor: BufferTensorDesc,
            spatial: bool = True,
            epsilon: float = 1e-5,
            fused_activation: FusedActivation | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Convert the name or the class of an activation."""
        if isinstance(self.fused_activation, (str, type)):
            where = f"{type(self).__name__}: fused_activation"
            self._set("fused_activation", fused_activation(where, self.fused_activation))


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationLogSoftmaxOperatorDesc(Descriptor):
    """The logarithm of the softmax over the last dimension.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc
        Of the same data type and sizes; without leading sizes of 1, at most 2 dimensions.

    Notes
    -----
    DirectML's DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC. Does not work in place.

    Examples
    --------
    >>> from dmlops import ActivationLogSoftmaxOperatorDesc, BufferTensorDesc, TensorDataType
    >>> from dmlops import required_feature_level
    >>> x = BufferTensorDesc(TensorDataType.FLOAT32, (1, 1, 8, 10))
    >>> desc = ActivationLogSoftmaxOperatorDesc(input_tensor=x, output_tensor=x)
    >>> required_feature_level(desc)
    FeatureLevel.LEVEL_1_0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_LOG_SOFTMAX
    input_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationLogSoftmax1OperatorDesc(Descriptor):
    """The logarithm of the softmax over any dimensions, together.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc
        Of the same data type and sizes.
    axes : sequence of int
        The dimensions that make up a group: at least one, none twice, in any order.

    Notes
    -----
    DirectML's DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC; AxisCount is the length of `axes`. Does
    not work in place. From feature level 5.1 on.

    Examples
    --------
    >>> import numpy as np
    >>> from dmlops import ActivationLogSoftmax1OperatorDesc, BufferTensorDesc, Device
    >>> x = np.array([[2, 0], [1, 1]], np.float32)
    >>> tensor = BufferTensorDesc.from_array(x)
    >>> desc = ActivationLogSoftmax1OperatorDesc(
    ...     input_tensor=tensor, output_tensor=tensor, axes=(0, 1)
    ... )
    >>> result = np.empty_like(x)
    >>> Device().compile(desc).dispatch(inputs=[x], outputs=[result])
    >>> result.round(3)
    array([[-0.627, -2.627],
           [-1.627, -1.627]], dtype=float32)
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_LOG_SOFTMAX1
    input_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc
    axes: tuple[int, ...]

    if TYPE_CHECKING:  # see BufferTensorDesc

        def __init__(
            self,
            *,
            input_tensor: BufferTensorDesc,
            output_tensor: BufferTensorDesc,
            axes: Sequence[SupportsIndex],
        ) -> None: ...

    def __post_init__(self) -> None:
        """Convert the axes to a tuple of integers."""
        self._set("axes", integers(f"{type(self).__name__}: axes", self.axes))
