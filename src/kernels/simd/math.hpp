// Elementary functions on float32 lanes, within 2 ulp over all of float32. The largest errors of
// all 2^32 inputs: log1p 1.27, sigmoid 1.65, gelu 1.92 (by tests/cpp/exhaustive_math.cpp).
//
// Only + - * /, fma(), ?: and integer operations are used, so that every instruction set gives the
// same bits. A NaN gives a NaN of any payload. The polynomials are minimax fits by
// tools/minimax.py; comments give their approximation errors, without rounding errors.
#pragma once

#include "kernels/simd/fma.hpp"

namespace dmlops::DMLOPS_TARGET {

// c0 + c1 x + c2 x^2 + ..., by Horner's rule.
template <class... Coefficients>
DMLOPS_INLINE f32x polynomial(f32x x, float c0, Coefficients... higher) {
  if constexpr (sizeof...(higher) == 0) {
    return splat<f32x>(c0);
  } else {
    return fma(polynomial(x, higher...), x, splat<f32x>(c0));
  }
}

// 2^n, for normal results.
DMLOPS_INLINE f32x power_of_two(i32x n) { return bit_cast<f32x>((bit_cast<u32x>(n) + 127u) << 23); }

constexpr float kInfinity = __builtin_inff();

// ---- Exponentials: e^x = 2^n e^r. ------------------------------------------------------------

constexpr float kLog2E = 0x1.715476p0f;
constexpr float kLn2 = 0x1.62e43p-1f;
constexpr float kLn2Low = -0x1.05c61p-29f;  // ln(2) - kLn2

struct Power {
  f32x n;      // an integer
  f32x value;  // 2^(n + bias), for normal results
};

// n = round(x * log2), for shift = kPowerShift + bias: at 1.5 * 2^23 the ulp is 1, so the sum is
// rounded to an integer, whose low bits are the power's exponent.
constexpr float kPowerShift = 0x1.8p23f + 127;
DMLOPS_INLINE Power nearest_power(f32x x, f32x log2, f32x shift) {
  const f32x shifted = fma(x, log2, shift);
  return {shifted - shift, bit_cast<f32x>(bit_cast<u32x>(shifted) << 23)};
}

// Range reduction x = n ln(2) + r with |r| <= ln(2) / 2.
struct RangeReduction {
  f32x n;
  f32x r;      // exact except for the omitted -n * kLn2Low
  f32x power;  // 2^(n + kBias), for normal results
};

template <int kBias>
DMLOPS_INLINE RangeReduction reduce_range(f32x x) {
  const Power power = nearest_power(x, splat<f32x>(kLog2E), splat<f32x>(kPowerShift + kBias));
  return {power.n, fma(power.n, splat<f32x>(-kLn2), x), power.value};
}

// (e^r - 1 - r) / r^2 times k. The error is 3.7e-9 of e^r.
DMLOPS_INLINE f32x exp_tail(f32x r, float k) {
  return polynomial(r, k * 0.5f, k * 0x1.5554a4p-3f, k * 0x1.55568ap-5f, k * 0x1.122f1ep-7f,
                    k * 0x1.6b6bd2p-10f);
}

// e^r - 1.
DMLOPS_INLINE f32x expm1_of_remainder(f32x r) { return fma(exp_tail(r, 1.0f), r * r, r); }

// x - n ln(2), after reduce_range().
DMLOPS_INLINE f32x remainder(RangeReduction reduced) {
  return fma(reduced.n, splat<f32x>(-kLn2Low), reduced.r);
}

constexpr float kExpEnd = -132.4f;  // n = -191, for which the bits of 2^(n + 64) are those of 0

// e^x for kExpEnd <= x < 43, and 0 at kExpEnd. Subnormal results are rounded once, since the
// factors 2^-64 and 2^(n + 64) are normal.
DMLOPS_INLINE f32x exp_in_range(f32x x) {
  const RangeReduction reduced = reduce_range<64>(x);
  const f32x r = remainder(reduced), one = splat<f32x>(0x1p-64f);
  return fma(fma(exp_tail(r, 0x1p-64f), r, one), r, one) * reduced.power;
}

// 1 / (1 + e^-x). With e = e^-|x| and q = e / (1 + e) <= 1/2, the result is e (1 - q) for x < 0 and
// 1 - q otherwise. The rounding errors of 1 + e and of q are attenuated, and small results have the
// relative error of e.
DMLOPS_INLINE f32x sigmoid(f32x x) {
  const f32x e = exp_in_range(max(minus_abs(x), splat<f32x>(kExpEnd)));
  const f32x factor = x < 0.0f ? e : splat<f32x>(1.0f);
  return fma(factor, e / (-1.0f - e), factor);
}

// ---- Logarithms: ln(2^k (1 + m)) = k ln(2) + ln(1 + m). --------------------------------------

// Returns -k * 2^23 for 1 + x in [3/4, 3/2) * 2^k, which added to the bits of a number multiplies
// it by 2^-k. Unsigned, since the sums may wrap for arguments without a logarithm.
DMLOPS_INLINE u32x minus_exponent(f32x x) {
  return (bit_cast<u32x>(splat<f32x>(1.5f)) + ~bit_cast<u32x>(1.0f + x)) & ~0x7fffffu;
}

// ln(1 + x), for 1 + x in [3/4, 3/2) * 2^k. The range reduction (1 + x) 2^-k - 1 = x 2^-k - (1 -
// 2^-k) is exact if its rounding error would matter.
DMLOPS_INLINE f32x log1p(f32x x) {
  const u32x exponent = minus_exponent(x);
  const f32x four = bit_cast<f32x>(bit_cast<u32x>(splat<f32x>(4.0f)) + exponent);  // k may be 128
  const f32x m = bit_cast<f32x>(bit_cast<u32x>(x) + exponent) -
                 fma(four, splat<f32x>(-0.25f), splat<f32x>(1.0f));
  // (ln(1 + m) - m) / m^2 for -1/4 <= m <= 1/2. The relative error of the logarithm is 5e-9.
  const f32x tail =
      polynomial(m, -0.5f, 0x1.5555a4p-2f, -0x1.00004ap-2f, 0x1.99699ep-3f, -0x1.54ed96p-3f,
                 0x1.28807ap-3f, -0x1.0d98fp-3f, 0x1.acf4aap-4f, -0x1.71e334p-5f);
  // At k = 0 the sign of m = -0 survives, as +0 * -kLn2 is -0.
  const f32x n = __builtin_convertvector(bit_cast<i32x>(exponent), f32x);
  const f32x logarithm = fma(n, splat<f32x>(-kLn2 * 0x1p-23f), fma(m * m, tail, m));
  const f32x infinity = splat<f32x>(kInfinity);
  const f32x outside = x == -1.0f ? -infinity : infinity - infinity;
  const f32x result = x > -1.0f ? logarithm : outside;
  return x < infinity ? result : x;
}

// c0 + c1 x + c2 x^2 + ..., in double, without fused multiply-add, which not every target has in
// double.
template <class... Coefficients>
DMLOPS_INLINE f64x polynomial(f64x x, double c0, Coefficients... higher) {
  if constexpr (sizeof...(higher) == 0) {
    return splat<f64x>(c0);
  } else {
    return polynomial(x, higher...) * x + c0;
  }
}

// ln(1 + x) in double for x >= 0 or NaN, with a relative error below 1e-10. 1 + x = 2^k (1 + m),
// and ln(1 + m) = 2 artanh(z) for z = m / (2 + m), |z| <= 1/5.
DMLOPS_INLINE f64x log1p(f64x x) {
  using u64x = Vec<std::uint64_t>;
  // 1 + x = u 2^k with u in [3/4, 3/2); its rounding error is negligible for k > 0.
  const f64x sum = 1.0 + x;
  const u64x bits = bit_cast<u64x>(sum);
  const u64x k = (bits - bit_cast<u64x>(splat<f64x>(0.75))) >> 52;
  const f64x u = bit_cast<f64x>(bits - (k << 52));
  const f64x m = sum >= 1.5 ? u - 1.0 : x;
  const f64x double_k = bit_cast<f64x>(k + bit_cast<u64x>(splat<f64x>(0x1.8p52))) - 0x1.8p52;
  const f64x z = m / (2.0 + m);
  const f64x quotient =  // artanh(z) / z, with an error of 2e-11
      polynomial(z * z, 0x1.000000001603bp0, 0x1.555553a9460c5p-2, 0x1.999c32621c5c6p-3,
                 0x1.23de437df7018p-3, 0x1.ee89f321be746p-4);
  return double_k * 0x1.62e42fefa39efp-1 + 2.0 * z * quotient;
}

// e^x in double for |x| <= ln(2) / 2, with a relative error of 4e-11.
DMLOPS_INLINE f64x exp_of_remainder(f64x x) {
  return polynomial(x, 0x1.ffffffffabbd1p-1, 0x1.000000010b4a2p0, 0x1.00000059cba16p-1,
                    0x1.5555534402a2p-3, 0x1.55546871cc049p-5, 0x1.1112fa2c812bap-7,
                    0x1.6da4ac593ffcap-10, 0x1.9eb72365ea3ddp-13);
}

// ---- The normal distribution. ---------------------------------------------------------------

// x Phi(x), Phi being the distribution function of the normal distribution.
//
// Near 0, Phi(x) = 1/2 + x p(x^2), with an error of 3.4e-9 of Phi(-|x|). From a = |x| = 0.8 on, a
// Phi(-a) = e^(-a^2/2) g(t) for t = (a - c) / (a + c), with a relative error of 4e-9: g varies so
// little that the rounding error of t is negligible, and c makes g(0) a float32. Nothing cancels
// for x < 0; for x > 0, x Phi(x) = x - x Phi(-x).
DMLOPS_INLINE f32x gelu(f32x x) {
  const f32x a = min(abs(x), splat<f32x>(16.27f));  // -a^2 / 2 reaches kExpEnd
  const f32x half = a * -0.5f, square = a * half;   // -a^2 / 2
  const f32x p = polynomial(square, 0x1.988452p-2f, 0x1.1057b8p-3f, 0x1.46b204p-5f, 0x1.343972p-7f,
                            0x1.9e0bdap-10f);
  constexpr float c = 0x1.bd86e4p0f, k = -0x1p-64f;
  const f32x g =
      polynomial((a - c) / (a + c), k * 0x1.4b6514p-2f, k * 0x1.873c62p-3f, k * -0x1.247ba4p-3f,
                 k * 0x1.a59612p-8f, k * 0x1.6b3048p-6f, k * 0x1.049b28p-8f, k * -0x1.c71894p-9f,
                 k * -0x1.6038a8p-9f, k * -0x1.8124a4p-12f, k * 0x1.13eb4ap-10f);
  RangeReduction reduced = reduce_range<64>(square);
  reduced.r += fma(a, half, -square);
  const f32x tail = fma(g, expm1_of_remainder(remainder(reduced)), g) * reduced.power;
  return a < 0.8f ? x * fma(x, p, splat<f32x>(0.5f)) : max(x, splat<f32x>(-0.0f)) + tail;
}

}  // namespace dmlops::DMLOPS_TARGET
