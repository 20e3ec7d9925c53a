// Data types, float16, and the strides of views.
#include "dmlops/tensor.hpp"

#include <cmath>
#include <limits>

#include "core/float16.hpp"
#include "core/text.hpp"

namespace dmlops {
namespace {

struct TypeInfo {
  const char* name;
  std::size_t size;
};

constexpr TypeInfo kTypes[kDataTypeCount] = {
    {"unknown", 0}, {"float32", 4}, {"float16", 2}, {"uint32", 4}, {"uint16", 2},
    {"uint8", 1},   {"int32", 4},   {"int16", 2},   {"int8", 1},   {"float64", 8},
    {"uint64", 8},  {"int64", 8},   {"uint4", 0},   {"int4", 0},
};

const TypeInfo& info(DataType type) {
  const auto index = static_cast<std::size_t>(type);
  return kTypes[index < kDataTypeCount ? index : 0];
}

}  // namespace

const char* name(DataType type) { return info(type).name; }
std::size_t element_size(DataType type) { return info(type).size; }
bool is_floating_point(DataType type) {
  return type == DataType::float32 || type == DataType::float16;
}

float16 to_float16(double value) {
  const auto bits = [](unsigned int from) {
    return float16::from_bits(static_cast<std::uint16_t>(from));
  };
  const auto sign = static_cast<unsigned int>(std::signbit(value) ? 0x8000 : 0);
  const double abs_value = std::fabs(value);
  if (std::isnan(value)) return bits(sign | 0x7e00);
  if (abs_value >= 65520.0) return bits(sign | 0x7c00);
  // The value in units in the last place (2^-24 below 2^-14), rounded to an integer.
  const int exponent = abs_value < 0x1p-14 ? -14 : std::ilogb(abs_value);
  const double exact = std::ldexp(abs_value, 10 - exponent);
  auto units = static_cast<unsigned int>(exact);
  const double fraction = exact - units;
  if (fraction > 0.5 || (fraction == 0.5 && units % 2 == 1)) ++units;
  // A normal number's leading one (1024 units) adds 1 to the exponent field, and so does a carry.
  return bits(sign | ((static_cast<unsigned int>(exponent + 14) << 10) + units));
}

double to_double(float16 value) {
  const int exponent = value.bits >> 10 & 31, fraction = value.bits & 1023;
  double abs_value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31) abs_value = fraction == 0 ? HUGE_VAL : std::nan("");
  return (value.bits & 0x8000) != 0 ? -abs_value : abs_value;
}

float16::float16(float value) : float16(to_float16(static_cast<double>(value))) {}
float16::operator float() const { return static_cast<float>(to_double(*this)); }

namespace detail {
namespace {

std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? std::numeric_limits<std::int64_t>::max()
                            : std::numeric_limits<std::int64_t>::min();
}

}  // namespace

void refuse_integers(std::size_t count) {
  throw Error(concat("IntegerList: ", count, " integers; a tensor has at most 8 dimensions"));
}

Dimensions packed_strides(const IntegerList& sizes, std::size_t element) {
  Dimensions strides = {};
  auto stride = static_cast<std::int64_t>(element);
  for (auto d = static_cast<std::size_t>(sizes.count()); d-- > 0;) {
    strides[d] = stride;
    stride = saturated_product(stride, sizes.values()[d]);
  }
  return strides;
}

Dimensions byte_strides(const IntegerList& sizes, const IntegerList& strides, std::size_t unit) {
  if (strides.count() != sizes.count()) {
    throw Error(concat("TensorView: ", counted(strides.count(), "stride"), " for ",
                       counted(sizes.count(), "size"), "; give one stride for each size"));
  }
  Dimensions result = strides.values();
  for (std::int64_t& stride : result) {
    stride = saturated_product(stride, static_cast<std::int64_t>(unit));
  }
  return result;
}

}  // namespace detail
}  // namespace dmlops
