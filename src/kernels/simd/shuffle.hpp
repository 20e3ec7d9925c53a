// Shuffles of bytes and of elements within a vector, and table lookup of bytes.
#pragma once

#include "kernels/simd/vec.hpp"

namespace dmlops::DMLOPS_TARGET {

using Bytes16 = typename VectorOf<std::uint8_t, 16>::type;

#if defined(__SSSE3__) || defined(__aarch64__)
#define DMLOPS_HAS_BYTE_SHUFFLE 1
// result[i] = bytes[index[i]], or 0 where the index is 0x80.
DMLOPS_INLINE Bytes16 shuffle_bytes(Bytes16 bytes, Bytes16 index) {
#if defined(__SSSE3__)
  return bit_cast<Bytes16>(_mm_shuffle_epi8(bit_cast<__m128i>(bytes), bit_cast<__m128i>(index)));
#else
  return bit_cast<Bytes16>(vqtbl1q_u8(bit_cast<uint8x16_t>(bytes), bit_cast<uint8x16_t>(index)));
#endif
}
#endif

#if defined(__AVX512BW__)
// result[i] = v[index[i] % kLanes<V>], for elements of 2, 4 or 8 bytes.
template <class V>
DMLOPS_INLINE V permuted(V v, V index) {
  const __m512i elements = bit_cast<__m512i>(v), indices = bit_cast<__m512i>(index);
  if constexpr (sizeof(Lane<V>) == 2)
    return bit_cast<V>(_mm512_permutexvar_epi16(indices, elements));
  if constexpr (sizeof(Lane<V>) == 4)
    return bit_cast<V>(_mm512_permutexvar_epi32(indices, elements));
  return bit_cast<V>(_mm512_permutexvar_epi64(indices, elements));
}

// result[i] = v[index[i] % kLanes<V>] in the lanes of a mask, and others[i] elsewhere.
template <class V>
DMLOPS_INLINE V permuted(V v, V index, std::uint32_t mask, V others) {
  const __m512i elements = bit_cast<__m512i>(v), indices = bit_cast<__m512i>(index),
                rest = bit_cast<__m512i>(others);
  if constexpr (sizeof(Lane<V>) == 2)
    return bit_cast<V>(_mm512_mask_permutexvar_epi16(rest, mask, indices, elements));
  if constexpr (sizeof(Lane<V>) == 4)
    return bit_cast<V>(
        _mm512_mask_permutexvar_epi32(rest, static_cast<__mmask16>(mask), indices, elements));
  return bit_cast<V>(
      _mm512_mask_permutexvar_epi64(rest, static_cast<__mmask8>(mask), indices, elements));
}
#endif

// Looks up table[x] for a table of 256 bytes.
#if defined(__AVX512VBMI__)
#define DMLOPS_HAS_LOOKUP 1
class ByteLookup {
 public:
  explicit ByteLookup(const std::uint8_t* table) {
    for (int i = 0; i < 4; ++i) quarters_[i] = _mm512_loadu_si512(table + 64 * i);
  }
  DMLOPS_INLINE u8x operator()(u8x x) const {
    const __m512i index = bit_cast<__m512i>(x);
    const __m512i low = _mm512_permutex2var_epi8(quarters_[0], index, quarters_[1]);
    const __m512i high = _mm512_permutex2var_epi8(quarters_[2], index, quarters_[3]);
    return bit_cast<u8x>(_mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high));
  }

 private:
  __m512i quarters_[4];
};
#elif defined(__AVX2__) || defined(__aarch64__)
#define DMLOPS_HAS_LOOKUP 1
// Combines lookups in sixteen tables of 16 bytes, of which all but one give 0.
class ByteLookup {
 public:
  explicit ByteLookup(const std::uint8_t* table) : table_(table) {}
  DMLOPS_INLINE u8x operator()(u8x x) const {
    u8x result = {};
    for (int high = 0; high < 16; ++high) {
      Bytes16 subtable;
      std::memcpy(&subtable, table_ + 16 * high, sizeof subtable);
      const u8x index = x ^ static_cast<std::uint8_t>(16 * high);  // below 16 if in this table
#if defined(__AVX512BW__)
      const __m512i tables = _mm512_broadcast_i32x4(bit_cast<__m128i>(subtable));
      result |= bit_cast<u8x>(_mm512_maskz_shuffle_epi8(
          _mm512_cmplt_epu8_mask(bit_cast<__m512i>(index), _mm512_set1_epi8(16)), tables,
          bit_cast<__m512i>(index)));
#elif defined(__AVX2__)
      // Saturation sets the high bit of other indices, which selects 0.
      const __m256i tables = _mm256_broadcastsi128_si256(bit_cast<__m128i>(subtable));
      const __m256i other = _mm256_adds_epu8(bit_cast<__m256i>(index), _mm256_set1_epi8(0x70));
      result |= bit_cast<u8x>(_mm256_shuffle_epi8(tables, other));
#else
      result |=
          bit_cast<u8x>(vqtbl1q_u8(bit_cast<uint8x16_t>(subtable), bit_cast<uint8x16_t>(index)));
#endif
    }
    return result;
  }

 private:
  const std::uint8_t* table_;
};
#endif

}  // namespace dmlops::DMLOPS_TARGET
