// Numbers as the bounds of operators: conversions to the types of elements.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "dmlops/operators.hpp"

namespace dmlops {

// True for a bound: neither no number nor NaN.
inline bool is_given(const Scalar& number) {
  return number.type != DataType::unknown &&
         !(number.type == DataType::float64 && std::isnan(number.floating));
}

// True for integers and infinities.
inline bool is_whole(const Scalar& number) {
  return number.type != DataType::float64 || number.floating == std::trunc(number.floating);
}

template <class T>
T value_of(const Scalar& number) {
  if (number.type == DataType::int64) return static_cast<T>(number.integer);
  if (number.type == DataType::uint64) return static_cast<T>(number.natural);
  return static_cast<T>(number.floating);
}

// Returns -1 for a number below all integers of type T, 1 for one above them, otherwise 0.
template <class T>
int side(const Scalar& number) {
  using Limits = std::numeric_limits<T>;
  if (number.type == DataType::float64) {
    // 2^63 or 2^64, which unlike the largest integer are exact in double.
    if (number.floating >= std::ldexp(1.0, Limits::digits)) return 1;
    return number.floating < static_cast<double>(Limits::min()) ? -1 : 0;
  }
  if (number.type == DataType::int64 && number.integer < 0)
    return number.integer < static_cast<std::int64_t>(Limits::min()) ? -1 : 0;
  // `natural` has the bits of a non-negative `integer`.
  return number.natural > static_cast<std::uint64_t>(Limits::max()) ? 1 : 0;
}

template <class T>
std::uint64_t to_bits(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// Returns visit(T()) for the type T of the elements of an integer data type.
template <class Visit>
auto visit_integer(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::int8:
      return visit(std::int8_t{});
    case DataType::int16:
      return visit(std::int16_t{});
    case DataType::int32:
      return visit(std::int32_t{});
    case DataType::int64:
      return visit(std::int64_t{});
    case DataType::uint8:
      return visit(std::uint8_t{});
    case DataType::uint16:
      return visit(std::uint16_t{});
    case DataType::uint32:
      return visit(std::uint32_t{});
    default:
      return visit(std::uint64_t{});
  }
}

}  // namespace dmlops
