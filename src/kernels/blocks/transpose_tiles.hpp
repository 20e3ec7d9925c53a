// Tiles of a large transposition: squares of a cache line's width and height, transposed into a
// buffer.
#pragma once

#include "kernels/blocks/memory.hpp"
#include "kernels/blocks/pack_row.hpp"
#include "kernels/blocks/transpose.hpp"

namespace dmlops::DMLOPS_TARGET {

// The intersection of [from, from + extent) and [0, size), extended backwards to at least a
// square's side, so that it may overlap the previous span. `outside` is min(from, 0).
struct Span {
  std::int64_t begin, count, outside;

  Span(std::int64_t from, std::int64_t extent, std::int64_t size, std::int64_t side)
      : begin(min(max(from, 0), size - side)), outside(min(from, 0)) {
    count = max(min(from + extent, size) - begin, side);
  }
};

struct TransposeTile {
  Span columns, rows;
};

// Longer rows have less overhead; higher tiles use more of each input line.
template <class U>
constexpr std::int64_t kTileLines = sizeof(U) >= 2 ? 4 : 2;
template <class U>
constexpr std::int64_t kMaxTileRows = 256 / kTileLines<U>;

// Calls visit(c, r) for the corner of each square of a tile, and begin(i) before each column of
// squares.
template <class Begin, class Visit>
DMLOPS_INLINE void for_each_square(const TransposeTile& tile, std::int64_t side, const Begin& begin,
                                   const Visit& visit) {
  const std::int64_t last = tile.rows.count - side;
  for (std::int64_t i = 0; i < tile.columns.count; i += side) {
    begin(i);
    const std::int64_t c = min(i, tile.columns.count - side);
    for (std::int64_t j = tile.rows.outside, r = -1; r < last; j += side) {
      r = j < 0 ? 0 : min(j, last);
      visit(c, r);
    }
  }
}

// Transposes a tile of operand k into a buffer. The hardware prefetcher does not follow this order,
// so each tile prefetches the next one, into L2, since L1 cannot hold both.
template <class U>
void transpose_tile(char* buffer, std::int64_t pitch, const Rows& rows, int k,
                    const TransposeTile& tile, const TransposeTile& next) {
  constexpr std::int64_t size = sizeof(U), side = kSide<U>;
  const std::int64_t step = rows.step[k], row_step = rows.pitch[k];
  const std::int64_t* const offsets =
      rows.offsets[k] != nullptr ? rows.offsets[k] + tile.columns.begin : nullptr;
  const char* const input = rows.data[k] + tile.rows.begin * row_step;
  const char* const next_input = rows.data[k] + next.rows.begin * row_step;
  const auto column = [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
    return input + (offsets != nullptr ? offsets[c] : (tile.columns.begin + c) * step);
  };
  const auto prefetch = [&](std::int64_t i) DMLOPS_LAMBDA_INLINE {
    if (offsets != nullptr) return;
    for (std::int64_t c = i; c < min(i + side, next.columns.count); ++c)
      prefetch_lines<2>(next_input + (next.columns.begin + c) * step, next.rows.count * row_step);
  };
  if (row_step != size) {
    // Columns of elements that are a few elements apart are packed first.
    constexpr std::int64_t dense_pitch = kMaxTileRows<U> * size;
    alignas(kLineBytes) char dense[side * dense_pitch];
    return for_each_square(
        tile, side,
        [&](std::int64_t i) DMLOPS_LAMBDA_INLINE {
          prefetch(i);
          const std::int64_t first = min(i, tile.columns.count - side);
          for (std::int64_t c = 0; c < side; ++c)
            pack_column<U>(dense + c * dense_pitch, tile.rows.count, column(first + c), row_step);
        },
        [&](std::int64_t c, std::int64_t r) DMLOPS_LAMBDA_INLINE {
          transpose_square<U>(buffer + r * pitch + c * size, pitch, dense + r * size,
                              SteppedOffsets{dense_pitch});
        });
  }
  for_each_square(tile, side, prefetch, [&](std::int64_t c, std::int64_t r) DMLOPS_LAMBDA_INLINE {
    char* const target = buffer + r * pitch + c * size;
    if (offsets != nullptr) {
      transpose_square<U>(target, pitch, input + r * size, offsets + c);
    } else {
      transpose_square<U>(target, pitch, column(c) + r * size, SteppedOffsets{step});
    }
  });
}

// Returns the number of elements between the start of a cache line and `first`; 0 if rows `pitch`
// bytes apart have different positions in their lines.
inline std::int64_t past_line(const char* first, std::int64_t pitch, std::int64_t size) {
  return pitch % kLineBytes != 0 ? 0 : bytes_past_line(first) / size;
}

}  // namespace dmlops::DMLOPS_TARGET
