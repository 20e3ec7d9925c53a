// clip: max(Min, min(x, Max)), and the same after x * scale + bias.
#pragma once

#include "kernels/tile.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, float16>;

// The type that the formula computes in: float32 lanes for both float types.
template <class T>
using ComputeVec = Vec<std::conditional_t<kIsFloat<T>, float, T>>;

template <class T>
DMLOPS_INLINE T bound_from_bits(std::uint64_t bits) {
  return bit_cast<T>(static_cast<Bits<T>>(bits));
}

// A bound as a lane of ComputeVec<T>.
template <class T>
DMLOPS_INLINE ComputeVec<T> splat_bound(std::uint64_t bits) {
  const T bound = bound_from_bits<T>(bits);
  if constexpr (std::is_same_v<T, float16>) {
    return widen(splat<u16half>(bound.bits));
  } else {
    return splat<ComputeVec<T>>(bound);
  }
}

template <class T>
void clip(const Rows& rows, const void* parameters) {
  using V = ComputeVec<T>;
  const auto& p = *static_cast<const ClipParameters*>(parameters);
  const V min = splat_bound<T>(p.min_bits), max = splat_bound<T>(p.max_bits);
  map_rows<T, V, 4>(
      rows, [min, max](V x) DMLOPS_LAMBDA_INLINE { return at_least(at_most(x, max), min); });
}

template <class T>
void clip_scaled_float(const Rows& rows, const ClipParameters& p) {
  const f32x min = splat_bound<T>(p.min_bits), max = splat_bound<T>(p.max_bits);
  const f32x scale = splat<f32x>(p.scale), bias = splat<f32x>(p.bias);
  map_rows<T, f32x, 2>(rows, [=](f32x x) DMLOPS_LAMBDA_INLINE {
    return canonical_nan(at_least(at_most(fma(x, scale, bias), max), min));
  });
}

// Toward zero, saturated; NaN (from infinity * 0) gives 0.
template <class T>
DMLOPS_INLINE T truncate(double value) {
  // The limits as doubles: 2^63 and 2^64 themselves, where the largest value has no double of its
  // own.
  constexpr bool is_signed = T(-1) < T(0);
  constexpr int bits = static_cast<int>(8 * sizeof(T)) - (is_signed ? 1 : 0);
  constexpr T max = static_cast<T>(static_cast<Bits<T>>(~Bits<T>(0)) >> (is_signed ? 1 : 0));
  constexpr T min = static_cast<T>(is_signed ? -max - 1 : 0);
  constexpr double above = 2.0 * static_cast<double>(std::uint64_t(1) << (bits - 1));
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

// Integers are scaled in double, one at a time.
template <class T>
struct ScaledInteger {
  T min, max;
  double scale, bias;

  explicit ScaledInteger(const ClipParameters& p)
      : min(bound_from_bits<T>(p.min_bits)),
        max(bound_from_bits<T>(p.max_bits)),
        scale(static_cast<double>(p.scale)),
        bias(static_cast<double>(p.bias)) {}

  DMLOPS_INLINE T operator()(T x) const {
    const T scaled = truncate<T>(__builtin_fma(static_cast<double>(x), scale, bias));
    const T limited = scaled < max ? scaled : max;
    return limited > min ? limited : min;
  }
};

template <class T, class Formula>
DMLOPS_INLINE void map_elements(const Rows& rows, const Formula& formula) {
  for_each_tile<T>(rows, [&formula](const Tile<T>& tile) DMLOPS_LAMBDA_INLINE {
    for (std::int64_t r = 0; r < tile.count; ++r) {
      const char* input = tile.input + r * tile.input_pitch;
      char* output = tile.output + r * tile.output_pitch;
      for (std::int64_t i = 0; i < tile.length; ++i) {
        const auto offset = i * static_cast<std::int64_t>(sizeof(T));
        store_element(output + offset, formula(load_element<T>(input + offset)));
      }
    }
  });
}

template <class T>
void clip_scaled_integer(const Rows& rows, const ClipParameters& p) {
  const ScaledInteger<T> formula(p);
  constexpr std::int64_t kWorthATable = 1024;
  if constexpr (sizeof(T) == 1) {
    if (rows.length * rows.count >= kWorthATable) {
      T results[256];
      for (int i = 0; i < 256; ++i) results[i] = formula(bit_cast<T>(static_cast<Bits<T>>(i)));
      return map_elements<T>(rows, [&results](T x) DMLOPS_LAMBDA_INLINE {
        return results[bit_cast<Bits<T>>(x)];
      });
    }
  }
  map_elements<T>(rows, formula);
}

template <class T>
void clip_scaled(const Rows& rows, const void* parameters) {
  const auto& p = *static_cast<const ClipParameters*>(parameters);
  if constexpr (kIsFloat<T>) {
    clip_scaled_float<T>(rows, p);
  } else {
    clip_scaled_integer<T>(rows, p);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
