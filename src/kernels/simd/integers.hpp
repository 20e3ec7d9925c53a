// Conversions between integers and floats.
#pragma once

#include "kernels/simd/fma.hpp"

namespace dmlops::DMLOPS_TARGET {

#if defined(DMLOPS_HAS_DOUBLE_FMA)
using i32half = typename VectorOf<std::int32_t, kVectorBytes / 2>::type;  // as many lanes as f64x

// Intrinsics, since compilers split conversions of half vectors.
DMLOPS_INLINE f64x to_double(i32half x) {
#if defined(__AVX512F__)
  return _mm512_cvtepi32_pd(bit_cast<__m256i>(x));
#elif defined(__AVX2__)
  return _mm256_cvtepi32_pd(bit_cast<__m128i>(x));
#else
  return __builtin_convertvector(x, f64x);
#endif
}
// Truncates, saturating at the minimum. Values must not exceed the maximum, for which x86 returns
// the minimum.
DMLOPS_INLINE i32half truncate(f64x x) {
#if defined(__AVX512F__)
  return bit_cast<i32half>(_mm512_cvttpd_epi32(x));
#elif defined(__AVX2__)
  return bit_cast<i32half>(_mm256_cvttpd_epi32(x));
#else
  return bit_cast<i32half>(vqmovn_s64(vcvtq_s64_f64(x)));
#endif
}
#endif

#if defined(__AVX2__)
// Narrows integers[k] with saturation to byte k of each 32 bits.
template <class T>
DMLOPS_INLINE Vec<T> join_bytes(const i32x (&integers)[4]) {
  const __m128i transposed = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#if defined(__AVX512F__)
  const __m512i low =
      _mm512_packs_epi32(bit_cast<__m512i>(integers[0]), bit_cast<__m512i>(integers[1]));
  const __m512i high =
      _mm512_packs_epi32(bit_cast<__m512i>(integers[2]), bit_cast<__m512i>(integers[3]));
  const __m512i bytes =
      std::is_signed_v<T> ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  return bit_cast<Vec<T>>(_mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(transposed)));
#else
  const __m256i low =
      _mm256_packs_epi32(bit_cast<__m256i>(integers[0]), bit_cast<__m256i>(integers[1]));
  const __m256i high =
      _mm256_packs_epi32(bit_cast<__m256i>(integers[2]), bit_cast<__m256i>(integers[3]));
  const __m256i bytes =
      std::is_signed_v<T> ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  return bit_cast<Vec<T>>(_mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(transposed)));
#endif
}

DMLOPS_INLINE i32x truncate(f32x x) {
#if defined(__AVX512F__)
  return bit_cast<i32x>(_mm512_cvttps_epi32(x));
#else
  return bit_cast<i32x>(_mm256_cvttps_epi32(x));
#endif
}
#endif

}  // namespace dmlops::DMLOPS_TARGET
