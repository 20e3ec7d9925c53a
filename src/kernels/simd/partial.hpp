// Copies, loads and stores of less than a vector.
#pragma once

#include "kernels/simd/convert.hpp"

namespace dmlops::DMLOPS_TARGET {

// Copies the first and the last V of a range, which may overlap.
template <class V>
DMLOPS_INLINE void copy_ends(char* target, const char* source, std::int64_t bytes) {
  constexpr std::int64_t size = sizeof(V);
  V first, last;
  std::memcpy(&first, source, sizeof first);
  std::memcpy(&last, source + bytes - size, sizeof last);
  std::memcpy(target, &first, sizeof first);
  std::memcpy(target + bytes - size, &last, sizeof last);
}

// memcpy of less than a vector, without a call.
DMLOPS_INLINE void copy_short(void* to, const void* from, std::int64_t bytes) {
  char* const target = static_cast<char*>(to);
  const char* const source = static_cast<const char*>(from);
  if (kVectorBytes > 32 && bytes >= 32) {
    copy_ends<typename VectorOf<std::uint8_t, 32>::type>(target, source, bytes);
  } else if (kVectorBytes > 16 && bytes >= 16) {
    copy_ends<typename VectorOf<std::uint8_t, 16>::type>(target, source, bytes);
  } else if (bytes >= 8) {
    copy_ends<std::uint64_t>(target, source, bytes);
  } else if (bytes >= 4) {
    copy_ends<std::uint32_t>(target, source, bytes);
  } else if (bytes >= 2) {
    copy_ends<std::uint16_t>(target, source, bytes);
  } else if (bytes == 1) {
    *target = *source;
  }
}

#if defined(__AVX512BW__)
// The mask of the first `count` bytes of a vector, at least one.
DMLOPS_INLINE_SMALL std::uint64_t first_bytes(std::int64_t count) {
  return ~std::uint64_t{0} >> (64 - count);
}
#endif

#if defined(__AVX2__) && !defined(__AVX512BW__)
// Loads 1 to 7 words into the first lanes, and sets the others to 0. The words are joined in
// registers: a load from a buffer that several stores have filled would wait for them.
DMLOPS_INLINE __m128i load_words(const char* source, std::int64_t count) {
  const std::int64_t bytes = 2 * count;
  std::uint64_t lower = 0, upper = 0;
  if (count >= 4) {
    std::memcpy(&lower, source, 8);
    std::memcpy(&upper, source + bytes - 8, 8);
    upper = count == 4 ? 0 : upper >> 8 * (16 - bytes);
  } else if (count >= 2) {
    std::uint32_t first, last;
    std::memcpy(&first, source, 4);
    std::memcpy(&last, source + bytes - 4, 4);
    lower = first | std::uint64_t{last} << 8 * (bytes - 4);
  } else {
    std::memcpy(&lower, source, 2);
  }
  return _mm_set_epi64x(static_cast<long long>(upper), static_cast<long long>(lower));
}
#endif

// Loads the lanes [first, end), and sets the others to 0 without accessing their memory. `source`
// is the address of lane 0.
template <class V, class T>
DMLOPS_INLINE_SMALL V load_between(const T* source, std::int64_t first, std::int64_t end) {
  constexpr std::int64_t size = sizeof(T);
  alignas(kVectorBytes) T lanes[static_cast<std::size_t>(kLanes<V>)] = {};
#if defined(__AVX512BW__)
  const std::uint64_t mask = first_bytes(end * size) & ~std::uint64_t{0} << (first * size);
  if constexpr (sizeof lanes == 64) {
    return bit_cast<V>(_mm512_maskz_loadu_epi8(mask, source));
  } else if constexpr (sizeof lanes == 32 && sizeof(V) == 64) {
    return widen(bit_cast<u16half>(_mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask), source)));
  }
#elif defined(__AVX2__)
  if constexpr (sizeof lanes == 32 && size == 4) {
    const i32x index = {0, 1, 2, 3, 4, 5, 6, 7};
    const i32x exists =
        (index >= static_cast<std::int32_t>(first)) & (index < static_cast<std::int32_t>(end));
    return bit_cast<V>(
        _mm256_maskload_epi32(reinterpret_cast<const int*>(source), bit_cast<__m256i>(exists)));
  } else if constexpr (sizeof lanes == 16 && sizeof(V) == 32) {
    const __m128i words = load_words(reinterpret_cast<const char*>(source + first), end - first);
    if (first == 0) return widen(bit_cast<u16half>(words));
    const __m128i byte = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i shift = _mm_set1_epi8(static_cast<char>(first * size));
    return widen(bit_cast<u16half>(_mm_shuffle_epi8(words, _mm_sub_epi8(byte, shift))));
  }
#endif
  copy_short(lanes + first, source + first, (end - first) * size);
  return load<V>(lanes);
}

// Loads the first `count` lanes, at least one, and sets the others to `filler` without accessing
// their memory.
template <class V, class T>
DMLOPS_INLINE_SMALL V load_partial(const T* source, std::int64_t count, T filler = {}) {
  constexpr std::int64_t size = sizeof(T);
  alignas(kVectorBytes) T lanes[static_cast<std::size_t>(kLanes<V>)];
  for (T& lane : lanes) lane = filler;
#if defined(__AVX512BW__)
  const std::uint64_t mask = first_bytes(count * size);
  if constexpr (sizeof lanes == 64) {
    return bit_cast<V>(_mm512_mask_loadu_epi8(_mm512_load_si512(lanes), mask, source));
  } else if constexpr (sizeof lanes == 32 && sizeof(V) == 64) {
    const auto rest = _mm256_load_si256(reinterpret_cast<const __m256i*>(lanes));
    return widen(
        bit_cast<u16half>(_mm256_mask_loadu_epi8(rest, static_cast<__mmask32>(mask), source)));
  }
#elif defined(__AVX2__)
  if constexpr (sizeof lanes == 8 * sizeof(T) && sizeof(V) == 32) {
    const i32x index = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto end = static_cast<std::int32_t>(count);
    return index < end ? load_between<V>(source, 0, end) : load<V>(lanes);
  }
#endif
  copy_short(lanes, source, count * size);
  return load<V>(lanes);
}

template <class T, class V>
DMLOPS_INLINE_SMALL void store_partial(T* target, V value, std::int64_t count) {
  constexpr std::int64_t size = sizeof(T);
  alignas(kVectorBytes) T lanes[static_cast<std::size_t>(kLanes<V>)];
#if defined(__AVX512BW__)
  const std::uint64_t mask = first_bytes(count * size);
  if constexpr (sizeof lanes == 64) {
    return _mm512_mask_storeu_epi8(target, mask, bit_cast<__m512i>(value));
  } else if constexpr (sizeof lanes == 32 && sizeof(V) == 64) {
    return _mm256_mask_storeu_epi8(target, static_cast<__mmask32>(mask),
                                   bit_cast<__m256i>(narrow(value)));
  }
#endif
  store(lanes, value);
  copy_short(target, lanes, count * size);
}

}  // namespace dmlops::DMLOPS_TARGET
