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

// Where row r begins: `offsets`, where not null, have the place of the pitch.
DMLOPS_INLINE char* row_at(char* first, std::int64_t r, std::int64_t pitch,
                           const std::int64_t* offsets) {
  return first + (offsets != nullptr ? offsets[r] : r * pitch);
}

// In each 16 bytes a0 b0 a1 b1 ... from the low (kHigh = 0) or high (kHigh = 1) halves of a and b.
template <int kHigh, class V, std::size_t... kIndex>
DMLOPS_INLINE V interleave(V a, V b, std::index_sequence<kIndex...>) {
  constexpr std::size_t all = sizeof...(kIndex), n = 16 / sizeof(Lane<V>);
  return shuffle<(kIndex / n * n + kIndex % n / 2 + kIndex % 2 * all + kHigh * n / 2)...>(a, b);
}
template <int kHigh, class V>
DMLOPS_INLINE V interleave(V a, V b) {
  return interleave<kHigh>(a, b, std::make_index_sequence<std::size_t{kLanes<V>}>());
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

// Transposes squares of as many rows as fill 16 bytes, one beside the other. Each round interleaves
// row i with row i + n/2; after log2(n) rounds, rows are columns.
template <class V, std::size_t kRows>
DMLOPS_INLINE void transpose_quads(V (&rows)[kRows]) {
  for (std::size_t round = kRows; round > 1; round /= 2) {
    V next[kRows];
    for (std::size_t i = 0; i < kRows / 2; ++i) {
      next[2 * i] = interleave<0>(rows[i], rows[i + kRows / 2]);
      next[2 * i + 1] = interleave<1>(rows[i], rows[i + kRows / 2]);
    }
    for (std::size_t i = 0; i < kRows; ++i) rows[i] = next[i];
  }
}

// A vector of the 16 bytes quad(0), or of those and quad(1).
template <class V, class Quad>
DMLOPS_INLINE V join(const Quad& quad) {
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32) {
    return bit_cast<V>(_mm256_inserti128_si256(_mm256_castsi128_si256(bit_cast<__m128i>(quad(0))),
                                               bit_cast<__m128i>(quad(1)), 1));
  }
#endif
  if constexpr (sizeof(V) == 16) return quad(0);
}

// kWidth elements at source(i), source(i + kStep), source(i + 2 kStep), ... of as many rows as fill
// 16 bytes, interleaved so that rows of less than 16 bytes leave no gaps.
template <class V, int kWidth, int kStep = kWidth, class Source>
DMLOPS_INLINE V load_quad(const Source& source, int i) {
  if constexpr (kStep == kLanes<V>) {
    return load_low<V, kWidth * sizeof(Lane<V>)>(source(i));
  } else {
    return interleave<0>(load_quad<V, kWidth, 2 * kStep>(source, i),
                         load_quad<V, kWidth, 2 * kStep>(source, i + kStep));
  }
}

// Transposes rows of kWidth elements, as many as fill kQuads times 16 bytes, into kWidth rows of so
// many bytes; row i is at source(i). In each 16 bytes of the vectors, each round interleaves row i
// with row i + n/2; after log2(n) rounds, rows are columns.
template <class U, int kWidth, int kQuads, class Source>
DMLOPS_INLINE void transpose_block(char* target, std::int64_t target_pitch, const Source& source) {
  using Quad = typename VectorOf<U, 16>::type;
  using V = typename VectorOf<U, 16 * kQuads>::type;
  V rows[kWidth];
  for (int i = 0; i < kWidth; ++i) {
    rows[i] = join<V>([&source, i](int k) DMLOPS_LAMBDA_INLINE {
      return load_quad<Quad, kWidth>(source, k * kLanes<Quad> + i);
    });
  }
  transpose_quads(rows);
  for (int i = 0; i < kWidth; ++i) store_element(target + i * target_pitch, rows[i]);
}

constexpr int kLineBytes = 64;

// Asks for the cache lines of a run that the processor does not foresee. Any address will do.
template <int kLocality = 3>
DMLOPS_INLINE void prefetch_lines(const char* begin, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(begin + i, 0, kLocality);
}

template <int kFirst, class V, std::size_t... kIndex>
DMLOPS_INLINE V every_second(V a, V b, std::index_sequence<kIndex...>) {
  return shuffle<(2 * kIndex + kFirst)...>(a, b);
}

