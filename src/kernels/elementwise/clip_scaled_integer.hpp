// clip of integers with scale and bias, computed in double and truncated.
#pragma once

#include "kernels/elementwise/integer.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
DMLOPS_INLINE T bound_from_bits(std::uint64_t bits) {
  return bit_cast<T>(static_cast<Bits<T>>(bits));
}

template <class T>
struct ScaledInteger {
  T lower, upper;
  double scale, bias;

  explicit ScaledInteger(const ClipParameters& p)
      : lower(bound_from_bits<T>(p.min_bits)),
        upper(bound_from_bits<T>(p.max_bits)),
        scale(static_cast<double>(p.scale)),
        bias(static_cast<double>(p.bias)) {}

  DMLOPS_INLINE T operator()(T x) const {
    const T scaled = truncate<T>(__builtin_fma(static_cast<double>(x), scale, bias));
    const T limited = scaled < upper ? scaled : upper;
    return limited > lower ? limited : lower;
  }
};

#if defined(DMLOPS_HAS_DOUBLE_FMA)
using i32half = typename VectorOf<std::int32_t, kVectorBytes / 2>::type;  // as many lanes as f64x

// Extracts element k of type T from each 32 bits.
template <class T, class V>
DMLOPS_INLINE auto element(V x, int k) {
  using Result = typename VectorOf<std::int32_t, sizeof(V)>::type;
  using Unsigned = typename VectorOf<std::uint32_t, sizeof(V)>::type;
  using Signed = std::conditional_t<std::is_signed_v<T>, Result, Unsigned>;
  constexpr int bits = 8 * static_cast<int>(sizeof(T));
  return bit_cast<Result>(bit_cast<Signed>(bit_cast<Unsigned>(x) << (32 - bits * (k + 1))) >>
                          (32 - bits));
}

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

// ScaledInteger for vectors of 16-bit or 32-bit integers, if no intermediate is NaN.
template <class T>
struct ScaledIntegers {
  using V = typename VectorOf<T, kVectorBytes / 2>::type;
  i32half lower;
  f64x upper, scale, bias;

  explicit ScaledIntegers(const ScaledInteger<T>& one)
      : lower(splat<i32half>(one.lower)),
        upper(splat<f64x>(one.upper)),
        scale(splat<f64x>(one.scale)),
        bias(splat<f64x>(one.bias)) {}

  DMLOPS_INLINE V operator()(V x) const {
    if constexpr (sizeof(T) == 4) {
      return scaled(x);
    } else {
      const i32half low = scaled(element<T>(x, 0)), high = scaled(element<T>(x, 1));
      return bit_cast<V>((low & 0xffff) | (high << 16));
    }
  }

 private:
  DMLOPS_INLINE i32half scaled(i32half x) const {
    return max(truncate(min(fma(to_double(x), scale, bias), upper)), lower);
  }
};

#if defined(__AVX2__) && !defined(__AVX512VBMI__)  // VBMI has a faster table lookup
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

// ScaledInteger for bytes in float32, which is correct for most parameters only.
template <class T>
struct ScaledBytes {
  Vec<T> lower, upper;
  f32x scale, bias;

  explicit ScaledBytes(const ScaledInteger<T>& one)
      : lower(splat<Vec<T>>(one.lower)),
        upper(splat<Vec<T>>(one.upper)),
        scale(splat<f32x>(static_cast<float>(one.scale))),
        bias(splat<f32x>(static_cast<float>(one.bias))) {}

  DMLOPS_INLINE Vec<T> operator()(Vec<T> x) const {
    const i32x integers[] = {scaled(x, 0), scaled(x, 1), scaled(x, 2), scaled(x, 3)};
    return max(min(join_bytes<T>(integers), upper), lower);
  }

  bool equals(const ByteTable& exact) const {
    Vec<T> x;
    for (int lane = 0; lane < kLanes<Vec<T>>; ++lane) x[lane] = static_cast<T>(lane);
    for (int i = 0; i < 256; i += kLanes<Vec<T>>) {
      const Vec<T> result = (*this)(x);
      if (__builtin_memcmp(&result, exact.results + i, sizeof result) != 0) return false;
      x += static_cast<T>(kLanes<Vec<T>>);
    }
    return true;
  }

 private:
  DMLOPS_INLINE i32x scaled(Vec<T> x, int k) const {
    return truncate(fma(__builtin_convertvector(element<T>(x, k), f32x), scale, bias));
  }
};

// Computes bytes in float32 if that gives the exact results for all values, otherwise by table
// lookup.
template <class T>
void clip_scaled_bytes(const Rows& rows, const ScaledInteger<T>& formula) {
  const ByteTable exact = byte_table<T>(formula);
  // Float32 rounds a product just below an integer up to that integer; a scale that is smaller by 1
  // ulp avoids this.
  ScaledInteger<T> less = formula;
  less.scale = static_cast<double>(
      bit_cast<float>(bit_cast<std::uint32_t>(static_cast<float>(formula.scale)) - 1));
  const ScaledInteger<T> candidates[] = {formula, less};
  for (const ScaledInteger<T>& candidate : candidates) {
    const ScaledBytes<T> vectors(candidate);
    if (vectors.equals(exact)) return map<T, Vec<T>, 1>(rows, vectors);
  }
  map_bytes(rows, exact);
}
#endif
#endif

template <class T>
void clip_scaled_integer(const Rows& rows, const ClipParameters& p) {
  const ScaledInteger<T> formula(p);
#if defined(__AVX2__) && !defined(__AVX512VBMI__)
  if constexpr (sizeof(T) == 1) {
    if (use_byte_table(rows)) return clip_scaled_bytes<T>(rows, formula);
  }
#endif
#if defined(DMLOPS_HAS_DOUBLE_FMA)
  if constexpr (sizeof(T) == 2 || std::is_same_v<T, std::int32_t>) {
    const bool finite = p.scale - p.scale == 0 && p.bias - p.bias == 0;
    if (finite) {
      const ScaledIntegers<T> vectors(formula);
      return map<T, typename ScaledIntegers<T>::V, 1>(rows, vectors);
    }
  }
#endif
  map_integers<T>(rows, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
