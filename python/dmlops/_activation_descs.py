"""DirectML's descriptors of the activations, standalone or fused into batch normalization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dmlops._enums import OperatorType
from dmlops._tensor_desc import BufferTensorDesc, Descriptor


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationDesc(Descriptor):
    """Base class of the activations: one input and one output, which may be the same memory.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        Of the same data type and sizes. Both are None where the activation is fused.
    """

    operator_type: ClassVar[OperatorType]
    input_tensor: BufferTensorDesc | None = None
    output_tensor: BufferTensorDesc | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationEluOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_ELU_OPERATOR_DESC: ``x`` where ``x >= 0``, otherwise ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    alpha : float, default 1.0
        The limit for very negative ``x``, with the opposite sign.

    Examples
    --------
    >>> from dmlops import ActivationEluOperatorDesc
    >>> ActivationEluOperatorDesc(alpha=2.0).alpha
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_ELU
    alpha: float = 1.0


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationCeluOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_CELU_OPERATOR_DESC: ``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    alpha : float, default 1.0
        The limit for very negative ``x``, with the opposite sign.

    Examples
    --------
    >>> from dmlops import ActivationCeluOperatorDesc
    >>> ActivationCeluOperatorDesc(alpha=2.0).alpha
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_CELU
    alpha: float = 1.0


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationHardSigmoidOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC: ``max(0, minimum(alpha * x + beta, 1))``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    alpha : float, default 0.2
        The slope.
    beta : float, default 0.5
        The value at 0.

    Examples
    --------
    >>> from dmlops import ActivationHardSigmoidOperatorDesc
    >>> ActivationHardSigmoidOperatorDesc(alpha=2.0).alpha
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_HARD_SIGMOID
    alpha: float = 0.2
    beta: float = 0.5


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationIdentityOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_IDENTITY_OPERATOR_DESC: ``x``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.

    Examples
    --------
    >>> from dmlops import ActivationIdentityOperatorDesc
    >>> ActivationIdentityOperatorDesc().operator_type
    OperatorType.ACTIVATION_IDENTITY
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_IDENTITY


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationLeakyReluOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC: ``x`` where ``x >= 0``, otherwise ``alpha * x``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    alpha : float, default 0.01
        The slope below 0.

    Examples
    --------
    >>> from dmlops import ActivationLeakyReluOperatorDesc
    >>> ActivationLeakyReluOperatorDesc(alpha=2.0).alpha
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_LEAKY_RELU
    alpha: float = 0.01


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationLinearOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_LINEAR_OPERATOR_DESC: ``alpha * x + beta``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    alpha : float, default 1.0
        The slope.
    beta : float, default 0.0
        The value at 0.

    Examples
    --------
    >>> from dmlops import ActivationLinearOperatorDesc
    >>> ActivationLinearOperatorDesc(alpha=2.0).alpha
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_LINEAR
    alpha: float = 1.0
    beta: float = 0.0


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationParametricSoftplusOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC: ``alpha * ln(1 + exp(beta * x))``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    alpha : float, default 1.0
        The factor of the result.
    beta : float, default 1.0
        The factor of ``x``.

    Examples
    --------
    >>> from dmlops import ActivationParametricSoftplusOperatorDesc
    >>> ActivationParametricSoftplusOperatorDesc(alpha=2.0).alpha
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_PARAMETRIC_SOFTPLUS
    alpha: float = 1.0
    beta: float = 1.0


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationReluOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_RELU_OPERATOR_DESC: ``max(0, x)``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.

    Examples
    --------
    >>> from dmlops import ActivationReluOperatorDesc
    >>> ActivationReluOperatorDesc().operator_type
    OperatorType.ACTIVATION_RELU
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_RELU


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationScaledEluOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC: `gamma` times the ELU.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    alpha : float, default 1.67326319217681884765625
        The limit for very negative ``x``, before `gamma`.
    gamma : float, default 1.05070102214813232421875
        The factor of the result.

    Examples
    --------
    >>> from dmlops import ActivationScaledEluOperatorDesc
    >>> ActivationScaledEluOperatorDesc(alpha=2.0).alpha
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_SCALED_ELU
    alpha: float = 1.67326319217681884765625
    gamma: float = 1.05070102214813232421875


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationScaledTanhOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC: ``alpha * tanh(beta * x)``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    alpha : float, default 1.0
        The factor of the result.
    beta : float, default 0.5
        The factor of ``x``.

    Examples
    --------
    >>> from dmlops import ActivationScaledTanhOperatorDesc
    >>> ActivationScaledTanhOperatorDesc(alpha=2.0).alpha
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_SCALED_TANH
    alpha: float = 1.0
    beta: float = 0.5


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationSigmoidOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_SIGMOID_OPERATOR_DESC: ``1 / (1 + exp(-x))``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.

    Examples
    --------
    >>> from dmlops import ActivationSigmoidOperatorDesc
    >>> ActivationSigmoidOperatorDesc().operator_type
    OperatorType.ACTIVATION_SIGMOID
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_SIGMOID


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationSoftplusOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC: ``ln(1 + exp(steepness * x)) / steepness``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    steepness : float, default 1.0
        At least 1 below feature level 6.4.

    Examples
    --------
    >>> from dmlops import ActivationSoftplusOperatorDesc
    >>> ActivationSoftplusOperatorDesc(steepness=2.0).steepness
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_SOFTPLUS
    steepness: float = 1.0


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationSoftsignOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC: ``x / (1 + abs(x))``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.

    Examples
    --------
    >>> from dmlops import ActivationSoftsignOperatorDesc
    >>> ActivationSoftsignOperatorDesc().operator_type
    OperatorType.ACTIVATION_SOFTSIGN
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_SOFTSIGN


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationTanhOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_TANH_OPERATOR_DESC: ``tanh(x)``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.

    Examples
    --------
    >>> from dmlops import ActivationTanhOperatorDesc
    >>> ActivationTanhOperatorDesc().operator_type
    OperatorType.ACTIVATION_TANH
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_TANH


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationThresholdedReluOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC: ``x`` where ``x > alpha``, otherwise 0.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    alpha : float, default 1.0
        The threshold.

    Examples
    --------
    >>> from dmlops import ActivationThresholdedReluOperatorDesc
    >>> ActivationThresholdedReluOperatorDesc(alpha=2.0).alpha
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_THRESHOLDED_RELU
    alpha: float = 1.0


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationShrinkOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_SHRINK_OPERATOR_DESC: toward 0 by `bias`, and to 0 up to `threshold`.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.
    bias : float, default 0.0
        The amount by which values beyond the threshold are moved toward 0.
    threshold : float, default 0.5
        Values from ``-threshold`` to ``threshold`` become 0.

    Examples
    --------
    >>> from dmlops import ActivationShrinkOperatorDesc
    >>> ActivationShrinkOperatorDesc(bias=2.0).bias
    2.0
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_SHRINK
    bias: float = 0.0
    threshold: float = 0.5


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationGeluOperatorDesc(ActivationDesc):
    """DML_ACTIVATION_GELU_OPERATOR_DESC: ``0.5 * x * (1 + erf(x / sqrt(2)))``.

    Parameters
    ----------
    input_tensor, output_tensor : BufferTensorDesc, optional
        None where it is fused.

    Examples
    --------
    >>> from dmlops import ActivationGeluOperatorDesc
    >>> ActivationGeluOperatorDesc().operator_type
    OperatorType.ACTIVATION_GELU
    """

    operator_type: ClassVar[OperatorType] = OperatorType.ACTIVATION_GELU
