// Loads that widen float16 to float32 lanes, and stores that round once to nearest even.
#pragma once

#include "dmlops/tensor.hpp"
#include "kernels/simd/vec.hpp"

namespace dmlops::DMLOPS_TARGET {

using u16half = typename VectorOf<std::uint16_t, kVectorBytes / 2>::type;  // as many lanes as f32x

DMLOPS_INLINE f32x widen(u16half half) {
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(bit_cast<__m256i>(half));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(bit_cast<__m128i>(half));
#elif defined(__aarch64__)
  return vcvt_f32_f16(bit_cast<float16x4_t>(half));
#else
  const u32x h = __builtin_convertvector(half, u32x);
  const u32x sign = (h & 0x8000u) << 16;
  const u32x abs_bits = (h & 0x7fffu) << 13;
  // Adjusts the exponent by a multiplication, exact for normal and subnormal numbers.
  const f32x finite = bit_cast<f32x>(abs_bits) * splat<f32x>(0x1p112f);
  const u32x special = abs_bits | 0x7f800000u;  // infinity and NaN
  const u32x quiet = abs_bits > 0x0f800000u ? special | 0x00400000u : special;
  return bit_cast<f32x>(sign | (abs_bits >= 0x0f800000u ? quiet : bit_cast<u32x>(finite)));
#endif
}

DMLOPS_INLINE u16half narrow(f32x value) {
#if defined(__AVX512F__)
  return bit_cast<u16half>(_mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  return bit_cast<u16half>(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__aarch64__)
  return bit_cast<u16half>(vcvt_f16_f32(value));
#else
  const u32x bits = bit_cast<u32x>(value);
  const u32x sign = (bits >> 16) & 0x8000u;
  const u32x abs_bits = bits & 0x7fffffffu;
  // Normal numbers: rounds off the low 13 bits by an addition that carries into the exponent.
  const u32x odd = (abs_bits >> 13) & 1u;
  const u32x normal = (abs_bits + 0x0fffu + odd - (112u << 23)) >> 13;
  // Below 2^-14 the ulp of float16 is 2^-24, which is that of float32 after adding 0.5.
  const f32x shifted = bit_cast<f32x>(abs_bits) + splat<f32x>(0.5f);
  const u32x subnormal = bit_cast<u32x>(shifted) - bit_cast<u32x>(splat<f32x>(0.5f));
  const u32x nan = ((abs_bits >> 13) & 0x3ffu) | 0x7e00u;
  u32x half = abs_bits < 0x38800000u ? subnormal : normal;
  half = abs_bits >= 0x477ff000u ? splat<u32x>(0x7c00u) : half;  // from 65520 on
  half = abs_bits > 0x7f800000u ? nan : half;
  return __builtin_convertvector(sign | half, u16half);
#endif
}

// Loads a full vector from unaligned memory. A float16 becomes a float32 lane; other types stay as
// they are.
template <class V, class T>
DMLOPS_INLINE_SMALL V load(const T* source) {
  if constexpr (std::is_same_v<T, float16> && std::is_same_v<V, f32x>) {
    u16half half;
    std::memcpy(&half, source, sizeof half);
    return widen(half);
  } else {
    static_assert(sizeof(T) == sizeof(Lane<V>), "the lanes hold the elements' bits");
    V v;
    std::memcpy(&v, source, sizeof v);
    return v;
  }
}

template <class T, class V>
DMLOPS_INLINE_SMALL void store(T* target, V value) {
  if constexpr (std::is_same_v<T, float16> && std::is_same_v<V, f32x>) {
    const u16half half = narrow(value);
    std::memcpy(target, &half, sizeof half);
  } else {
    static_assert(sizeof(T) == sizeof(Lane<V>), "the lanes hold the elements' bits");
    std::memcpy(target, &value, sizeof value);
  }
}

// Non-temporal store, if the instruction set has it; `target` must be aligned to the stored vector.
// Visible to other threads after finish_non_temporal().
template <class T, class V>
DMLOPS_INLINE_SMALL void store_non_temporal(T* target, V value) {
#if defined(__SSE2__)
  if constexpr (std::is_same_v<T, float16> && std::is_same_v<V, f32x>) {
    return store_non_temporal(reinterpret_cast<std::uint16_t*>(target), narrow(value));
  } else if constexpr (sizeof(V) == 16) {
    return _mm_stream_si128(reinterpret_cast<__m128i*>(target), bit_cast<__m128i>(value));
  }
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32)
    return _mm256_stream_si256(reinterpret_cast<__m256i*>(target), bit_cast<__m256i>(value));
#endif
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64)
    return _mm512_stream_si512(reinterpret_cast<__m512i*>(target), bit_cast<__m512i>(value));
#endif
#endif
  store(target, value);
}
inline void finish_non_temporal() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace dmlops::DMLOPS_TARGET
