// Transposes small matrices of elements in registers.
#pragma once

#include "kernels/blocks/elements.hpp"
#include "kernels/kernel.hpp"

namespace dmlops::DMLOPS_TARGET {

// Interleaves the low (kHigh = 0) or high halves of each 16 bytes of a and b: a0 b0 a1 b1 ...
template <int kHigh, class V, std::size_t... kIndex>
DMLOPS_INLINE V zip_halves(V a, V b, std::index_sequence<kIndex...>) {
  constexpr std::size_t all = sizeof...(kIndex), n = 16 / sizeof(Lane<V>);
  return shuffle<(kIndex / n * n + kIndex % n / 2 + kIndex % 2 * all + kHigh * n / 2)...>(a, b);
}
template <int kHigh, class V>
DMLOPS_INLINE V zip_halves(V a, V b) {
  return zip_halves<kHigh>(a, b, std::make_index_sequence<std::size_t{kLanes<V>}>());
}

// Loads the low kBytes of a 16-byte vector, with zeros above.
template <class V, std::size_t kBytes>
DMLOPS_INLINE V load_low(const char* source) {
  using Word = typename UnsignedOf<(kBytes < 8 ? kBytes : 8)>::type;
  if constexpr (kBytes == sizeof(V)) {
    return load_element<V>(source);
  } else {
    static_assert(kBytes == sizeof(Word), "4 or 8 bytes");
    return bit_cast<V>(typename VectorOf<Word, 16>::type{load_element<Word>(source)});
  }
}

// Transposes adjacent squares of n = 16 bytes / element size rows. Each of the log2(n) rounds
// interleaves row i with row i + n/2.
template <class V, std::size_t kRows>
DMLOPS_INLINE void transpose_quads(V (&rows)[kRows]) {
#pragma GCC unroll 16
  for (std::size_t round = kRows; round > 1; round /= 2) {
    V next[kRows];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows / 2; ++i) {
      next[2 * i] = zip_halves<0>(rows[i], rows[i + kRows / 2]);
      next[2 * i + 1] = zip_halves<1>(rows[i], rows[i + kRows / 2]);
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows; ++i) rows[i] = next[i];
  }
}

// Loads kWidth elements from each of the rows at source(i), source(i + kStep), ..., as many rows as
// fill 16 bytes, and interleaves the elements.
template <class V, int kWidth, int kStep = kWidth, class RowAddress>
DMLOPS_INLINE V load_quad(const RowAddress& source, int i) {
  if constexpr (kStep == kLanes<V>) {
    return load_low<V, kWidth * sizeof(Lane<V>)>(source(i));
  } else {
    return zip_halves<0>(load_quad<V, kWidth, 2 * kStep>(source, i),
                         load_quad<V, kWidth, 2 * kStep>(source, i + kStep));
  }
}

// Loads kQuads such vectors, and joins them: of the rows from i, i + n, i + 2 n, ... on, with n
// elements in 16 bytes.
template <class U, int kWidth, int kQuads, class RowAddress>
DMLOPS_INLINE auto load_quads(const RowAddress& source, int i) {
  using V = typename VectorOf<U, 16 * kQuads>::type;
  if constexpr (kQuads == 1) {
    return load_quad<V, kWidth>(source, i);
  } else {
    constexpr int half = kLanes<V> / 2;
    return join<V>(load_quads<U, kWidth, kQuads / 2>(source, i),
                   load_quads<U, kWidth, kQuads / 2>(source, i + half));
  }
}

// Transposes rows of kWidth elements, row i at source(i), into kWidth rows of 16 * kQuads bytes. In
// each 16 bytes of the vectors, each of the log2(n) rounds interleaves row i with row i + n/2.
template <class U, int kWidth, int kQuads, class RowAddress>
DMLOPS_INLINE void transpose_block(char* target, std::int64_t target_pitch,
                                   const RowAddress& source) {
  typename VectorOf<U, 16 * kQuads>::type rows[kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) rows[i] = load_quads<U, kWidth, kQuads>(source, i);
  transpose_quads(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) store_element(target + i * target_pitch, rows[i]);
}

template <class U>
constexpr int kSide = kLineBytes / static_cast<int>(sizeof(U));  // rows and columns of a square

// Selects every second 16 bytes of two vectors, from kFirst on.
template <int kFirst, class V, std::size_t... kIndex>
DMLOPS_INLINE V every_second_quad(V a, V b, std::index_sequence<kIndex...>) {
  using Halves = typename VectorOf<std::uint64_t, sizeof(V)>::type;
  return bit_cast<V>(shuffle<(kIndex / 2 * 4 + kFirst * 2 + kIndex % 2)...>(bit_cast<Halves>(a),
                                                                            bit_cast<Halves>(b)));
}
template <int kFirst, class V>
DMLOPS_INLINE V every_second_quad(V a, V b) {
  return every_second_quad<kFirst>(a, b, std::make_index_sequence<sizeof(V) / 8>());
}

// Transposes four vectors of 16-byte elements: the first elements of all four, then the second
// ones.
template <class V>
DMLOPS_INLINE void gather_quads(V (&v)[4]) {
#pragma GCC unroll 16
  for (std::size_t round = sizeof(V) / 16; round > 1; round /= 2) {
    const V next[4] = {every_second_quad<0>(v[0], v[1]), every_second_quad<0>(v[2], v[3]),
                       every_second_quad<1>(v[0], v[1]), every_second_quad<1>(v[2], v[3])};
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) v[i] = next[i];
  }
}

// Transposes a square of kSide columns at `offsets` into rows `pitch` bytes apart. Reads each
// column's cache line at once, since columns a power of two apart map to the same cache set and
// evict each other. Not inlined: one copy serves all formulas.
template <class U, class Offsets>
DMLOPS_NO_INLINE void transpose_square(char* target, std::int64_t pitch, const char* source,
                                       Offsets offsets) {
  using V = Vec<U>;
  constexpr int height = 16 / static_cast<int>(sizeof(U));  // elements in 16 bytes
  constexpr int quads = kVectorBytes / 16, vectors = kLineBytes / kVectorBytes;
  V squares[vectors][4][height];  // elements are 16 bytes; four groups of columns
#pragma GCC unroll 16
  for (int group = 0; group < 4; ++group) {
#pragma GCC unroll 16
    for (int vector = 0; vector < vectors; ++vector) {
      V(&rows)[height] = squares[vector][group];
#pragma GCC unroll 16
      for (int i = 0; i < height; ++i)
        rows[i] = load_element<V>(source + offsets[group * height + i] + vector * kVectorBytes);
      transpose_quads(rows);
    }
  }
#pragma GCC unroll 16
  for (int vector = 0; vector < vectors; ++vector) {
#pragma GCC unroll 16
    for (int i = 0; i < height; ++i) {
      const V(&groups)[4][height] = squares[vector];
      V line[4] = {groups[0][i], groups[1][i], groups[2][i], groups[3][i]};
      gather_quads(line);
#pragma GCC unroll 16
      for (int k = 0; k < 4; ++k) {
        const int row = (vector * quads + k / vectors) * height + i;
        store_element(target + row * pitch + k % vectors * kVectorBytes, line[k]);
      }
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
