// clip of float16 as 16-bit integers, without conversion to float32.
//
// Ordered as unsigned integers, the bit patterns are +0, positive numbers in ascending order,
// infinity and NaN; then, from 0x8000, -0, negative numbers in descending order, infinity and NaN.
// The minimum or maximum of integers relative to a suitable origin replaces all numbers beyond a
// bound.
#pragma once

#include "kernels/blocks/transform.hpp"

namespace dmlops::DMLOPS_TARGET {

using i16x = Vec<std::int16_t>;
using u16x = Vec<std::uint16_t>;

constexpr std::uint16_t kHalfSign = 0x8000, kHalfInfinity = 0x7c00, kHalfQuiet = 0x0200;

// Replaces numbers from `origin` up to the bound by the bound.
struct From {
  u16x origin, bound;
  From(std::uint16_t origin_, std::uint16_t bound_)
      : origin(splat<u16x>(origin_)), bound(splat<u16x>(bound_) - origin) {}
  DMLOPS_INLINE u16x operator()(u16x x) const { return max(x - origin, bound) + origin; }
};

// Returns the bound if less than x, else x, so that zeros keep their sign. The primary template is
// for positive bounds.
template <bool kNegative>
struct HalfMin {
  i16x bound;
  explicit HalfMin(std::uint16_t bits) : bound(splat<i16x>(static_cast<std::int16_t>(bits))) {}
  DMLOPS_INLINE u16x operator()(u16x x) const {
    return bit_cast<u16x>(min(bit_cast<i16x>(x), bound));
  }
};
template <>
struct HalfMin<true> : From {  // for a bound of -0, +0 comes last
  explicit HalfMin(std::uint16_t bits) : From(bits == kHalfSign ? 1 : 0, bits) {}
};

// Returns the bound if greater than x, else x. The primary template is for negative bounds.
template <bool kPositive>
struct HalfMax {
  u16x bound;
  explicit HalfMax(std::uint16_t bits) : bound(splat<u16x>(bits)) {}
  DMLOPS_INLINE u16x operator()(u16x x) const { return min(x, bound); }
};
template <>
struct HalfMax<true> : From {  // for a bound of +0, -0 comes last
  explicit HalfMax(std::uint16_t bits) : From(bits == 0 ? kHalfSign + 1 : kHalfSign, bits) {}
};

template <bool kNegativeMax, bool kPositiveMin>
void clip_float16(const Rows& rows, std::uint16_t min, std::uint16_t max) {
  const HalfMin<kNegativeMax> clip_above(max);
  const HalfMax<kPositiveMin> clip_below(min);
  map<float16, u16x, 4>(rows, [=](u16x x) DMLOPS_LAMBDA_INLINE {
    keep_in_register(x);
    const i16x abs_bits = bit_cast<i16x>(x & static_cast<std::uint16_t>(~kHalfSign));
    const i16x is_nan = abs_bits > static_cast<std::int16_t>(kHalfInfinity);
    return is_nan ? x | kHalfQuiet : clip_below(clip_above(x));
  });
}

// The bounds must not be NaN.
inline void clip_float16(const Rows& rows, std::uint16_t min, std::uint16_t max) {
  const bool negative_max = max >= kHalfSign, positive_min = min < kHalfSign;
  if (negative_max) {
    return positive_min ? clip_float16<true, true>(rows, min, max)
                        : clip_float16<true, false>(rows, min, max);
  }
  return positive_min ? clip_float16<false, true>(rows, min, max)
                      : clip_float16<false, false>(rows, min, max);
}

}  // namespace dmlops::DMLOPS_TARGET
