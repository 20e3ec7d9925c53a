// Elementary functions on float32 lanes, within 2 ulp over all of float32.
//
// Only + - * /, fma(), ?: and integer operations, so that every instruction set gives the same bits. A NaN comes out as
// some NaN. The polynomials are minimax fits (tools/minimax.py): the coefficients are rounded to float32 one by one from
// the lowest, and the others refitted after each.
#pragma once

#include "simd/vec.hpp"

namespace dmlops::DMLOPS_TARGET {

// c0 + c1 x + c2 x^2 + ..., by Horner's rule.
template <class... Coefficients>
DMLOPS_INLINE f32x polynomial(f32x x, float c0, Coefficients... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return splat<f32x>(c0);
  } else {
    return fma(polynomial(x, rest...), x, splat<f32x>(c0));
  }
}

// 2^n, where that is a normal number.
DMLOPS_INLINE f32x power_of_two(i32x n) { return bit_cast<f32x>((n + 127) << 23); }

constexpr float kLog2E = 0x1.715476p0f;
constexpr float kLn2 = 0x1.62e43p-1f;
constexpr float kLn2Low = -0x1.05c61p-29f;  // ln(2) - kLn2

// x = n ln(2) + r with |r| <= ln(2) / 2.
struct Reduced {
  f32x n;
  f32x r;      // exact but for the missing -n * kLn2Low
  f32x power;  // 2^(n + kBias), where that is a normal number
};

template <int kBias>
DMLOPS_INLINE Reduced reduce(f32x x) {
  // From 1.5 * 2^23 on the unit is 1: the sum rounds to an integer, and its low bits are the power's exponent.
  constexpr float kShift = 0x1.8p23f + 127 + kBias;
  const f32x shifted = fma(x, splat<f32x>(kLog2E), splat<f32x>(kShift));
  const f32x n = shifted - kShift;
  return {n, fma(n, splat<f32x>(-kLn2), x), bit_cast<f32x>(bit_cast<i32x>(shifted) << 23)};
}

// (e^r - 1 - r) / r^2, times a power of two. e^r has a relative error of 3.7e-9 for |r| <= ln(2) / 2.
DMLOPS_INLINE f32x exp_tail(f32x r, float k) {
  return polynomial(r, k * 0.5f, k * 0x1.5554a4p-3f, k * 0x1.55568ap-5f, k * 0x1.122f1ep-7f, k * 0x1.6b6bd2p-10f);
}

// e^x times a power of two and divided by 2^n.
DMLOPS_INLINE f32x exp_mantissa(Reduced reduced, float k) {
  const f32x r = fma(reduced.n, splat<f32x>(-kLn2Low), reduced.r);
  return fma(fma(exp_tail(r, k), r, splat<f32x>(k)), r, splat<f32x>(k));
}

// e^x for -131 < x < 43. A subnormal result is rounded once, as the factors 2^-64 and 2^(n + 64) are normal.
DMLOPS_INLINE f32x exp_in_range(f32x x) {
  const Reduced reduced = reduce<64>(x);
  return exp_mantissa(reduced, 0x1p-64f) * reduced.power;
}

// e^x for x <= 0.
DMLOPS_INLINE f32x exp_nonpositive(f32x x) { return exp_in_range(at_least(x, splat<f32x>(-104.5f))); }

// e^x. The power of two goes in halves, since neither it nor 2^64 times it need be a float32.
DMLOPS_INLINE f32x exp(f32x x) {
  const Reduced reduced = reduce<0>(at_most(at_least(x, splat<f32x>(-104.5f)), splat<f32x>(89.0f)));
  const i32x n = __builtin_convertvector(reduced.n, i32x);
  const i32x half = n >> 1;
  return exp_mantissa(reduced, 1.0f) * power_of_two(half) * power_of_two(n - half);
}

// -k * 2^23 for x in [3/4, 3/2) * 2^k: added to the bits of x, it brings x into [3/4, 3/2).
DMLOPS_INLINE i32x negated_exponent(f32x x) {
  return (bit_cast<i32x>(splat<f32x>(1.5f)) - 1 - bit_cast<i32x>(x)) & ~0x7fffff;
}

// ln(1 + m) for -1/4 <= m <= 1, with a relative error of 7.2e-9 before rounding.
DMLOPS_INLINE f32x log1p_in_range(f32x m) {
  const f32x tail = polynomial(m, -0x1.000004p-1f, 0x1.55557ep-2f, -0x1.fff9cep-3f, 0x1.997a34p-3f, -0x1.55bd6p-3f,
                               0x1.27e2aep-3f, -0x1.03c98ep-3f, 0x1.a30f78p-4f, -0x1.063406p-4f, 0x1.a02188p-6f,
                               -0x1.2d079cp-8f);
  return fma(m * m, tail, m);
}

// ln((1 + m) 2^k), from -k * 2^23. At k = 0 the sign of m = -0 survives, as +0 * -kLn2 is -0.
DMLOPS_INLINE f32x log_of_scaled(f32x m, i32x negated_exponent) {
  const f32x n = __builtin_convertvector(negated_exponent, f32x);
  return fma(n, splat<f32x>(-kLn2 * 0x1p-23f), log1p_in_range(m));
}

// ln(1 + x). The reduction (1 + x) 2^-k - 1 = x 2^-k - (1 - 2^-k) is exact where its rounding would count.
DMLOPS_INLINE f32x log1p(f32x x) {
  const i32x exponent = negated_exponent(1.0f + x);
  const f32x quarter = bit_cast<f32x>(bit_cast<i32x>(splat<f32x>(4.0f)) + exponent);  // 4 * 2^-k: k may be 128
  const f32x scaled = bit_cast<f32x>(bit_cast<i32x>(x) + exponent);
  const f32x m = scaled - fma(quarter, splat<f32x>(-0.25f), splat<f32x>(1.0f));
  const f32x infinity = splat<f32x>(__builtin_inff());
  const f32x at_most_minus_one = x == -1.0f ? -infinity : infinity - infinity;
  const f32x result = x > -1.0f ? log_of_scaled(m, exponent) : at_most_minus_one;
  return x < infinity ? result : x;
}

}  // namespace dmlops::DMLOPS_TARGET
