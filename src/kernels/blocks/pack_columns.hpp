// Packs columns into rows by transposition in registers.
#pragma once

#include "kernels/blocks/memory.hpp"
#include "kernels/blocks/pack.hpp"
#include "kernels/blocks/transpose.hpp"

namespace dmlops::DMLOPS_TARGET {

// Transposes contiguous columns, that of index c at column(c), into `count` rows of `length`
// elements, `target_pitch` bytes apart. Works in blocks of kWidth rows; the last blocks overlap the
// previous ones. Iterates over the rows first, so that each cache line is used completely before it
// can be evicted. For the same reason blocks of stepped columns are 16 bytes wide (kQuads = 1)
// unless keeps_lines(). Returns false if there are too few rows or columns.
//
// If `spills`, rows narrower than 16 bytes are allowed: the last column is repeated, the target's
// rows must be dense, and less than 16 bytes after the target are overwritten.
template <class U, int kQuads = 1, int kWidth = 16 / static_cast<int>(sizeof(U)), class Column>
DMLOPS_INLINE bool pack_columns(char* target, std::int64_t target_pitch, std::int64_t length,
                                std::int64_t count, const Column& column, bool spills = false) {
  constexpr std::int64_t size = sizeof(U), block = kQuads * 16 / size;
  if (count < kWidth) {
    if constexpr (kWidth * size <= 4 || kWidth == 1)
      return false;
    else
      return pack_columns<U, kQuads, kWidth / 2>(target, target_pitch, length, count, column,
                                                 spills);
  }
  if (length < block) {
    if constexpr (kQuads > 1) {
      return pack_columns<U, kQuads / 2, kWidth>(target, target_pitch, length, count, column,
                                                 spills);
    } else {
      if (!spills || length < 2) return false;
      // Each row overwrites the spilled bytes of the previous one.
      for (std::int64_t row = 0; row < count; row += kWidth) {
        const std::int64_t r = min(row, count - kWidth);
        transpose_block<U, kWidth, 1>(target + r * target_pitch, target_pitch,
                                      [&column, length, r](int i) DMLOPS_LAMBDA_INLINE {
                                        return column(min(i, length - 1)) + r * size;
                                      });
      }
      return true;
    }
  }
  for (std::int64_t begin = 0; begin < length; begin += block) {
    const std::int64_t c = min(begin, length - block);
    for (std::int64_t row = 0; row < count; row += kWidth) {
      const std::int64_t r = min(row, count - kWidth);
      transpose_block<U, kWidth, kQuads>(
          target + r * target_pitch + c * size, target_pitch,
          [&column, c, r](int i) DMLOPS_LAMBDA_INLINE { return column(c + i) + r * size; });
    }
  }
  return true;
}

// Columns `step` bytes apart.
struct SteppedColumns {
  const char* source;
  std::int64_t step;

  DMLOPS_INLINE const char* operator()(std::int64_t c) const { return source + c * step; }
};

constexpr int kWideQuads = kVectorBytes / 16;

// True if as many columns as a vector has lanes span no more than L1 holds, so that they do not
// evict each other's lines, even if `step` is a power of two.
template <class U>
constexpr bool keeps_lines(std::int64_t step) {
  constexpr std::int64_t kCacheBytes = 32 << 10;
  return abs(step) * kLanes<Vec<U>> <= kCacheBytes;
}

// Columns gathered through an offset table.
struct GatheredColumns {
  const char* source;
  const std::int64_t* offsets;

  DMLOPS_INLINE const char* operator()(std::int64_t c) const { return source + offsets[c]; }
};

// Transposes contiguous columns into rows narrower than 16 bytes, by way of dense rows. Returns
// false if there are too few rows or columns.
template <class U>
DMLOPS_NO_INLINE bool pack_narrow(char* target, std::int64_t target_pitch, std::int64_t length,
                                  std::int64_t count, const char* source, std::int64_t step) {
  constexpr std::int64_t size = sizeof(U), kRows = 128, kFewest = 4, kQuad = 16;
  const std::int64_t bytes = length * size;
  if (bytes >= kQuad || length < 2 || count < kFewest) return false;
  alignas(kVectorBytes) char dense[(kRows + 1) * kQuad];
  for (std::int64_t r = 0, rows; r < count; r += rows) {
    const std::int64_t left = count - r;
    rows = left <= kRows ? left : min(kRows, left - kFewest);
    pack_columns<U>(dense, bytes, length, rows, SteppedColumns{source + r * size, step}, true);
    if (target_pitch == bytes) {
      copy_run(target + r * bytes, dense, rows * bytes);
    } else {
      for (std::int64_t i = 0; i < rows; ++i)
        copy_short(target + (r + i) * target_pitch, dense + i * bytes, bytes);
    }
  }
  return true;
}

// True if rows are a few elements apart, so that columns are packed by vectors. Of long rows and of
// elements of 8 bytes, packing by elements is as fast.
template <class U>
bool is_strided_columns(const Source& from, std::int64_t length, std::int64_t count) {
  constexpr std::int64_t size = sizeof(U), kFewestRows = 32, kFewest = 4, kLongest = 48;
  return size < 8 && from.rows == nullptr && from.pitch > size && from.pitch <= 4 * size &&
         abs(from.step) > from.pitch && length >= kFewest && length * size <= kLongest &&
         count >= kFewestRows;
}

// Packs columns whose elements are a few elements apart, by way of dense columns.
template <class U>
DMLOPS_NO_INLINE void pack_strided_columns(char* target, std::int64_t target_pitch,
                                           std::int64_t length, std::int64_t count,
                                           const Source& from) {
  constexpr std::int64_t size = sizeof(U), kMaxWidth = 16, kMaxHeight = 64;
  alignas(kVectorBytes) char dense[kMaxWidth * kMaxHeight * size];
  const Source columns{dense, size, kMaxHeight * size};
  const std::int64_t width = min(length, kMaxWidth), height = min(count, kMaxHeight);
  for (std::int64_t row = 0; row < count; row += kMaxHeight) {
    const std::int64_t r = min(row, count - height);
    for (std::int64_t column = 0; column < length; column += kMaxWidth) {
      const std::int64_t c = min(column, length - width);
      for (std::int64_t i = 0; i < width; ++i)
        pack_column<U>(dense + i * kMaxHeight * size, height,
                       from.data + r * from.pitch + (c + i) * from.step, from.pitch);
      pack<U>(target + r * target_pitch + c * size, target_pitch, width, height, columns);
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
