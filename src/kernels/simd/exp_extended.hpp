// Exponentials in extended precision: e^x = 2^(k/8) e^r with |r| < 0.0474, as unevaluated sums and
// products; and e^x - 1 and tanh, computed from these and rounded once, within 0.52 ulp.
#pragma once

#include "kernels/simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

// 2^(k/8) is approximated by a float32 near it whose logarithm differs by kEighthShift[k mod 8], to
// 2^-37 (Gal's accurate tables). Its bits are those of 1, plus k << 20, plus kEighthBits[k mod 8].
// The value for k = 1 is small enough that |r 2^(k/8)| is at most half of 2^(k/8) - 1, so that the
// rounding error of their sum is exact by fast two-sum.
inline constexpr std::int32_t kEighthBits[8] = {0,       -326065, -510172, -656292,
                                                -718934, -694344, -571339, -344007};
inline constexpr float kEighthShift[8] = {0.0f,           -0x1.079dap-8f, -0x1.57ap-16f,
                                          -0x1.e968p-15f, 0x1.eb48p-15f,  0x1.702p-17f,
                                          0x1.ea1p-15f,   -0x1.358p-17f};
constexpr float kEighthUnit = 0x1.8p23f + 8 * 127;  // the low bits of kEighthUnit + k are the index

// Unsigned, since the index of a NaN is arbitrary and may overflow.
DMLOPS_INLINE f32x power_of_eighth(i32x index) {
  return bit_cast<f32x>((bit_cast<u32x>(index) << 20) + bit_cast<u32x>(lookup(kEighthBits, index)));
}

// ((e^2h - 1) / 2 - h - h^2) / h^3. The error is 1.4e-12 of e^2h.
DMLOPS_INLINE f32x exp_polynomial(f32x h) {
  return polynomial(h, 0x1.555552p-1f, 0x1.555a92p-2f, 0x1.11afd8p-3f);
}

// The terms of (e^y - 1) r / y beyond r, for y = 2 h: the square term, r h, and a sum of small
// terms whose rounding errors are negligible. -k low is the error of r. The error is 1.4e-12 of
// e^y.
struct ExpTerms {
  f32x square, tail;
};

DMLOPS_INLINE ExpTerms exp_terms(f32x r, f32x h, f32x k, f32x low) {
  const f32x square = r * h, lost = fma(r, h, -square);
  return {square, fma(square, h * exp_polynomial(h), fma(k, -low, lost))};
}

// Range reduction x = (k ln(2) / 8 + shift) / kFactor + r, with ln(2) excluding kLn2Low; r is
// exact.
struct EighthReduction {
  f32x k, r;
  i32x index;
};

template <int kFactor>
DMLOPS_INLINE EighthReduction reduce_range_to_eighth(f32x x) {
  const f32x shifted = fma(x, splat<f32x>(kFactor * 8 * kLog2E), splat<f32x>(kEighthUnit));
  const f32x k = shifted - kEighthUnit;
  const i32x index = bit_cast<i32x>(shifted);
  const f32x r = fma(lookup(kEighthShift, index), splat<f32x>(-1.0f / kFactor),
                     fma(k, splat<f32x>(-kLn2 / 8 / kFactor), x));
  return {k, r, index};
}

// e^x - 1 for x <= 0: power - 1 + power r, with the rounding errors of both operations, and the
// small terms.
DMLOPS_INLINE f32x expm1_nonpositive(f32x x) {
  const auto [k, r, index] = reduce_range_to_eighth<1>(max(x, splat<f32x>(-18.0f)));
  const auto [square, tail] = exp_terms(r, r * 0.5f, k, splat<f32x>(kLn2Low / 8));
  const f32x power = power_of_eighth(index);
  const f32x before = power - 1.0f, lost = power - (before + 1.0f);
  const f32x high = fma(power, r, before), low = fma(power, r, before - high);
  return high + (low + fma(power, square, fma(power, tail, lost)));
}

// 1 / s - 1 for s = (1 + e^-2|x|) / 2 = sum + low, with the sign of x; s = (1 + power) / 2 + power
// (m + m_low), and m is r + r^2, rounded.
DMLOPS_INLINE f32x tanh(f32x x) {
  const i32x sign = bit_cast<i32x>(x) & INT32_MIN;
  const f32x negative = max(minus_abs(x), splat<f32x>(-9.02f)), half = splat<f32x>(0.5f);
  const auto [k, r, index] = reduce_range_to_eighth<2>(negative);
  const f32x power = power_of_eighth(index);
  const f32x half_power = bit_cast<f32x>(bit_cast<u32x>(power) - (1u << 23));
  const f32x m = fma(r, r, r), cube = r * r * r;
  const f32x m_low =
      fma(cube, exp_polynomial(r), fma(k, splat<f32x>(-kLn2Low / 16), fma(r, r, r - m)));
  const f32x sum = fma(power, m, half_power + half);
  const f32x low = fma(power, m_low, fma(power, m, half_power + (half - sum)));
  const f32x inverse = 1.0f / sum;
  const f32x e = fma(-low, inverse, fma(-sum, inverse, splat<f32x>(1.0f)));
  const f32x result = fma(fma(e, e, e), inverse, inverse - 1.0f);
  return negative > -0x1p-12f ? x : bit_cast<f32x>(bit_cast<i32x>(result) | sign);
}

}  // namespace dmlops::DMLOPS_TARGET
