// Data types: their names and sizes, and float16 from double and back.
#include "dmlops/tensor.hpp"

#include <cmath>

#include "float16.hpp"

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
  const auto sign = static_cast<unsigned int>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>(sign | 0x7e00)};
  if (magnitude >= 65520.0) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  // In units of the last place, which below 2^-14 stays 2^-24; then rounded to a whole number of
  // them.
  const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  const double exact = std::ldexp(magnitude, 10 - exponent);
  auto units = static_cast<unsigned int>(exact);
  const double rest = exact - units;
  if (rest > 0.5 || (rest == 0.5 && units % 2 == 1)) ++units;
  // A normal number's leading one (1024 units) adds 1 to the exponent field, and so does a carry.
  return {static_cast<std::uint16_t>(sign |
                                     ((static_cast<unsigned int>(exponent + 14) << 10) + units))};
}

double to_double(float16 value) {
  const int exponent = value.bits >> 10 & 31, fraction = value.bits & 1023;
  double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31) magnitude = fraction == 0 ? HUGE_VAL : std::nan("");
  return (value.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace dmlops
