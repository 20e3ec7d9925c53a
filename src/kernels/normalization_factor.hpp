// The factor of batch normalization: scale / sqrt(variance + epsilon).
//
// A root and a quotient take a processor as long as forty multiplications. Where all numbers are of
// usual size, an estimate y of 1 / sqrt(sum) from integer arithmetic is corrected instead, by the
// series (1 - h)^-1/2 = 1 + h / 2 + 3 / 8 h^2 + ... for h = 1 - sum y^2.
#pragma once

#include "simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

// 1 / sqrt(x), times a constant and roughly: half of a float's bits are half of its logarithm.
DMLOPS_INLINE f32x inverse_root_estimate(f32x x) {
  return bit_cast<f32x>(0x5f0b43c0u - (bit_cast<u32x>(x) >> 1));
}

// The factor that elements of type T are multiplied by.
//
// In float32 it is a sum of two numbers: a single one would add its rounding to those of a
// difference and a sum, and three together can pass 2 ulp next to a power of two. The second is
// small, has the same sign, and is 0 only with the first, so that their products with an infinity
// are the same infinity. (The least subnormal number alone has no such parts: times an infinity it
// is NaN.) In float16, which is 8,192 times as coarse, it is a single number.
template <class T>
struct NormalizationFactor {
  static constexpr int kParts = std::is_same_v<T, float> ? 2 : 1;
  f32x parts[kParts];

  DMLOPS_INLINE f32x times_plus(f32x x, f32x addend) const {
    for (int k = kParts - 1; k >= 0; --k) addend = fma(x, parts[k], addend);
    return addend;
  }
};

// Within 0.01 ulp of the first part, or 2 ulp where there is but one.
template <class T>
DMLOPS_INLINE NormalizationFactor<T> usual_factor(f32x scale, f32x variance, f32x epsilon,
                                                  f32x sum) {
  // One step of Newton's, with constants that leave it below the root.
  const f32x z = inverse_root_estimate(sum);
  const f32x near = z * fma(-(sum * z), z, splat<f32x>(0x1.e3cap0f));
  // h is between 0.0001 and 0.0044.
  if constexpr (NormalizationFactor<T>::kParts == 1) {
    const f32x h = fma(-(sum * near), near, splat<f32x>(1.0f));
    return {{scale * fma(near * h, polynomial(h, 0.5f, 0.375f), near)}};
  } else {
    const f32x larger = at_least(variance, epsilon), smaller = at_most(variance, epsilon);
    const f32x error = smaller - (sum - larger);
    // Of 12 bits, y has an exact square.
    const f32x y = bit_cast<f32x>(bit_cast<u32x>(near) & ~0xfffu), square = y * y;
    const f32x h = fma(-error, square, fma(-sum, square, splat<f32x>(1.0f)));
    const f32x high = scale * y;
    const f32x rest = scale * (y * (h * polynomial(h, 0.5f, 0.375f, 0.3125f)));
    return {{high, fma(scale, y, -high) + rest}};
  }
}

// Powers of two that bring a positive number to between 2^-53 and 2^64, and back; even ones.
struct UsualSize {
  f32x there, back, root_back;

  DMLOPS_INLINE explicit UsualSize(f32x size) {
    const auto choose = [size](float small, float large) DMLOPS_LAMBDA_INLINE {
      const f32x rest = size < 0x1p32f ? splat<f32x>(1.0f) : splat<f32x>(large);
      return size < 0x1p-32f ? splat<f32x>(small) : rest;
    };
    there = choose(0x1p96f, 0x1p-64f);
    back = choose(0x1p-96f, 0x1p64f);
    root_back = choose(0x1p48f, 0x1p-32f);
  }
};

// The next float32 towards zero; `x` is not 0.
DMLOPS_INLINE f32x towards_zero(f32x x) { return bit_cast<f32x>(bit_cast<u32x>(x) - 1u); }

// Any numbers. Beyond float32's normal numbers, and where the quotient is 0, infinite or NaN by its
// operands, that is the factor.
template <class T>
DMLOPS_NO_INLINE NormalizationFactor<T> any_factor(f32x scale, f32x variance, f32x epsilon,
                                                   f32x sum) {
  const f32x size = abs(scale);
  const UsualSize of_sum(sum), of_scale(size);
  NormalizationFactor<T> factor = usual_factor<T>(scale * of_scale.there, variance * of_sum.there,
                                                  epsilon * of_sum.there, sum * of_sum.there);
  const f32x back = of_scale.back * of_sum.root_back;
  if constexpr (NormalizationFactor<T>::kParts == 1) {
    factor.parts[0] *= back;
  } else {
    const f32x nearest = (factor.parts[0] + factor.parts[1]) * back, below = towards_zero(nearest);
    const i32x coarse = abs(nearest) < 0x1p-120f;  // the second part would lose bits
    const i32x empty = nearest == 0.0f;
    factor.parts[0] = coarse ? (empty ? nearest : below) : factor.parts[0] * back;
    factor.parts[1] = coarse ? (empty ? nearest : nearest - below) : factor.parts[1] * back;
  }
  const i32x finite = (sum > 0.0f) & (sum < kInfinity) & (size > 0.0f) & (size < kInfinity);
  const f32x quotient = scale * (1.0f / sqrt(sum));
  for (f32x& part : factor.parts) part = finite ? part : quotient;
  return factor;
}

// Bits 30 and 31 are 0 for a positive number from 2^-63 to below 2^65, half of all exponents; bit
// 30 is 0 for a negative one too.
DMLOPS_INLINE u32x from_usual(f32x x) { return bit_cast<u32x>(x) - 0x20000000u; }

// What a lane gets depends on that lane alone.
template <class T>
DMLOPS_INLINE NormalizationFactor<T> normalization_factor(f32x scale, f32x variance, f32x epsilon) {
  const f32x sum = variance + epsilon;
  const u32x distance = from_usual(sum) | (from_usual(scale) & 0x7fffffffu);
  NormalizationFactor<T> factor = usual_factor<T>(scale, variance, epsilon, sum);
  if (__builtin_expect(any_bit(distance, 0xc0000000u), 0)) {
    const NormalizationFactor<T> any = any_factor<T>(scale, variance, epsilon, sum);
    const auto usual = distance < 0x40000000u;
    for (int k = 0; k < NormalizationFactor<T>::kParts; ++k)
      factor.parts[k] = usual ? factor.parts[k] : any.parts[k];
  }
  return factor;
}

}  // namespace dmlops::DMLOPS_TARGET
