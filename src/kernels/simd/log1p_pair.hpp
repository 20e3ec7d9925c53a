// ln(1 + x) of an unevaluated sum of two float32, as such a sum.
#pragma once

#include "kernels/simd/float_pair.hpp"
#include "kernels/simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

// ln(1 + x) for finite x >= 0, with a relative error below 2^-25, and NaN if x.low is NaN.
//
// The range reduction is that of log1p(f32x). x.low is a term of the first order.
DMLOPS_INLINE FloatPair log1p(const FloatPair& x) {
  const u32x exponent = minus_exponent(x.high);
  const f32x power = bit_cast<f32x>(bit_cast<u32x>(splat<f32x>(1.0f)) + exponent);  // 2^-k
  const f32x m = bit_cast<f32x>(bit_cast<u32x>(x.high) + exponent) - (1.0f - power);
  // (ln(1 + m) - m + m^2 / 2) / m^3 for -1/4 <= m <= 1/2. The error is 5e-10 of the logarithm.
  const f32x cubic =
      polynomial(m, 0x1.555568p-2f, -0x1.000092p-2f, 0x1.999174p-3f, -0x1.55089cp-3f,
                 0x1.24bf04p-3f, -0x1.05f784p-3f, 0x1.dce77ep-4f, -0x1.65b8f6p-4f, 0x1.186c7p-5f);
  const f32x derivative = polynomial(m, 0.996f, -0.96f, 0.62f);  // 1 / (1 + m), to 2 %
  const f32x n = __builtin_convertvector(bit_cast<i32x>(exponent), f32x);
  constexpr float kShortLn2 = 0x1.62e4p-1f, kRest = 0x1.7f7d1cp-20f;  // their sum is ln(2)
  const f32x k_ln2 = n * (-kShortLn2 * 0x1p-23f);                     // exact
  const f32x low = fma(n, splat<f32x>(-kRest * 0x1p-23f), x.low * power * derivative);
  const f32x tail = fma(m * -0.5f, m, fma(m * m, m * cubic, low));
  const f32x sum = k_ln2 + m, rest = (m - (sum - k_ln2)) + tail, high = sum + rest;
  return {high, rest - (high - sum)};
}

}  // namespace dmlops::DMLOPS_TARGET
