// The factor of batch normalization: scale / sqrt(variance + epsilon).
//
// A root and a quotient take a processor as long as forty multiplications. Where all numbers are of
// usual size, an estimate y of 1 / sqrt(sum) from integer arithmetic is corrected instead, by the
// series (1 - h)^-1/2 = 1 + h / 2 + 3 / 8 h^2 + ... for h = 1 - sum y^2.
#pragma once

#include "simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

// Any numbers: the rounding errors of the sum, the root and the quotient are exact in float32, and
// their effect is added at the end. Where that is not finite, as at infinities and 0, the quotient
// stands alone. Within 0.51 ulp; where a number is below 2^-100, so that an error may be subnormal,
// 2.
DMLOPS_INLINE f32x any_normalization_factor(f32x scale, f32x variance, f32x epsilon) {
  const f32x sum = variance + epsilon;
  const f32x root = sqrt(sum);
  const f32x root_error =
      fma(-root, root, sum) + sum_error(variance, epsilon, sum);  // of its square
  const f32x inverse = 1.0f / root;
  const f32x quotient = scale * inverse;
  const f32x quotient_error = fma(-quotient, root, scale);  // times root
  const f32x half_root_error = 0.5f * (root_error * inverse);
  const f32x correction = fma(-quotient, half_root_error, quotient_error) * inverse;
  return abs(correction) < kInfinity ? quotient + correction : quotient;
}

// 1 / sqrt(x), times a constant and roughly: half of a float's bits are half of its logarithm.
DMLOPS_INLINE f32x inverse_root_estimate(f32x x) {
  return bit_cast<f32x>(0x5f0b43c0u - (bit_cast<u32x>(x) >> 1));
}

// Within 0.51 ulp.
DMLOPS_INLINE f32x usual_factor(f32x scale, f32x larger, f32x smaller, f32x sum) {
  const f32x error = smaller - (sum - larger);
  // One step of Newton's, with its constants adjusted together. Of 12 bits, y has an exact square.
  const f32x z = inverse_root_estimate(sum);
  const f32x near = z * fma(-(sum * z), z, splat<f32x>(0x1.e425ap0f));
  const f32x y = bit_cast<f32x>(bit_cast<u32x>(near) & ~0xfffu), square = y * y;
  const f32x h = fma(-error, square, fma(-sum, square, splat<f32x>(1.0f)));  // below 0.0022
  return fma(scale, y, scale * (y * (h * polynomial(h, 0.5f, 0.375f, 0.3125f))));
}

// Bits 30 and 31 are 0 for a positive number from 2^-63 to below 2^65, half of all exponents; bit
// 30 is 0 for a negative one too.
DMLOPS_INLINE u32x from_usual(f32x x) { return bit_cast<u32x>(x) - 0x20000000u; }

// What a lane gets depends on that lane alone.
DMLOPS_INLINE f32x normalization_factor(f32x scale, f32x variance, f32x epsilon) {
  const f32x sum = variance + epsilon;
  const u32x distance = from_usual(sum) | (from_usual(scale) & 0x7fffffffu);
  const f32x larger = at_least(variance, epsilon), smaller = at_most(variance, epsilon);
  const f32x factor = usual_factor(scale, larger, smaller, sum);
  if (__builtin_expect(any_bit(distance, 0xc0000000u), 0)) {
    return distance < 0x40000000u ? factor : any_normalization_factor(scale, variance, epsilon);
  }
  return factor;
}

}  // namespace dmlops::DMLOPS_TARGET
