// Conversions that the descriptors share: numbers to DML_SCALAR_UNION, sizes to tensors.
#include <algorithm>
#include <limits>
#include <string>

#include "core/float16.hpp"
#include "core/float_environment.hpp"
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

// Converts a number to a data type, for the argument or field `name` of `owner`.
class Conversion {
 public:
  Conversion(const char* owner, const char* name, TensorDataType type, const Scalar& value)
      : owner_(owner), name_(name), type_(type), value_(value) {}

  ScalarUnion result() const {
    const FloatEnvironment environment;
    if (value_.type == DataType::unknown) refuse(concat(name_, " is missing; it must be a number"));
    if (type_ == DataType::float64) return {to_bits(value_of<double>(value_))};
    if (!kNumbers64.has(type_)) {
      refuse(concat(upper_name(type_), " is not a data type of DML_SCALAR_UNION"));
    }
    if (type_ == DataType::float32) return rounded(value_of<float>(value_));
    if (type_ == DataType::float16) return rounded(to_float16(value_of<double>(value_)));
    return visit_integer(type_, [&](auto integer) { return whole<decltype(integer)>(); });
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw ValidationError(concat(owner_, ": ", what));
  }
  [[noreturn]] void refuse_value(const std::string& range) const {
    refuse(
        concat(name_, " is ", text_of(value_), ", which does not fit ", upper_name(type_), range));
  }

  template <class T>
  ScalarUnion rounded(T number) const {
    if (is_overflow(static_cast<float>(number), value_of<double>(value_))) refuse_value("");
    return {to_bits(number)};
  }

  template <class T>
  ScalarUnion whole() const {
    using Limits = std::numeric_limits<T>;
    if (side<T>(value_) == 0 && is_given(value_) && is_whole(value_))
      return {to_bits(value_of<T>(value_))};
    refuse_value(concat(" (", Limits::min(), " to ", Limits::max(), ")"));
  }

  const char* owner_;
  const char* name_;
  TensorDataType type_;
  const Scalar& value_;
};

}  // namespace

ScalarUnion scalar_union(TensorDataType data_type, const Scalar& value) {
  return Conversion("scalar_union", "value", data_type, value).result();
}

BufferTensorDesc::BufferTensorDesc(TensorDataType data_type_,
                                   const std::vector<std::uint32_t>& sizes_,
                                   const std::vector<std::uint32_t>& strides_)
    : data_type(data_type_), dimension_count(static_cast<std::uint32_t>(sizes_.size())) {
  const std::size_t kept = std::min(sizes_.size(), sizes.size());
  std::copy_n(sizes_.begin(), kept, sizes.begin());
  if (strides_.empty()) return;
  if (strides_.size() != sizes_.size()) {
    throw ValidationError(concat("BufferTensorDesc has ", counted(strides_.size(), "stride"),
                                 " for ", counted(sizes_.size(), "dimension")));
  }
  std::copy_n(strides_.begin(), kept, strides.emplace().begin());
}

void set_scalars(OperatorDesc& desc, const Scalar& min, const Scalar& max) {
  const TensorDataType type = desc.min_max_data_type;
  if (element_size(type) == 0) return;  // validation refuses the data type
  const char* const owner = known_operator(desc.type).name;
  desc.scalars = {Conversion(owner, "min", type, min).result(),
                  Conversion(owner, "max", type, max).result()};
}

void set_activation(OperatorDesc& desc, const std::optional<OperatorDesc>& activation) {
  if (!activation.has_value()) return;
  desc.fused_activation = std::make_shared<const OperatorDesc>(*activation);
}

}  // namespace dmlops
