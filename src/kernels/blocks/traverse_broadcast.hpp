// Traverses broadcast rows of formulas of one input, whose results are computed once.
#pragma once

#include "kernels/blocks/memory.hpp"
#include "kernels/blocks/traverse_rows.hpp"

namespace dmlops::DMLOPS_TARGET {

// True if broadcast results need to be computed once only.
inline bool is_formula_of_one(const Traversal& t) { return t.elementwise && t.inputs == 1; }

// True if several rows broadcast one row of the input.
inline bool is_repeated(const Rows& rows) { return rows.count > 1 && broadcasts_row(rows, 1); }

// True if broadcast results are written by non-temporal stores.
inline bool streams_broadcast(const Rows& rows, const Traversal& t) {
  return rows.streaming && rows.length * t.size >= kShortestStreamedRow;
}

// Fills each row with one of the values.
template <class U>
void fill_rows(const Rows& rows, std::int64_t row, std::int64_t count, const U* values,
               PatternShuffles* shuffles) {
  const std::int64_t bytes = rows.length * std::int64_t{sizeof(U)};
  if (are_contiguous(rows, 0, sizeof(U)))
    return fill_runs<U>(row_of(rows, 0, row), bytes, count, values, shuffles);
  for (std::int64_t r = 0; r < count; ++r) fill_row<U>(row_of(rows, 0, row + r), bytes, values[r]);
}

// Traverses rows that broadcast one element each: computes each result once, and fills its row.
template <class U>
void traverse_broadcast(const Rows& rows, const Traversal& t, Packer& packer) {
  constexpr std::int64_t kRows = 512, capacity = kBlockBytes / sizeof(U);
  const bool streams = streams_broadcast(rows, t);
  alignas(kVectorBytes) U results[kRows];
  alignas(kVectorBytes) char filled[kBlockBytes];
  for (std::int64_t row = 0; row < rows.count; row += kRows) {
    Block block;
    block.rows = &rows;
    block.row = row;
    block.length = min(kRows, rows.count - row);
    block.output.data = reinterpret_cast<char*>(results);
    block.inputs[0].data = block.output.data;
    pack<U>(block.output.data, 0, block.length, 1, column_of(rows, 1, row));
    t.transforms.dense(block, t.context);
    if (rows.layout[0] == Layout::in_place && !streams) {
      fill_rows<U>(rows, row, block.length, results, packer.shuffles(rows));
      continue;
    }
    for (std::int64_t r = 0; r < block.length; ++r) {
      fill_row<U>(filled, min(rows.length, capacity) * t.size, results[r]);
      for (std::int64_t column = 0; column < rows.length; column += capacity)
        write(rows, t.size, row + r, column, min(capacity, rows.length - column), filled);
    }
  }
}

// Traverses rows that all broadcast one input row: computes it once, and copies the results to each
// row.
inline void traverse_repeated(const Rows& rows, const Traversal& t, Packer& packer) {
  alignas(kVectorBytes) char buffer[kRepeatedBytes + kSpill];
  const std::int64_t capacity = kRepeatedBytes / t.size;
  for (std::int64_t column = 0; column < rows.length; column += capacity) {
    Block block;
    block.rows = &rows;
    block.column = column;
    block.length = min(capacity, rows.length - column);
    block.output.data = buffer;
    block.inputs[0].data = buffer;
    if (rows.layout[1] == Layout::in_place) {
      block.inputs[0].data = rows.data[1] + column * t.size;
    } else {
      packer.pack_rows(rows, 1, t.size, 0, column, block.length, 1, buffer, block.length * t.size);
    }
    t.transforms.dense(block, t.context);
    if (rows.layout[0] == Layout::in_place && !streams_broadcast(rows, t)) {
      // Writes several contiguous rows at a time.
      const std::int64_t bytes = block.length * t.size;
      const bool contiguous = block.length == rows.length && are_contiguous(rows, 0, t.size);
      const std::int64_t together =
          contiguous && bytes < kBlockBytes ? min(kBlockBytes / bytes, rows.count) : 1;
      for (std::int64_t done = 1; done < together; done *= 2)
        copy_run(buffer + done * bytes, buffer, min(done, together - done) * bytes);
      for (std::int64_t r = 0; r < rows.count; r += together)
        copy_run(row_of(rows, 0, r) + column * t.size, buffer,
                 min(together, rows.count - r) * bytes);
      continue;
    }
    for (std::int64_t r = 0; r < rows.count; ++r)
      write(rows, t.size, r, column, block.length, buffer);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
