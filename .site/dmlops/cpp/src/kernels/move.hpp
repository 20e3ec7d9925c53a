// Moves strided elements into dense rows and back. Only the size of an element matters here.
#pragma once

#include <utility>

#include "simd/vec.hpp"

namespace dmlops::DMLOPS_TARGET {

template <std::size_t kSize>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = std::uint64_t;
};
// The unsigned integer with the same number of bytes as T.
template <class T>
using Bits = typename UnsignedOf<sizeof(T)>::type;

template <class U>
DMLOPS_INLINE U load_element(const char* source) {
  U value;
  std::memcpy(&value, source, sizeof value);
  return value;
}
template <class U>
DMLOPS_INLINE void store_element(char* target, U value) {
  std::memcpy(target, &value, sizeof value);
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define DMLOPS_HAS_SHUFFLEVECTOR 1
#endif
#endif

// a0 b0 a1 b1 ... from the low (kHigh = 0) or high (kHigh = 1) halves of a and b.
template <int kHigh, class V, std::size_t... kIndex>
DMLOPS_INLINE V interleave(V a, V b, std::index_sequence<kIndex...>) {
  constexpr std::size_t n = sizeof...(kIndex);
#if defined(DMLOPS_HAS_SHUFFLEVECTOR)
  return __builtin_shufflevector(a, b, (kIndex / 2 + (kIndex % 2) * n + kHigh * n / 2)...);
#else
  return __builtin_shuffle(
      a, b, V{static_cast<Lane<V>>(kIndex / 2 + (kIndex % 2) * n + kHigh * n / 2)...});
#endif
}

// kBytes of a 16-byte vector, and 0 above them.
template <class V, std::size_t kBytes>
DMLOPS_INLINE V load_low(const char* source) {
  using Piece = typename UnsignedOf<(kBytes < 8 ? kBytes : 8)>::type;
  if constexpr (kBytes == sizeof(V)) {
    return load_element<V>(source);
  } else {
    static_assert(kBytes == sizeof(Piece), "4 or 8 bytes");
    return bit_cast<V>(typename VectorOf<Piece, 16>::type{load_element<Piece>(source)});
  }
}

// Transposes rows of kWidth elements, as many as fill 16 bytes, into kWidth rows of 16 bytes; row i
// is at source(i). Each round interleaves row i with row i + n/2; after log2(n) rounds, rows are
// columns. Rows of less than 16 bytes are but the low halves of what the first rounds interleave.
template <class U, int kWidth = 16 / static_cast<int>(sizeof(U)), class Source>
DMLOPS_INLINE void transpose_block(char* target, std::int64_t target_pitch, const Source& source) {
  using V = typename VectorOf<U, 16>::type;
  constexpr int n = kLanes<V>;
  static_assert(kWidth >= n / 4, "two rounds at most take two half-empty rows");
  constexpr auto indices = std::make_index_sequence<static_cast<std::size_t>(n)>();
  V rows[n];
  for (int i = 0; i < n; ++i) rows[i] = load_low<V, kWidth * sizeof(U)>(source(i));
  if constexpr (kWidth < n) {
    for (int i = 0; i < n / 2; ++i) rows[i] = interleave<0>(rows[i], rows[i + n / 2], indices);
  }
  if constexpr (kWidth < n / 2) {
    for (int i = 0; i < n / 4; ++i) rows[i] = interleave<0>(rows[i], rows[i + n / 4], indices);
  }
  for (int round = kWidth; round > 1; round /= 2) {
    V next[kWidth];
    for (int i = 0; i < kWidth / 2; ++i) {
      next[2 * i] = interleave<0>(rows[i], rows[i + kWidth / 2], indices);
      next[2 * i + 1] = interleave<1>(rows[i], rows[i + kWidth / 2], indices);
    }
    for (int i = 0; i < kWidth; ++i) rows[i] = next[i];
  }
  for (int i = 0; i < kWidth; ++i) store_element(target + i * target_pitch, rows[i]);
}

constexpr std::int64_t kPrefetchColumns =
    16;  // how far ahead of a transposition lines are asked for

// Asks for the cache lines of a run that the processor does not foresee. Any address will do.
DMLOPS_INLINE void prefetch_lines(const char* begin, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(begin + i);
}

template <class V, std::size_t... kIndex>
DMLOPS_INLINE V every_second(V a, V b, std::index_sequence<kIndex...>) {
#if defined(DMLOPS_HAS_SHUFFLEVECTOR)
  return __builtin_shufflevector(a, b, (2 * kIndex)...);
#else
  return __builtin_shuffle(a, b, V{static_cast<Lane<V>>(2 * kIndex)...});
#endif
}

// One dense row from elements `step` bytes apart.
template <class U>
DMLOPS_INLINE void pack_strided(char* target, std::int64_t length, const char* source,
                                std::int64_t step) {
  constexpr std::int64_t size = sizeof(U);
  std::int64_t i = 0;
  if (step == 2 * size) {
    // Two vectors for one, while the second does not reach past the last element.
    using V = Vec<U>;
    constexpr std::int64_t lanes = kLanes<V>;
    for (; i + lanes < length; i += lanes) {
      const char* from = source + i * step;
      store_element(target + i * size,
                    every_second(load_element<V>(from), load_element<V>(from + sizeof(V)),
                                 std::make_index_sequence<static_cast<std::size_t>(lanes)>()));
    }
  }
  for (; i < length; ++i) store_element(target + i * size, load_element<U>(source + i * step));
}

// memcpy, without a call for the short runs that rows consist of. The last vector overlaps.
DMLOPS_INLINE void copy_run(char* target, const char* source, std::int64_t bytes) {
  using V = Vec<std::uint8_t>;
  constexpr std::int64_t step = sizeof(V);
  if (bytes < step || bytes > 16 * step) {
    std::memcpy(target, source, static_cast<std::size_t>(bytes));
    return;
  }
  for (std::int64_t i = 0; i < bytes - step; i += step) {
    store_element(target + i, load_element<V>(source + i));
  }
  store_element(target + bytes - step, load_element<V>(source + bytes - step));
}

// Fills `count` dense rows of `length` elements of type U, `target_pitch` bytes apart, from
// elements that lie `step` bytes apart in rows `pitch` bytes apart.
template <class U>
void pack(char* target, std::int64_t target_pitch, std::int64_t length, std::int64_t count,
          const char* source, std::int64_t step, std::int64_t pitch) {
  constexpr std::int64_t size = sizeof(U);
  constexpr std::int64_t square = 16 / size;
  if (pitch == size && step != size && length >= square && count >= square) {
    // Contiguous across the rows: squares, the last of which overlap their neighbours. Down the
    // rows first, so that a cache line is used up before the next, which may want its place.
    for (std::int64_t column = 0; column < length; column += square) {
      const std::int64_t c = least(column, length - square);
      for (std::int64_t ahead = 0; ahead < square; ++ahead) {
        prefetch_lines(source + (column + kPrefetchColumns + ahead) * step, count * size);
      }
      for (std::int64_t row = 0; row < count; row += square) {
        const std::int64_t r = least(row, count - square);
        const char* const corner = source + r * pitch + c * step;
        transpose_block<U>(target + r * target_pitch + c * size, target_pitch,
                           [corner, step](int i)
                               DMLOPS_LAMBDA_INLINE { return corner + i * step; });
      }
    }
    return;
  }
  for (std::int64_t row = 0; row < count; ++row, source += pitch, target += target_pitch) {
    if (step == size) {
      copy_run(target, source, length * size);
    } else {
      pack_strided<U>(target, length, source, step);
    }
  }
}

// The same, from elements at `offsets` from the begins of their rows.
template <class U, int kWidth = 16 / static_cast<int>(sizeof(U))>
void pack_gathered(char* target, std::int64_t target_pitch, std::int64_t length, std::int64_t count,
                   const char* source, const std::int64_t* offsets, std::int64_t pitch) {
  constexpr std::int64_t size = sizeof(U), block = 16 / size;
  if (pitch == size && count >= kWidth && length >= block) {
    for (std::int64_t column = 0; column < length; column += block) {
      const std::int64_t c = least(column, length - block);
      for (std::int64_t row = 0; row < count; row += kWidth) {
        const std::int64_t r = least(row, count - kWidth);
        const char* const corner = source + r * size;
        transpose_block<U, kWidth>(target + r * target_pitch + c * size, target_pitch,
                                   [=](int i)
                                       DMLOPS_LAMBDA_INLINE { return corner + offsets[c + i]; });
      }
    }
  } else if constexpr (kWidth * sizeof(U) > 4 && kWidth > 1) {
    pack_gathered<U, kWidth / 2>(target, target_pitch, length, count, source, offsets, pitch);
  } else {
    for (std::int64_t row = 0; row < count; ++row, source += pitch, target += target_pitch) {
      for (std::int64_t i = 0; i < length; ++i) {
        store_element(target + i * size, load_element<U>(source + offsets[i]));
      }
    }
  }
}

// One dense row.
template <class U>
void pack_row(void* target, std::int64_t length, const char* source, std::int64_t step) {
  pack<U>(static_cast<char*>(target), 0, length, 1, source, step, 0);
}

// The inverse of pack, from rows that follow one another.
template <class U>
void unpack(char* target, std::int64_t step, std::int64_t pitch, const char* source,
            std::int64_t length, std::int64_t count) {
  constexpr std::int64_t size = sizeof(U);
  for (std::int64_t row = 0; row < count; ++row, target += pitch, source += length * size) {
    for (std::int64_t i = 0; i < length; ++i)
      store_element(target + i * step, load_element<U>(source + i * size));
  }
}

}  // namespace dmlops::DMLOPS_TARGET
