// Tiles of a large transposition: squares of a cache line's width and height, transposed into a
// buffer.
#pragma once

#include "kernels/blocks/memory.hpp"
#include "kernels/blocks/transpose.hpp"

namespace dmlops::DMLOPS_TARGET {

// The intersection of [from, from + extent) and [0, size), extended backwards to at least a
// square's side, so that it may overlap the previous span. `outside` is min(from, 0).
struct Span {
  std::int64_t begin, count, outside;

  Span(std::int64_t from, std::int64_t extent, std::int64_t size, std::int64_t side)
      : begin(min(from < 0 ? 0 : from, size - side)), outside(min(from, 0)) {
    const std::int64_t within = min(from + extent, size) - begin;
    count = within < side ? side : within;
  }
};

struct TransposeTile {
  Span columns, rows;
};

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
  const std::int64_t step = rows.step[k];
  const char* const input = rows.data[k] + tile.rows.begin * size;
  const char* const next_input = rows.data[k] + next.rows.begin * size;
  if (rows.offsets[k] != nullptr) {
    const std::int64_t* const offsets = rows.offsets[k] + tile.columns.begin;
    return for_each_square(
        tile, side, [](std::int64_t) {},
        [&](std::int64_t c, std::int64_t r) DMLOPS_LAMBDA_INLINE {
          transpose_square<U>(buffer + r * pitch + c * size, pitch, input + r * size, offsets + c);
        });
  }
  for_each_square(
      tile, side,
      [&](std::int64_t i) DMLOPS_LAMBDA_INLINE {
        for (std::int64_t c = i; c < min(i + side, next.columns.count); ++c)
          prefetch_lines<2>(next_input + (next.columns.begin + c) * step, next.rows.count * size);
      },
      [&](std::int64_t c, std::int64_t r) DMLOPS_LAMBDA_INLINE {
        transpose_square<U>(buffer + r * pitch + c * size, pitch,
                            input + (tile.columns.begin + c) * step + r * size, step);
      });
}

// Returns the number of elements between the start of a cache line and `first`; 0 if rows `pitch`
// bytes apart have different positions in their lines.
inline std::int64_t past_line(const char* first, std::int64_t pitch, std::int64_t size) {
  if (pitch % kLineBytes != 0) return 0;
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(first) % kLineBytes) / size;
}

}  // namespace dmlops::DMLOPS_TARGET
