// Elements as bits.
#pragma once

#include "kernels/simd/vec.hpp"

namespace dmlops::DMLOPS_TARGET {

template <std::size_t kSize>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = std::uint64_t;
};
// The unsigned integer with the same number of bytes as T.
template <class T>
using Bits = typename UnsignedOf<sizeof(T)>::type;

template <class U>
DMLOPS_INLINE_SMALL U load_element(const char* source) {
  U value;
  std::memcpy(&value, source, sizeof value);
  return value;
}
template <class U>
DMLOPS_INLINE_SMALL void store_element(char* target, U value) {
  std::memcpy(target, &value, sizeof value);
}

}  // namespace dmlops::DMLOPS_TARGET
