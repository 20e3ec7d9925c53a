// Conversions that the descriptors share: numbers to DML_SCALAR_UNION, sizes to tensors.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/float16.hpp"
#include "core/text.hpp"
#include "descriptors/conversions.hpp"
#include "descriptors/table.hpp"
#include "operators/check.hpp"
#include "operators/scalars.hpp"

namespace dmlops {
namespace {

std::string text_of(const Scalar& value) {
  if (value.type == DataType::int64) return std::to_string(value.integer);
  if (value.type == DataType::uint64) return std::to_string(value.natural);
  return number_text(value.floating);
}

[[noreturn]] void refuse(TensorDataType type, const Scalar& value, const std::string& why) {
  throw ValidationError("scalar_union: " + text_of(value) + " does not fit " + upper_name(type) +
                        why);
}

template <class T>
ScalarUnion whole(TensorDataType type, const Scalar& value) {
  using Limits = std::numeric_limits<T>;
  if (side<T>(value) == 0 && is_given(value) && is_whole(value))
    return {to_bits(value_of<T>(value))};
  refuse(type, value,
         " (" + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max()) + ")");
}

}  // namespace

ScalarUnion scalar_union(TensorDataType data_type, const Scalar& value) {
  if (value.type == DataType::unknown) throw ValidationError("scalar_union: there is no number");
  if (data_type == DataType::float64) return {to_bits(value_of<double>(value))};
  if (!kNumbers64.has(data_type)) {
    throw ValidationError("scalar_union: " + upper_name(data_type) +
                          " is not a data type of DML_SCALAR_UNION");
  }
  if (data_type == DataType::float32) {
    const double number = value_of<double>(value);
    const auto rounded = static_cast<float>(number);
    if (std::isinf(rounded) && !std::isinf(number)) refuse(data_type, value, "");
    return {to_bits(rounded)};
  }
  if (data_type == DataType::float16) return {to_bits(to_float16(value_of<double>(value)))};
  return visit_integer(data_type,
                       [&](auto integer) { return whole<decltype(integer)>(data_type, value); });
}

BufferTensorDesc::BufferTensorDesc(TensorDataType data_type_,
                                   const std::vector<std::uint32_t>& sizes_,
                                   const std::vector<std::uint32_t>& strides_)
    : data_type(data_type_), dimension_count(static_cast<std::uint32_t>(sizes_.size())) {
  const std::size_t kept = std::min(sizes_.size(), sizes.size());
  std::copy_n(sizes_.begin(), kept, sizes.begin());
  if (strides_.empty()) return;
  if (strides_.size() != sizes_.size()) {
    throw ValidationError("BufferTensorDesc has " + counted(strides_.size(), "stride") + " for " +
                          counted(sizes_.size(), "dimension"));
  }
  std::copy_n(strides_.begin(), kept, strides.emplace().begin());
}

void set_scalars(OperatorDesc& desc, const Scalar& min, const Scalar& max) {
  const TensorDataType type = desc.min_max_data_type;
  if (element_size(type) == 0) return;  // validation refuses the data type
  desc.scalars = {scalar_union(type, min), scalar_union(type, max)};
}

void set_activation(OperatorDesc& desc, const std::optional<OperatorDesc>& activation) {
  if (!activation.has_value()) return;
  desc.fused_activation = std::make_shared<const OperatorDesc>(*activation);
}

}  // namespace dmlops
