// Formulas on integers in double: scalar, or by table lookup for bytes.
#pragma once

#include <limits>

#include "kernels/blocks/transform.hpp"
#include "kernels/simd/shuffle.hpp"

namespace dmlops::DMLOPS_TARGET {

// Truncates and saturates; NaN (from infinity * 0) gives 0.
template <class T>
DMLOPS_INLINE T truncate(double value) {
  // The limits as doubles: 2^63 and 2^64 for 64-bit types, whose maximum is not exact in double.
  using Limits = std::numeric_limits<T>;
  constexpr T max = Limits::max(), min = Limits::min();
  constexpr double above = 2.0 * static_cast<double>(std::uint64_t{1} << (Limits::digits - 1));
  if constexpr (sizeof(T) < 8) {
    value = value == value ? value : 0.0;
    value = static_cast<double>(max) < value ? static_cast<double>(max) : value;
    value = value < static_cast<double>(min) ? static_cast<double>(min) : value;
    return static_cast<T>(static_cast<std::conditional_t<(sizeof(T) < 4), std::int32_t, T>>(value));
  } else {
    if (value >= above) return max;
    if (value <= static_cast<double>(min)) return min;
    return value == value ? static_cast<T>(value) : T(0);
  }
}

DMLOPS_INLINE bool use_byte_table(const Rows& rows) {
  return rows.length * all_rows(rows) >= 1024;  // elements
}

struct ByteTable {
  std::uint8_t results[256];
};

template <class T, class Formula>
ByteTable byte_table(const Formula& formula) {
  ByteTable table;
  for (int i = 0; i < 256; ++i) table.results[i] = static_cast<std::uint8_t>(i);
  Block block;
  block.length = 256;
  block.output.data = reinterpret_cast<char*>(table.results);
  block.inputs[0].data = block.output.data;
  transform_elements<T, Formula>(block, &formula);
  return table;
}

// Copies the table, so that stores cannot alias it.
inline void map_bytes(const Rows& rows, ByteTable table) {
#if defined(DMLOPS_HAS_LOOKUP)
  const ByteLookup lookup(table.results);
  map<std::uint8_t, u8x, 1>(rows, [lookup](u8x x) DMLOPS_LAMBDA_INLINE { return lookup(x); });
#else
  map_elements<std::uint8_t>(
      rows, [&table](std::uint8_t x) DMLOPS_LAMBDA_INLINE { return table.results[x]; });
#endif
}

// Applies a formula to every element.
template <class T, class Formula>
void map_integers(const Rows& rows, const Formula& formula) {
  if constexpr (sizeof(T) == 1) {
    if (use_byte_table(rows)) return map_bytes(rows, byte_table<T>(formula));
  }
  map_elements<T>(rows, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
