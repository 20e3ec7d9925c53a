// Elements as bits, and the cache line.
#pragma once

#include "kernels/simd/vec.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kLineBytes = 64;

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

// Prefetches the cache lines of a range, which may be inaccessible.
template <int kLocality = 3>
DMLOPS_INLINE_SMALL void prefetch_lines(const char* begin, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(begin + i, 0, kLocality);
}

}  // namespace dmlops::DMLOPS_TARGET
