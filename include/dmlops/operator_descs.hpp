// DirectML's descriptors, a struct for each operator, with the names and defaults of the Python
// interface. Each converts to OperatorDesc, the argument of Device::compile, validate and
// required_feature_level, and the type of a fused activation.
#pragma once

#include "dmlops/activation_descs.hpp"

namespace dmlops {

/// DML_ELEMENT_WISE_CLIP_OPERATOR_DESC: max(min, min(x * scale + bias, max)). Bounds are truncated
/// toward zero and saturated for integer tensors. NaN is no bound.
struct ElementWiseClipOperatorDesc {
  BufferTensorDesc input_tensor;        ///< the input
  BufferTensorDesc output_tensor;       ///< of the same data type and sizes
  std::optional<ScaleBias> scale_bias;  ///< applied first
  float min = 0;                        ///< lower bound
  float max = 0;                        ///< upper bound; min wins if greater

  DMLOPS_API operator OperatorDesc() const;  ///< as any operator's
};

/// DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC: clip with bounds in the tensor's own data type, exact for
/// 64-bit integers. The conversion to OperatorDesc throws ValidationError if a bound does not fit
/// `min_max_data_type`.
struct ElementWiseClip1OperatorDesc {
  BufferTensorDesc input_tensor;                               ///< the input
  BufferTensorDesc output_tensor;                              ///< of the same data type and sizes
  std::optional<ScaleBias> scale_bias;                         ///< applied first
  TensorDataType min_max_data_type = TensorDataType::unknown;  ///< that of the tensors
  Scalar min = 0;                                              ///< lower bound
  Scalar max = 0;                                              ///< upper bound

  DMLOPS_API operator OperatorDesc() const;  ///< as any operator's
};

/// DML_BATCH_NORMALIZATION_OPERATOR_DESC: scale * (x - mean) / sqrt(variance + epsilon) + bias,
/// then the activation if there is one.
struct BatchNormalizationOperatorDesc {
  BufferTensorDesc input_tensor;     ///< the input
  BufferTensorDesc mean_tensor;      ///< each size 1 or the input's, as for the next three
  BufferTensorDesc variance_tensor;  ///< the variance
  BufferTensorDesc scale_tensor;     ///< factor of the normalized x
  BufferTensorDesc bias_tensor;      ///< addend
  BufferTensorDesc output_tensor;    ///< of the input's data type and sizes
  bool spatial = true;    ///< below level 4.0, false forbids broadcasts in height and width
  float epsilon = 1e-5f;  ///< added to the variance
  std::optional<OperatorDesc> fused_activation;  ///< an activation's descriptor without tensors

  DMLOPS_API operator OperatorDesc() const;  ///< as any operator's
};

/// DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC: over the last dimension. Without leading sizes of 1,
/// at most 2 dimensions.
struct ActivationLogSoftmaxOperatorDesc {
  BufferTensorDesc input_tensor;   ///< the input
  BufferTensorDesc output_tensor;  ///< of the same data type and sizes

  DMLOPS_API operator OperatorDesc() const;  ///< as any operator's
};

/// DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC: over all the listed axes together.
struct ActivationLogSoftmax1OperatorDesc {
  BufferTensorDesc input_tensor;    ///< the input
  BufferTensorDesc output_tensor;   ///< of the same data type and sizes
  std::vector<std::uint32_t> axes;  ///< at least one, each once, in any order

  DMLOPS_API operator OperatorDesc() const;  ///< as any operator's
};

}  // namespace dmlops
