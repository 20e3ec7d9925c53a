// Swish, as a functor on float32 lanes.
#pragma once

#include "dmlops/activation.hpp"
#include "kernels/simd/math.hpp"
#include "kernels/simd/product.hpp"

namespace dmlops::DMLOPS_TARGET {

// x sigmoid(z) = x / (1 + e^-z) for z = factor x, and e^-z = 2^n (1 + delta). As 2^n + 1 is exact,
// the sum is rounded once; where it is not, for n from 24 on, 2^-n is part of delta. The quotient
// is scaled by another power of two where 2^n would be too large.
//
// The error is 0.5 ulp of the quotient and, in units of 2^-24 / (1 + delta), 0.52 of delta and 0.5
// of the sum, or 1 for delta > 0: 1.94 ulp. Adding 2^-n to delta may add 0.25 units. The largest
// error measured is 1.93 ulp.
class Swish {
 public:
  explicit Swish(const ActivationParameters& p)
      : Swish(Decomposed(-static_cast<double>(p.alpha) * 0x1.71547652b82fep0)) {}

  DMLOPS_INLINE f32x operator()(f32x x) const {
    // In the usual case the power is normal, no quotient is scaled, and 2^n + 1 is exact or 1.
    const f32x scaled = x * power_;
    const f32x shifted = fma(scaled, log2_.high, splat<f32x>(kPowerShift));
    const u32x from_first = bit_cast<u32x>(shifted) - kFirstUsual;
    if (__builtin_expect(any_bit(from_first, ~(kUsualCount - 1)), 0))
      return tiny_ ? swish<true>(scaled, x) : swish<false>(scaled, x);
    const f32x power = bit_cast<f32x>(bit_cast<u32x>(shifted) << 23);
    return x / fma(power, relative_rest(scaled, shifted), power + 1.0f);
  }

 private:
  static constexpr int kLargest = 126;  // the largest n in the sum
  // The usual n, from -104 to 23, in the bits of `shifted`: kUsualCount is a power of two, and
  // kPowerShift has the bits 0x4b40007f.
  static constexpr std::uint32_t kUsualCount = 128;
  static constexpr std::uint32_t kFirstUsual = 0x4b40007fu + 24 - kUsualCount;

  // kTiny: |factor| is so small that results are not 0 for n above 252, whose power is the product
  // of three then. At highest_, the last power is 0.
  explicit Swish(const Decomposed& log2)
      : tiny_(__builtin_fabs(log2.power) < 0x1p-90),
        power_(splat<f32x>(static_cast<float>(log2.power))),
        log2_(log2.fraction),
        low_(log2_.low * kLn2),
        lowest_(splat<f32x>(-60.0f) / log2_.high),
        highest_(splat<f32x>(kLargest + (tiny_ ? 2 * 127.0f : 127.0f)) / log2_.high) {}

  // Returns delta, for shifted = n + kPowerShift.
  DMLOPS_INLINE f32x relative_rest(f32x scaled, f32x shifted) const {
    const f32x fraction = fma(scaled, log2_.high, kPowerShift - shifted);
    return expm1_of_remainder(fma(fraction, splat<f32x>(kLn2), scaled * low_));
  }

  template <bool kTiny>
  DMLOPS_INLINE f32x swish(f32x unlimited, f32x x) const {
    const f32x scaled = min(max(unlimited, lowest_), highest_);
    const f32x shifted = fma(scaled, log2_.high, splat<f32x>(kPowerShift));
    const f32x limited = min(shifted, splat<f32x>(kPowerShift + kLargest));
    const f32x delta = relative_rest(scaled, shifted);
    const u32x bits = bit_cast<u32x>(limited) << 23;
    const f32x power = bit_cast<f32x>(bits), inverse = bit_cast<f32x>((254u << 23) - bits);
    const f32x sum = fma(power, power < 0x1p24f ? delta : delta + inverse, power + 1.0f);
    const i32x rest = bit_cast<i32x>(limited) - bit_cast<i32x>(shifted);
    if constexpr (kTiny) {
      const i32x half = rest >> 1;
      return x / sum * power_of_two(half) * power_of_two(rest - half);
    } else {
      return x / sum * power_of_two(rest);
    }
  }

  bool tiny_;
  f32x power_;
  SplitConstant log2_;  // -factor * log2(e) / power
  f32x low_, lowest_, highest_;
};

}  // namespace dmlops::DMLOPS_TARGET
