// Elements as bits, and offsets of elements.
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

// Offsets at a common distance.
struct SteppedOffsets {
  std::int64_t step;

  DMLOPS_INLINE std::int64_t operator[](std::int64_t i) const { return i * step; }
};

// Calls visit(U()) for the unsigned integer U of 1, 2, 4 or 8 bytes.
template <class Visit>
DMLOPS_INLINE void with_element_size(std::int64_t size, const Visit& visit) {
  if (size == 1) return visit(std::uint8_t());
  if (size == 2) return visit(std::uint16_t());
  if (size == 4) return visit(std::uint32_t());
  visit(std::uint64_t());
}

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
