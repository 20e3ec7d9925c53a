// The factor of batch normalization: scale / sqrt(variance + epsilon).
//
// A square root and a division take as long as forty multiplications. For parameters of usual
// magnitude, an estimate y of 1 / sqrt(sum) from integer arithmetic is corrected instead, by the
// series (1 - h)^-1/2 = 1 + h / 2 + 3 / 8 h^2 + ... for h = 1 - sum y^2. Parameters whose factor
// may exceed float32's range, although the result may not, are extreme: normalized_unusual()
// computes their elements. The choice depends on an element's own parameters only, so that other
// channels do not affect its bits.
#pragma once

#include "kernels/simd/doubles.hpp"
#include "kernels/simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

// Estimates 1 / sqrt(x) up to a constant factor, by halving the float's bits, which approximate its
// logarithm.
DMLOPS_INLINE f32x inverse_root_estimate(f32x x) {
  return bit_cast<f32x>(0x5f0b43c0u - (bit_cast<u32x>(x) >> 1));
}

// The factor of elements of type T.
//
// For float32 the factor is an unevaluated sum hi + lo: a single number would add a third rounding
// to those of a difference and a sum, and exceed 2 ulp next to a power of two. lo has the sign of
// hi, and is 0 only if hi is, so that both products with an infinity are the same infinity. For
// float16, which is 8,192 times coarser, the factor is a single number.
template <class T>
struct NormalizationFactor {
  static constexpr int kTerms = std::is_same_v<T, float> ? 2 : 1;
  f32x terms[kTerms];

  DMLOPS_INLINE f32x times_plus(f32x x, f32x addend) const {
#pragma GCC unroll 16
    for (int k = kTerms - 1; k >= 0; --k) addend = fma(x, terms[k], addend);
    return addend;
  }
};

// The factor for usual magnitudes, to 0.01 ulp of the first term, or to 2 ulp with a single term.
template <class T>
DMLOPS_INLINE NormalizationFactor<T> usual_factor(f32x scale, f32x variance, f32x epsilon,
                                                  f32x sum) {
  // A Newton step, whose constants keep the estimate below the exact value.
  const f32x z = inverse_root_estimate(sum);
  const f32x estimate = z * fma(-(sum * z), z, splat<f32x>(0x1.e3cap0f));
  // h is between 0.0001 and 0.0044.
  if constexpr (NormalizationFactor<T>::kTerms == 1) {
    const f32x h = fma(-(sum * estimate), estimate, splat<f32x>(1.0f));
    return {{scale * fma(estimate * h, polynomial(h, 0.5f, 0.375f), estimate)}};
  } else {
    const f32x larger = max(variance, epsilon), smaller = min(variance, epsilon);
    const f32x error = smaller - (sum - larger);
    // y is truncated to 12 bits, so that its square is exact.
    const f32x y = bit_cast<f32x>(bit_cast<u32x>(estimate) & ~0xfffu), square = y * y;
    const f32x h = fma(-error, square, fma(-sum, square, splat<f32x>(1.0f)));
    const f32x high = scale * y;
    const f32x correction = scale * (y * (h * polynomial(h, 0.5f, 0.375f, 0.3125f)));
    return {{high, fma(scale, y, -high) + correction}};
  }
}

// Returns bits of which 30 and 31 are 0 for positive numbers from 2^-63 to below 2^65, half of all
// exponents; bit 30 is 0 for their negatives, too.
DMLOPS_INLINE u32x from_usual(f32x x) { return bit_cast<u32x>(x) - 0x20000000u; }

// Returns bits of which 30 and 31 are 0 in lanes of usual magnitude, whose factor lies between
// 2^-96 and 2^97. A scale of float16 is of usual magnitude, or it is 0, infinite or NaN, and so is
// then usual_factor().
template <class T>
DMLOPS_INLINE u32x from_usual(f32x scale, f32x sum) {
  if constexpr (std::is_same_v<T, float>) {
    return from_usual(sum) | (from_usual(scale) & 0x7fffffffu);
  } else {
    return from_usual(sum);
  }
}
DMLOPS_INLINE bool all_usual(u32x distance) {
  return __builtin_expect(!any_bit(distance, 0xc0000000u), 1);
}

// True in lanes that need normalized_unusual(): of unusual magnitude, unless the factor is 0,
// infinite or NaN because scale or sum is 0, infinite or NaN, or sum is negative.
DMLOPS_INLINE i32x is_extreme(f32x scale, f32x sum) {
  const f32x size = abs(scale);
  return (from_usual<float>(scale, sum) >= 0x40000000u) & (sum > 0.0f) & (sum < kInfinity) &
         (size > 0.0f) & (size < kInfinity);
}

// Returns the factor of lanes that are not extreme; that of others is unspecified. Lanes are
// independent.
template <class T>
DMLOPS_INLINE NormalizationFactor<T> normalization_factor(f32x scale, f32x variance, f32x epsilon) {
  const f32x sum = variance + epsilon;
  const u32x distance = from_usual<T>(scale, sum);
  NormalizationFactor<T> factor = usual_factor<T>(scale, variance, epsilon, sum);
  if (!all_usual(distance)) {
    const f32x quotient = scale * (1.0f / sqrt(sum));
    for (f32x& term : factor.terms) term = distance < 0x40000000u ? term : quotient;
  }
  return factor;
}

// Normalizes with any operands: extreme lanes in double, others by normalization_factor().
template <class T>
DMLOPS_NO_INLINE f32x normalized_unusual(f32x x, f32x mean, f32x variance, f32x scale, f32x bias,
                                         f32x epsilon) {
  // No intermediate of finite float32 operands overflows.
  const auto in_double = [&](f64x Doubles::*half) {
    const f64x sum = to_double(variance).*half + to_double(epsilon).*half;
    const f64x factor = to_double(scale).*half / sqrt(sum);
    return to_float((to_double(x).*half - to_double(mean).*half) * factor + to_double(bias).*half);
  };
  const f32x slow = join<f32x>(in_double(&Doubles::lower), in_double(&Doubles::upper));
  const f32x fast = normalization_factor<T>(scale, variance, epsilon).times_plus(x - mean, bias);
  return is_extreme(scale, variance + epsilon) ? slow : fast;
}

// (x - mean) * scale / sqrt(variance + epsilon) + bias.
template <class T>
DMLOPS_INLINE f32x normalized(f32x x, f32x mean, f32x variance, f32x scale, f32x bias,
                              f32x epsilon) {
  const f32x sum = variance + epsilon;
  if (!all_usual(from_usual<T>(scale, sum)))
    return normalized_unusual<T>(x, mean, variance, scale, bias, epsilon);
  return usual_factor<T>(scale, variance, epsilon, sum).times_plus(x - mean, bias);
}

}  // namespace dmlops::DMLOPS_TARGET
