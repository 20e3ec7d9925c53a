// Loops over the vectors of a column block's columns, one or several at a time.
#pragma once

#include "kernels/blocks/column_block.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
DMLOPS_INLINE f32x load_columns(const ColumnRows& rows, std::int64_t row, std::int64_t c) {
  return load<f32x>(row_of<T>(rows, row) + c);
}

// Calls visit(c) for the first lane of each vector of columns.
template <class Visit>
DMLOPS_INLINE void for_each_vector(std::int64_t columns, const Visit& visit) {
  for (std::int64_t c = 0; c < columns; c += kFloatLanes) visit(c);
}

// Returns how many vectors of columns are computed together, which hides latencies and shares cache
// lines: at most 4, in at most half of the registers if a vector takes `each`.
constexpr int vectors_together(int each) {
  const int fitting = kForSize ? 1 : kVectorRegisters / 2 / each;
  return fitting >= 4 ? 4 : fitting >= 2 ? 2 : 1;
}

// A condition of vectors, and what is done with the others.
struct EveryVector {
  constexpr bool operator()(std::int64_t) const { return true; }
};
struct Nothing {
  constexpr void operator()(std::int64_t) const {}
};

// Calls visit(c, indices) for vectors of columns from c on for which is_joined(c) is true: an
// std::index_sequence of kMost of them if that many follow each other, otherwise of 2 or 1. Calls
// skip(c) for the others.
template <int kMost, class IsJoined, class Visit, class Skip = Nothing>
DMLOPS_INLINE void for_each_several(std::int64_t columns, const IsJoined& is_joined,
                                    const Visit& visit, const Skip& skip = {}) {
  static_assert(kMost == 1 || kMost == 2 || kMost == 4);
  for (std::int64_t c = 0, vectors; c < columns; c += vectors * kFloatLanes) {
    for (vectors = 0; vectors < kMost && c + vectors * kFloatLanes < columns; ++vectors) {
      if (!is_joined(c + vectors * kFloatLanes)) break;
    }
    if (vectors == kMost) {
      visit(c, std::make_index_sequence<kMost>());
      continue;
    }
    if constexpr (kMost > 2) {
      if (vectors >= 2) {
        visit(c, std::make_index_sequence<2>());
        vectors = 2;
        continue;
      }
    }
    if (vectors > 0) {
      visit(c, std::index_sequence<0>());
    } else {
      skip(c);
    }
    vectors = 1;
  }
}

// Writes a vector of each row for each of `results`, from `columns`. The results are parameters,
// since compilers keep an array of them in memory.
template <class T, class... Results>
DMLOPS_INLINE void write_rows(char* target, std::int64_t pitch, const ColumnRows& source,
                              std::int64_t begin, std::int64_t end, const std::int64_t* columns,
                              const Results&... results) {
  for (std::int64_t r = begin; r < end; ++r, target += pitch) {
    const std::int64_t* next = columns;
    const auto write = [&](std::int64_t column, const auto& result) DMLOPS_LAMBDA_INLINE {
      const f32x x = load_columns<T>(source, r, column);
      store(reinterpret_cast<T*>(target) + column, result(x, r));
    };
    (write(*next++, results), ...);
  }
}

// Writes several vectors of a row before the next row, since rows a power of two apart map to the
// same cache sets.
template <class T, int kWidth, class Make, std::size_t... kIndex>
DMLOPS_INLINE void write_vectors(const ColumnBlock<T, kWidth>& block, char* target,
                                 std::int64_t pitch, const ColumnRows& source, std::int64_t begin,
                                 std::int64_t end, std::int64_t c, const Make& make,
                                 std::index_sequence<kIndex...>) {
  const std::int64_t lanes[] = {c + static_cast<std::int64_t>(kIndex) * kFloatLanes...};
  const std::int64_t columns[] = {block.column(lanes[kIndex])...};
  write_rows<T>(target, pitch, source, begin, end, columns, make(lanes[kIndex])...);
}

// Writes the results of the groups; make(c) returns the function from an element and its row to its
// result for the vector of columns at c.
template <class T, int kWidth, class Make>
DMLOPS_NO_INLINE void write_columns(ColumnBlock<T, kWidth>& block, const Make& make) {
  for (std::int64_t b = 0; b < block.blocks(); ++b) {
    const auto x = block.view(b);
    const auto write = [&](char* target, std::int64_t pitch, std::int64_t first,
                           std::int64_t rows) DMLOPS_LAMBDA_INLINE {
      for_each_several<4>(
          block.columns(), EveryVector(), [&](std::int64_t c, auto indices) DMLOPS_LAMBDA_INLINE {
            write_vectors(block, target, pitch, x, first, first + rows, c, make, indices);
          });
    };
    block.store_results(b * kBlockRows, block.rows(b), write);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
