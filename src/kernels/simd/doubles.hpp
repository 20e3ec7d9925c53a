// Elements as vectors of float64.
#pragma once

#include "kernels/simd/fma.hpp"
#include "kernels/simd/partial.hpp"

namespace dmlops::DMLOPS_TARGET {

// Intrinsics, since compilers split conversions of half vectors.
DMLOPS_INLINE_SMALL f64x to_double(const float* source) {
#if defined(__AVX512F__)
  return _mm512_cvtps_pd(_mm256_loadu_ps(source));
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(_mm_loadu_ps(source));
#else
  f32half v;
  std::memcpy(&v, source, sizeof v);
  return __builtin_convertvector(v, f64x);
#endif
}
DMLOPS_INLINE_SMALL f64x to_double(const double* source) { return load<f64x>(source); }
struct Doubles {
  f64x lower, upper;
};
DMLOPS_INLINE_SMALL Doubles to_double(f32x v) {
  alignas(kVectorBytes) float lanes[kFloatLanes];
  store(lanes, v);
#if defined(__AVX2__)
  // Conversions with memory operands cost no shuffle, unlike extracting a half from a register.
  __asm__("" : "+m"(lanes));
#endif
  return {to_double(lanes), to_double(lanes + kLanes<f64x>)};
}
DMLOPS_INLINE_SMALL Doubles to_double(i32x v) {
  alignas(kVectorBytes) std::int32_t lanes[kLanes<i32x>];
  store(lanes, v);
  const auto half = [&lanes](int first) DMLOPS_LAMBDA_INLINE {
    using Half = typename VectorOf<std::int32_t, kVectorBytes / 2>::type;
    return __builtin_convertvector(load<Half>(lanes + first), f64x);
  };
  return {half(0), half(kLanes<f64x>)};
}
// A vector of elements as doubles. Converts each half from memory, without a shuffle.
DMLOPS_INLINE_SMALL Doubles load_doubles(const float* source) {
  return {to_double(source), to_double(source + kLanes<f64x>)};
}
DMLOPS_INLINE_SMALL Doubles load_doubles(const double* source) {
  return {load<f64x>(source), load<f64x>(source + kLanes<f64x>)};
}
DMLOPS_INLINE_SMALL Doubles load_doubles(const float16* source) {
#if defined(__AVX512F__)
  const auto* const halves = reinterpret_cast<const __m128i*>(source);
  return {_mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128(halves))),
          _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128(halves + 1)))};
#else
  return to_double(load<f32x>(source));
#endif
}
// The lanes [first, end) as doubles, and 0 in the others, whose memory is not accessed.
template <class T>
DMLOPS_INLINE_SMALL Doubles load_doubles(const T* source, std::int64_t first, std::int64_t end) {
#if defined(__AVX512VL__)
  if constexpr (std::is_same_v<T, float>) {
    const unsigned mask = (0xffffu >> (16 - end)) & (0xffffu << first);
    return {_mm512_cvtps_pd(_mm256_maskz_loadu_ps(static_cast<__mmask8>(mask), source)),
            _mm512_cvtps_pd(_mm256_maskz_loadu_ps(static_cast<__mmask8>(mask >> 8), source + 8))};
  }
#endif
  return to_double(load_between<f32x>(source, first, end));
}
DMLOPS_INLINE_SMALL f32half to_float(f64x v) {
#if defined(__AVX512F__)
  return _mm512_cvtpd_ps(v);
#elif defined(__AVX2__)
  return _mm256_cvtpd_ps(v);
#else
  return __builtin_convertvector(v, f32half);
#endif
}

DMLOPS_INLINE Doubles operator+(Doubles a, Doubles b) {
  return {a.lower + b.lower, a.upper + b.upper};
}
DMLOPS_INLINE Doubles operator-(Doubles a, Doubles b) {
  return {a.lower - b.lower, a.upper - b.upper};
}
DMLOPS_INLINE Doubles operator*(Doubles a, Doubles b) {
  return {a.lower * b.lower, a.upper * b.upper};
}
DMLOPS_INLINE Doubles to_doubles(double value) { return {splat<f64x>(value), splat<f64x>(value)}; }
DMLOPS_INLINE void store(double* target, Doubles v) {
  store(target, v.lower);
  store(target + kLanes<f64x>, v.upper);
}
// Rounds to float32.
DMLOPS_INLINE f32x rounded(Doubles v) { return join<f32x>(to_float(v.lower), to_float(v.upper)); }

// sum + a * b for exact products, such as products of float32 numbers in float64: bitwise identical
// with and without FMA.
DMLOPS_INLINE Doubles add_exact_product(Doubles sum, Doubles a, Doubles b) {
#if defined(DMLOPS_HAS_DOUBLE_FMA)
  return {fma(a.lower, b.lower, sum.lower), fma(a.upper, b.upper, sum.upper)};
#else
  return sum + a * b;
#endif
}
DMLOPS_INLINE f32x add_exact_product(f32x sum, f32x a, f32x b) {
#if defined(DMLOPS_HAS_DOUBLE_FMA)
  return fma(a, b, sum);
#else
  return sum + a * b;
#endif
}

}  // namespace dmlops::DMLOPS_TARGET
