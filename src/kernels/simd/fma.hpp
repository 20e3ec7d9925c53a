// Fused multiply-add, emulated where the instruction set lacks it.
#pragma once

#include "kernels/simd/vec.hpp"

namespace dmlops::DMLOPS_TARGET {

#if !defined(__FMA__) && !defined(__aarch64__)
// Computes product + c in double, two lanes at a time; the product is exact.
struct DoubleSums {
  __m128d low, high;

  DMLOPS_INLINE_SMALL DoubleSums(f32x a, f32x b, f32x c)
      : low(_mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c))),
        high(_mm_add_pd(_mm_mul_pd(upper(a), upper(b)), upper(c))) {}

  // A second rounding gives the fused result, unless a sum is midway between two floats, of which
  // the first rounding may have dropped the sticky bits, or the result is subnormal.
  DMLOPS_INLINE_SMALL bool round_safely() const {
    const __m128 first = _mm_castpd_ps(low), second = _mm_castpd_ps(high);
    const __m128i ends = _mm_castps_si128(_mm_shuffle_ps(first, second, _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i tops = _mm_castps_si128(_mm_shuffle_ps(first, second, _MM_SHUFFLE(3, 1, 3, 1)));
    const __m128i midway = _mm_cmpeq_epi32(_mm_and_si128(ends, _mm_set1_epi32(0x1fffffff)),
                                           _mm_set1_epi32(0x10000000));
    const __m128i abs_tops = _mm_and_si128(tops, _mm_set1_epi32(0x7fffffff));
    const __m128i small = _mm_cmplt_epi32(abs_tops, _mm_set1_epi32((1023 - 125) << 20));
    const __m128i not_zero = _mm_cmpgt_epi32(abs_tops, _mm_setzero_si128());
    return _mm_movemask_epi8(_mm_or_si128(midway, _mm_and_si128(small, not_zero))) == 0;
  }

  DMLOPS_INLINE_SMALL f32x rounded() const {
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
  }

 private:
  DMLOPS_INLINE_SMALL static __m128d upper(f32x v) { return _mm_cvtps_pd(_mm_movehl_ps(v, v)); }
};

// Not inlined, to keep formulas small: processors without the instruction are rare.
DMLOPS_NO_INLINE inline f32x emulated_fma(f32x a, f32x b, f32x c) {
  const DoubleSums sums(a, b, c);
  if (sums.round_safely()) return sums.rounded();
  // The product is exact in double. Its sum with c is rounded to odd, so that the second rounding,
  // to float, is correct.
  f32x result;
  for (int half = 0; half < 2; ++half) {
    f32half x, y, z;
    const std::size_t offset = static_cast<std::size_t>(half) * sizeof x;
    std::memcpy(&x, reinterpret_cast<const char*>(&a) + offset, sizeof x);
    std::memcpy(&y, reinterpret_cast<const char*>(&b) + offset, sizeof y);
    std::memcpy(&z, reinterpret_cast<const char*>(&c) + offset, sizeof z);
    const f64x product = __builtin_convertvector(x, f64x) * __builtin_convertvector(y, f64x);
    const f64x addend = __builtin_convertvector(z, f64x);
    const f64x sum = product + addend;
    const f64x shadow = sum - product;
    const f64x error = (product - (sum - shadow)) + (addend - shadow);
    using i64x = Vec<std::int64_t>;
    const i64x bits = bit_cast<i64x>(sum);
    const i64x inexact = (error < 0.0) | (error > 0.0);
    // -1 if the exact sum has a larger absolute value.
    const i64x outward = (error > 0.0) == (sum > 0.0);
    // 1 or -1 if the sum is even and inexact.
    const i64x to_odd = inexact & ((bits & 1) - 1) & (-2 * outward - 1);
    const f32half rounded = __builtin_convertvector(bit_cast<f64x>(bits + to_odd), f32half);
    std::memcpy(reinterpret_cast<char*>(&result) + offset, &rounded, sizeof rounded);
  }
  return result;
}
#endif

// a * b + c, rounded once.
DMLOPS_INLINE_SMALL f32x fma(f32x a, f32x b, f32x c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
  return vfmaq_f32(c, a, b);
#else
  return emulated_fma(a, b, c);
#endif
}

#if defined(__FMA__) || defined(__aarch64__)
#define DMLOPS_HAS_DOUBLE_FMA 1
DMLOPS_INLINE_SMALL f64x fma(f64x a, f64x b, f64x c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return vfmaq_f64(c, a, b);
#endif
}
DMLOPS_INLINE_SMALL double fma_by_float(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
#else
// sum + error = a + b, exactly (two-sum).
struct ExactSum {
  double sum, error;

  ExactSum(double a, double b) : sum(a + b) {
    const double shadow = sum - a;
    error = (a - (sum - shadow)) + (b - shadow);
  }
};

// a * b + c for a factor `b` that is a float32, rounded once: the C library's fma() rounds twice
// under MinGW-w64. Of three terms, only the sum of the smallest ones is rounded, to odd (Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
DMLOPS_NO_INLINE inline double fma_by_float(double a, double b, double c) {
  const double inexact = a * b + c;
  if (inexact - inexact != 0.0) return inexact;  // infinity or NaN
  // The products of 29 bits and of 24 bits of `a` with the 24 bits of `b` are exact.
  const auto high = bit_cast<double>(bit_cast<std::uint64_t>(a) & ~std::uint64_t{0xffffff});
  const ExactSum product(high * b, (a - high) * b);
  const ExactSum low(c, product.error);
  const ExactSum result(product.sum, low.sum);
  const ExactSum errors(low.error, result.error);
  auto odd = bit_cast<std::int64_t>(errors.sum);
  if (errors.error != 0.0 && odd % 2 == 0)
    odd += (errors.error > 0.0) == (errors.sum > 0.0) ? 1 : -1;
  return result.sum + bit_cast<double>(odd);
}
#endif

}  // namespace dmlops::DMLOPS_TARGET