// Every second element of two vectors of memory, from the first or (kFirst = 1) the second on.
template <class V, int kFirst = 0>
DMLOPS_INLINE V load_every_second(const char* source) {
  V a = load_element<V>(source), b = load_element<V>(source + sizeof(V));
  constexpr std::size_t size = sizeof(Lane<V>);
  constexpr bool shifted = kFirst == 1 && size <= 2;  // compilers take such shuffles apart
  if constexpr (shifted) {
    using Pairs = typename VectorOf<typename UnsignedOf<2 * size>::type, sizeof(V)>::type;
    a = bit_cast<V>(bit_cast<Pairs>(a) >> 8 * size);
    b = bit_cast<V>(bit_cast<Pairs>(b) >> 8 * size);
  }
  constexpr int first = kFirst - int{shifted};
  return every_second<first>(a, b, std::make_index_sequence<std::size_t{kLanes<V>}>());
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
      store_element(target + i * size, load_every_second<V>(source + i * step));
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

// Fills `count` dense rows of `length` elements of type U, `target_pitch` bytes apart, from columns
// that are contiguous, the one of index c at column(c): blocks of kWidth rows, the last of which
// overlap their neighbours. Down the rows first, so that a cache line is used up before the next,
// which may want its place; that is also why columns do not fill more than 16 bytes at a time if
// they may lie a power of two apart (kQuads = 1). False where there are too few of either.
template <class U, int kQuads = 1, int kWidth = 16 / static_cast<int>(sizeof(U)), class Column>
DMLOPS_INLINE bool pack_columns(char* target, std::int64_t target_pitch, std::int64_t length,
                                std::int64_t count, const Column& column) {
  constexpr std::int64_t size = sizeof(U), block = kQuads * 16 / size;
  if (count < kWidth) {
    if constexpr (kWidth * size <= 4 || kWidth == 1)
      return false;
    else
      return pack_columns<U, kQuads, kWidth / 2>(target, target_pitch, length, count, column);
  }
  if (length < block) {
    if constexpr (kQuads == 1)
      return false;
    else
      return pack_columns<U, kQuads / 2, kWidth>(target, target_pitch, length, count, column);
  }
  for (std::int64_t begin = 0; begin < length; begin += block) {
    const std::int64_t c = least(begin, length - block);
    column.prefetch(begin, block);
    for (std::int64_t row = 0; row < count; row += kWidth) {
      const std::int64_t r = least(row, count - kWidth);
      transpose_block<U, kWidth, kQuads>(
          target + r * target_pitch + c * size, target_pitch,
          [&column, c, r](int i) DMLOPS_LAMBDA_INLINE { return column(c + i) + r * size; });
    }
  }
  return true;
}

// Columns that lie `step` bytes apart, which the processor does not foresee.
struct SteppedColumns {
  const char* source;
  std::int64_t step, bytes;

  DMLOPS_INLINE const char* operator()(std::int64_t c) const { return source + c * step; }
  DMLOPS_INLINE void prefetch(std::int64_t begin, std::int64_t count) const {
    for (std::int64_t c = begin + 16; c < begin + 16 + count; ++c) {
      prefetch_lines(source + c * step, bytes);
    }
  }
};

// Columns at `offsets`, of small dimensions.
struct GatheredColumns {
  const char* source;
  const std::int64_t* offsets;

  DMLOPS_INLINE const char* operator()(std::int64_t c) const { return source + offsets[c]; }
  DMLOPS_INLINE void prefetch(std::int64_t, std::int64_t) const {}
};

// Fills `count` dense rows of `length` elements of type U, `target_pitch` bytes apart, from
// elements that lie `step` bytes apart in rows `pitch` bytes apart.
template <class U>
DMLOPS_NO_INLINE void pack(char* target, std::int64_t target_pitch, std::int64_t length,
                           std::int64_t count, const char* source, std::int64_t step,
                           std::int64_t pitch) {
  constexpr std::int64_t size = sizeof(U);
  if (pitch == size && step != size) {
    const SteppedColumns columns{source, step, count * size};
    if (pack_columns<U>(target, target_pitch, length, count, columns)) return;
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
template <class U>
DMLOPS_NO_INLINE void pack_gathered(char* target, std::int64_t target_pitch, std::int64_t length,
                                    std::int64_t count, const char* source,
                                    const std::int64_t* offsets, std::int64_t pitch) {
  constexpr std::int64_t size = sizeof(U);
  const GatheredColumns columns{source, offsets};
  // Small elements take as many steps as large ones, for fewer bytes.
  constexpr int quads = size <= 2 && kVectorBytes > 16 ? 2 : 1;
  if (pitch == size && pack_columns<U, quads>(target, target_pitch, length, count, columns)) return;
  for (std::int64_t row = 0; row < count; ++row, source += pitch, target += target_pitch) {
    for (std::int64_t i = 0; i < length; ++i) {
      store_element(target + i * size, load_element<U>(source + offsets[i]));
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
DMLOPS_NO_INLINE void unpack(char* target, std::int64_t step, std::int64_t pitch,
                             const char* source, std::int64_t length, std::int64_t count) {
  constexpr std::int64_t size = sizeof(U);
  for (std::int64_t row = 0; row < count; ++row, target += pitch, source += length * size) {
    for (std::int64_t i = 0; i < length; ++i)
      store_element(target + i * step, load_element<U>(source + i * size));
  }
}

}  // namespace dmlops::DMLOPS_TARGET
