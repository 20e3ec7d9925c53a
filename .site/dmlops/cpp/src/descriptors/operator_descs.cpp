// The operators' own structs as the one that all share.
#include "dmlops/operator_descs.hpp"

#include <algorithm>

namespace dmlops {
namespace {

OperatorDesc unary(OperatorType type, const BufferTensorDesc& input,
                   const BufferTensorDesc& output) {
  OperatorDesc desc;
  desc.type = type;
  desc.tensors[0] = input;
  desc.tensors[1] = output;
  return desc;
}

}  // namespace

BufferTensorDesc::BufferTensorDesc(TensorDataType data_type_,
                                   const std::vector<std::uint32_t>& sizes_,
                                   const std::vector<std::uint32_t>& strides_)
    : data_type(data_type_), dimension_count(static_cast<std::uint32_t>(sizes_.size())) {
  const std::size_t kept = std::min(sizes_.size(), sizes.size());
  std::copy_n(sizes_.begin(), kept, sizes.begin());
  if (strides_.empty()) return;
  if (strides_.size() != sizes_.size()) {
    throw ValidationError("BufferTensorDesc has " + std::to_string(strides_.size()) +
                          " strides for " + std::to_string(sizes_.size()) + " dimensions");
  }
  std::copy_n(strides_.begin(), kept, strides.emplace().begin());
}

ElementWiseClipOperatorDesc::operator OperatorDesc() const {
  OperatorDesc desc = unary(OperatorType::element_wise_clip, input_tensor, output_tensor);
  desc.scale_bias = scale_bias;
  desc.numbers = {min, max};
  return desc;
}

ElementWiseClip1OperatorDesc::operator OperatorDesc() const {
  OperatorDesc desc = unary(OperatorType::element_wise_clip1, input_tensor, output_tensor);
  desc.scale_bias = scale_bias;
  desc.min_max_data_type = min_max_data_type;
  desc.scalars = {min, max};
  return desc;
}

BatchNormalizationOperatorDesc::operator OperatorDesc() const {
  OperatorDesc desc;
  desc.type = OperatorType::batch_normalization;
  desc.tensors = {input_tensor, mean_tensor, variance_tensor,
                  scale_tensor, bias_tensor, output_tensor};
  desc.spatial = spatial;
  desc.numbers = {epsilon, 0};
  if (fused_activation.has_value()) {
    desc.fused_activation = std::make_shared<const OperatorDesc>(*fused_activation);
  }
  return desc;
}

ActivationLogSoftmaxOperatorDesc::operator OperatorDesc() const {
  return unary(OperatorType::activation_log_softmax, input_tensor, output_tensor);
}

ActivationLogSoftmax1OperatorDesc::operator OperatorDesc() const {
  OperatorDesc desc = unary(OperatorType::activation_log_softmax1, input_tensor, output_tensor);
  desc.axes = axes;
  return desc;
}

}  // namespace dmlops
