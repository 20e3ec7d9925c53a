// Conversions that the descriptors share: numbers to DML_SCALAR_UNION, sizes to tensors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/float16.hpp"
#include "core/text.hpp"
#include "descriptors/conversions.hpp"
#include "descriptors/table.hpp"
#include "operators/check.hpp"

namespace dmlops {
namespace {

template <class T>
ScalarUnion union_of(T value) {
  ScalarUnion result;
  std::memcpy(&result.bits, &value, sizeof value);
  return result;
}

std::string text_of(const Scalar& value) {
  if (value.type == DataType::int64) return std::to_string(value.integer);
  if (value.type == DataType::uint64) return std::to_string(value.natural);
  return number_text(value.floating);
}

[[noreturn]] void refuse(TensorDataType type, const Scalar& value, const std::string& why) {
  throw ValidationError("scalar_union: " + text_of(value) + " does not fit " + upper_name(type) +
                        why);
}

double number_of(const Scalar& value) {
  if (value.type == DataType::int64) return static_cast<double>(value.integer);
  return value.type == DataType::uint64 ? static_cast<double>(value.natural) : value.floating;
}

template <class T>
ScalarUnion whole(TensorDataType type, const Scalar& value) {
  using Limits = std::numeric_limits<T>;
  constexpr auto max = static_cast<std::uint64_t>(Limits::max());
  bool fits = false;
  T result = 0;
  if (value.type == DataType::float64) {
    const double number =
        value.floating;  // 2^digits is exact in double, unlike the largest integer
    fits = number == std::trunc(number) && number >= static_cast<double>(Limits::min()) &&
           number < std::ldexp(1.0, Limits::digits);
    if (fits) result = static_cast<T>(number);
  } else if (value.type == DataType::int64 && value.integer < 0) {
    fits = Limits::is_signed && value.integer >= static_cast<std::int64_t>(Limits::min());
    if (fits) result = static_cast<T>(value.integer);
  } else {
    fits = value.natural <= max;  // same bits as a non-negative `integer`
    result = static_cast<T>(value.natural);
  }
  if (fits) return union_of(result);
  refuse(type, value,
         " (" + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max()) + ")");
}

}  // namespace

ScalarUnion scalar_union(TensorDataType data_type, const Scalar& value) {
  if (value.type == DataType::unknown) throw ValidationError("scalar_union: there is no number");
  switch (data_type) {
    case DataType::int8:
      return whole<std::int8_t>(data_type, value);
    case DataType::int16:
      return whole<std::int16_t>(data_type, value);
    case DataType::int32:
      return whole<std::int32_t>(data_type, value);
    case DataType::int64:
      return whole<std::int64_t>(data_type, value);
    case DataType::uint8:
      return whole<std::uint8_t>(data_type, value);
    case DataType::uint16:
      return whole<std::uint16_t>(data_type, value);
    case DataType::uint32:
      return whole<std::uint32_t>(data_type, value);
    case DataType::uint64:
      return whole<std::uint64_t>(data_type, value);
    case DataType::float32: {
      const double number = number_of(value);
      const auto rounded = static_cast<float>(number);
      if (std::isinf(rounded) && !std::isinf(number)) refuse(data_type, value, "");
      return union_of(rounded);
    }
    case DataType::float16:
      return union_of(to_float16(number_of(value)));
    case DataType::float64:
      return union_of(number_of(value));
    default:
      throw ValidationError("scalar_union: " + upper_name(data_type) +
                            " is not a data type of DML_SCALAR_UNION");
  }
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
