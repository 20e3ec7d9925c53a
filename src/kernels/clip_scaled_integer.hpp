// clip of integers with scale and bias: in double, truncated.
#pragma once

#include "kernels/integer.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
DMLOPS_INLINE T bound_from_bits(std::uint64_t bits) {
  return bit_cast<T>(static_cast<Bits<T>>(bits));
}

template <class T>
struct ScaledInteger {
  T min, max;
  double scale, bias;

  explicit ScaledInteger(const ClipParameters& p)
      : min(bound_from_bits<T>(p.min_bits)),
        max(bound_from_bits<T>(p.max_bits)),
        scale(static_cast<double>(p.scale)),
        bias(static_cast<double>(p.bias)) {}

  DMLOPS_INLINE T operator()(T x) const {
    const T scaled = truncate<T>(__builtin_fma(static_cast<double>(x), scale, bias));
    const T limited = scaled < max ? scaled : max;
    return limited > min ? limited : min;
  }
};

#if defined(DMLOPS_HAS_DOUBLE_FMA)
// To 32 bits and back. Compilers take vectors of bytes apart for it.
template <class Wide, class V>
DMLOPS_INLINE Wide widen(V x) {
  [[maybe_unused]] constexpr bool is_signed = Lane<V>(-1) < Lane<V>(0);
#if defined(__AVX512F__)
  if constexpr (sizeof(Lane<V>) == 1 && sizeof(Wide) == 64) {
    const auto bytes = bit_cast<__m128i>(x);
    return bit_cast<Wide>(is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes));
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(Lane<V>) == 1 && sizeof(Wide) == 32) {
    const __m128i bytes = _mm_cvtsi64_si128(bit_cast<long long>(x));
    return bit_cast<Wide>(is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
  }
#endif
  return __builtin_convertvector(x, Wide);
}
template <class V, class Wide>
DMLOPS_INLINE V narrow(Wide x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Lane<V>) == 1 && sizeof(Wide) == 64) {
    return bit_cast<V>(_mm512_cvtepi32_epi8(bit_cast<__m512i>(x)));
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(Lane<V>) == 1 && sizeof(Wide) == 32) {
    const auto wide = bit_cast<__m256i>(x);
    const __m128i low = _mm256_castsi256_si128(wide), high = _mm256_extracti128_si256(wide, 1);
    const __m128i words = _mm_packs_epi32(low, high);
    constexpr bool is_signed = Lane<V>(-1) < Lane<V>(0);
    const __m128i bytes =
        is_signed ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words);
    return bit_cast<V>(_mm_cvtsi128_si64(bytes));
  }
#endif
  return __builtin_convertvector(x, V);
}

// The same for as many elements as F has lanes, if F is exact enough and no NaN comes up.
template <class T, class F>
struct ScaledIntegers {
  using V = typename VectorOf<T, kLanes<F> * sizeof(T)>::type;
  using Wide = typename VectorOf<std::int32_t, kLanes<F> * sizeof(std::int32_t)>::type;
  F min, max, scale, bias;

  explicit ScaledIntegers(const ScaledInteger<T>& one)
      : min(splat<F>(static_cast<Lane<F>>(one.min))),
        max(splat<F>(static_cast<Lane<F>>(one.max))),
        scale(splat<F>(static_cast<Lane<F>>(one.scale))),
        bias(splat<F>(static_cast<Lane<F>>(one.bias))) {}

  DMLOPS_INLINE V operator()(V x) const {
    const F exact = __builtin_convertvector(widen<Wide>(x), F);
    const F limited = at_least(at_most(fma(exact, scale, bias), max), min);
    return narrow<V>(__builtin_convertvector(limited, Wide));
  }

  void map(const Rows& rows) const {
    map_rows<T, V, 4>(rows, [this](V x) DMLOPS_LAMBDA_INLINE { return (*this)(x); });
  }
};

#if defined(__AVX2__)
// Is float32 exact enough for all bytes?
template <class T>
bool all_bytes(const ScaledIntegers<T, f32x>& formula, const ByteTable& exact) {
  using V = typename ScaledIntegers<T, f32x>::V;
  V x;
  for (int lane = 0; lane < kLanes<V>; ++lane) x[lane] = static_cast<T>(lane);
  for (int i = 0; i < 256; i += kLanes<V>) {
    const V result = formula(x);
    if (__builtin_memcmp(&result, exact.results + i, sizeof result) != 0) return false;
    x += static_cast<T>(kLanes<V>);
  }
  return true;
}

// Bytes in float32, where that gives what the formula gives; else through a table.
template <class T>
void clip_scaled_bytes(const Rows& rows, const ScaledInteger<T>& formula) {
  const ByteTable exact = byte_table<T>(formula);
  // Float32 rounds a product just below a whole number up to it; a scale that is less by one unit
  // in the last place does not get there.
  ScaledInteger<T> less = formula;
  less.scale = static_cast<double>(
      bit_cast<float>(bit_cast<std::uint32_t>(static_cast<float>(formula.scale)) - 1));
  const ScaledInteger<T> candidates[] = {formula, less};
  for (const ScaledInteger<T>& candidate : candidates) {
    const ScaledIntegers<T, f32x> vectors(candidate);
    if (all_bytes<T>(vectors, exact)) return vectors.map(rows);
  }
  map_bytes<T>(rows, exact);
}
#endif
#endif

template <class T>
void clip_scaled_integer(const Rows& rows, const ClipParameters& p) {
  const ScaledInteger<T> formula(p);
#if defined(__AVX2__)
  if constexpr (sizeof(T) == 1) {
    if (rows.length * rows.count >= kWorthATable) return clip_scaled_bytes<T>(rows, formula);
  }
#endif
#if defined(DMLOPS_HAS_DOUBLE_FMA)
  if constexpr (sizeof(T) == 2 || std::is_same_v<T, std::int32_t>) {
    const bool finite = p.scale - p.scale == 0 && p.bias - p.bias == 0;
    if (finite) return ScaledIntegers<T, f64x>(formula).map(rows);
  }
#endif
  map_integers<T>(rows, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
