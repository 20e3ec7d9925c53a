// Interleaves 2 to 4 contiguous columns, such as the planes of an image, into dense rows.
#pragma once

#include "kernels/blocks/elements.hpp"
#include "kernels/simd/convert.hpp"
#include "kernels/simd/shuffle.hpp"

namespace dmlops::DMLOPS_TARGET {

#if defined(DMLOPS_HAS_BYTE_SHUFFLE)
// Interleaves vectors of 16 bytes, one of each column: result j combines shuffles of all.
template <class U, int kColumns>
struct ByteInterleaving {
  using Vector = Bytes16;

  struct Indices {
    alignas(sizeof(Vector)) std::uint8_t bytes[kColumns][kColumns][sizeof(Vector)] = {};

    constexpr Indices() {
      constexpr int size = sizeof(U), lanes = 16 / size;
      for (int j = 0; j < kColumns; ++j) {
        for (int column = 0; column < kColumns; ++column) {
          for (int i = 0; i < 16; ++i) {
            const int element = j * lanes + i / size;
            bytes[j][column][i] = static_cast<std::uint8_t>(
                element % kColumns == column ? element / kColumns * size + i % size : 0x80);
          }
        }
      }
    }
  };
  static constexpr Indices kIndices{};

  DMLOPS_INLINE static Vector result(int j, const Vector (&columns)[kColumns]) {
    const auto index = [j](int column)
                           DMLOPS_LAMBDA_INLINE { return load<Vector>(kIndices.bytes[j][column]); };
    Vector combined = shuffle_bytes(columns[0], index(0));
#pragma GCC unroll 16
    for (int column = 1; column < kColumns; ++column)
      combined |= shuffle_bytes(columns[column], index(column));
    return combined;
  }
};

#if defined(__AVX512BW__)
// Interleaves whole vectors.
template <class U, int kColumns>
struct ElementInterleaving {
  using Vector = Vec<U>;
  static constexpr int kLanesHere = kLanes<Vector>;

  struct Indices {
    alignas(sizeof(Vector)) U elements[kColumns][kLanesHere] = {};
    std::uint32_t masks[kColumns][kColumns] = {};  // the lanes of result j from a column

    constexpr Indices() {
      for (int j = 0; j < kColumns; ++j) {
        for (int i = 0; i < kLanesHere; ++i) {
          const int element = j * kLanesHere + i;
          elements[j][i] = static_cast<U>(element / kColumns);
          masks[j][element % kColumns] |= std::uint32_t{1} << i;
        }
      }
    }
  };
  static constexpr Indices kIndices{};

  DMLOPS_INLINE static Vector result(int j, const Vector (&columns)[kColumns]) {
    const auto index = load<Vector>(kIndices.elements[j]);
    Vector combined = permuted(columns[0], index);
#pragma GCC unroll 16
    for (int column = 1; column < kColumns; ++column)
      combined = permuted(columns[column], index, kIndices.masks[j][column], combined);
    return combined;
  }
};
#endif

// Interleaves columns `step` bytes apart, a vector of each at a time. The last vectors overlap the
// previous ones. Returns false if columns are shorter than a vector.
template <class U, int kColumns, class Interleaving>
DMLOPS_INLINE bool interleave_vectors(char* target, std::int64_t count, const char* source,
                                      std::int64_t step) {
  using Vector = typename Interleaving::Vector;
  constexpr std::int64_t size = sizeof(U), bytes = sizeof(Vector), lanes = bytes / size;
  if (count < lanes) return false;
  for (std::int64_t row = 0; row < count; row += lanes) {
    const std::int64_t r = min(row, count - lanes);
    Vector columns[kColumns];
#pragma GCC unroll 16
    for (int k = 0; k < kColumns; ++k)
      columns[k] = load_element<Vector>(source + k * step + r * size);
    char* const results = target + r * kColumns * size;
#pragma GCC unroll 16
    for (int j = 0; j < kColumns; ++j)
      store_element(results + j * bytes, Interleaving::result(j, columns));
  }
  return true;
}

template <class U, int kColumns>
DMLOPS_NO_INLINE bool interleave(char* target, std::int64_t count, const char* source,
                                 std::int64_t step) {
#if defined(__AVX512BW__)
  if constexpr (sizeof(U) > 1) {
    if (interleave_vectors<U, kColumns, ElementInterleaving<U, kColumns>>(target, count, source,
                                                                          step))
      return true;
  }
#endif
  // Of wider rows, transposition needs fewer shuffles.
  constexpr bool is_narrow = kColumns * sizeof(U) <= 8;
  if constexpr (!is_narrow) return false;
  return interleave_vectors<U, kColumns, ByteInterleaving<U, kColumns>>(target, count, source,
                                                                        step);
}

// Interleaves `length` columns of `count` elements. Returns false if these are too few or too many.
template <class U>
DMLOPS_INLINE bool interleave(char* target, std::int64_t length, std::int64_t count,
                              const char* source, std::int64_t step) {
  if (length == 2) return interleave<U, 2>(target, count, source, step);
  if (length == 3) return interleave<U, 3>(target, count, source, step);
  if (length == 4) return interleave<U, 4>(target, count, source, step);
  return false;
}
#else
template <class U>
DMLOPS_INLINE bool interleave(char*, std::int64_t, std::int64_t, const char*, std::int64_t) {
  return false;
}
#endif

}  // namespace dmlops::DMLOPS_TARGET
