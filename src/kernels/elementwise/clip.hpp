// clip: max(Min, min(x, Max)), optionally after x * scale + bias.
#pragma once

#include "kernels/elementwise/clip_float16.hpp"
#include "kernels/elementwise/clip_scaled_integer.hpp"

namespace dmlops::DMLOPS_TARGET {

// Broadcasts a bound to float32 lanes.
template <class T>
DMLOPS_INLINE f32x splat_bound(std::uint64_t bits) {
  const T bound = bound_from_bits<T>(bits);
  if constexpr (std::is_same_v<T, float16>) {
    // An optimization barrier: Clang would compare in float16 and convert each mask back and forth.
    f32x wide = widen(splat<u16half>(bound.bits));
    __asm__("" : "+m"(wide));
    return wide;
  } else {
    return splat<f32x>(bound);
  }
}

template <class T>
void clip(const Rows& rows, const void* parameters) {
  const auto& p = *static_cast<const ClipParameters*>(parameters);
  if constexpr (std::is_same_v<T, float16>) {
    clip_float16(rows, static_cast<std::uint16_t>(p.min_bits),
                 static_cast<std::uint16_t>(p.max_bits));
  } else {
    const auto lower = splat<Vec<T>>(bound_from_bits<T>(p.min_bits));
    const auto upper = splat<Vec<T>>(bound_from_bits<T>(p.max_bits));
    map<T, Vec<T>, 4>(
        rows, [lower, upper](Vec<T> x) DMLOPS_LAMBDA_INLINE { return max(min(x, upper), lower); });
  }
}

template <class T>
void clip_scaled(const Rows& rows, const void* parameters) {
  const auto& p = *static_cast<const ClipParameters*>(parameters);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, float16>) {
    const f32x lower = splat_bound<T>(p.min_bits), upper = splat_bound<T>(p.max_bits);
    const f32x scale = splat<f32x>(p.scale), bias = splat<f32x>(p.bias);
    map<T, f32x, 2>(rows, [=](f32x x) DMLOPS_LAMBDA_INLINE {
      return canonical_nan(max(min(fma(x, scale, bias), upper), lower));
    });
  } else {
    clip_scaled_integer<T>(rows, p);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
