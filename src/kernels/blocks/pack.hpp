// Packs rows of any layout into dense rows, and unpacks dense rows, for elements of 1, 2, 4 or 8
// bytes.
#pragma once

#include "kernels/blocks/pack_row.hpp"

namespace dmlops::DMLOPS_TARGET {

class PatternShuffles;

constexpr std::int64_t kSpill = kVectorBytes;  // bytes that pack() may overwrite after its target

// Rows `pitch` bytes apart, or at `rows` unless null, whose elements are `step` bytes apart, in
// runs at `offsets` unless null.
struct Source {
  const char* data;
  std::int64_t pitch;
  std::int64_t step;
  const std::int64_t* offsets = nullptr;
  std::int64_t run = 1;  // elements of a run
  // The offsets of `period` elements are repeated every `period_step` bytes.
  std::int64_t period = 0, period_step = 0;
  // Elements of the first run, and of the first period, before the row.
  std::int64_t skip = 0, phase = 0;
  const std::int64_t* rows = nullptr;
  // Kept from block to block, for patterns that are rows, or periods of rows, unless null.
  PatternShuffles *of_rows = nullptr, *of_periods = nullptr;

  DMLOPS_INLINE const char* row(std::int64_t r) const {
    return data + (rows != nullptr ? rows[r] : r * pitch);
  }
  // Returns the rows from r on.
  DMLOPS_INLINE Source from_row(std::int64_t r) const {
    Source rest = *this;
    if (rows != nullptr) {
      rest.rows += r;
    } else {
      rest.data += r * pitch;
    }
    return rest;
  }
  // Returns the elements of gathered rows from i on.
  DMLOPS_INLINE Source from_element(std::int64_t i) const {
    Source rest = *this;
    if (i == 0) return rest;
    rest.offsets += (skip + i) / run;
    rest.skip = (skip + i) % run;
    if (period > 0) rest.phase = (phase + i) % period;
    return rest;
  }
};

// Returns the first element of a row of operand k.
DMLOPS_INLINE char* row_of(const Rows& rows, int k, std::int64_t row) {
  const std::int64_t* const offsets = rows.row_offsets[k];
  return rows.data[k] + (offsets != nullptr ? offsets[row] : row * rows.pitch[k]);
}

// True if rows of operand k follow one another, if their elements do.
DMLOPS_INLINE bool are_contiguous(const Rows& rows, int k, std::int64_t size) {
  return rows.row_offsets[k] == nullptr && rows.pitch[k] == rows.length * size;
}

// True if one row of operand k is broadcast to all rows.
DMLOPS_INLINE bool broadcasts_row(const Rows& rows, int k) {
  return rows.pitch[k] == 0 && rows.row_offsets[k] == nullptr;
}

// Returns the number of rows in all iterations of the outer loops.
inline std::int64_t all_rows(const Rows& rows) {
  std::int64_t count = rows.count;
  for (int d = 0; d < rows.outer_rank; ++d) count *= rows.outer[d].size;
  return count;
}

// Returns the first element of each row of operand k, from a row on, as the elements of one row.
DMLOPS_INLINE Source column_of(const Rows& rows, int k, std::int64_t row) {
  const std::int64_t* const offsets = rows.row_offsets[k];
  if (offsets != nullptr) return {rows.data[k], 0, 0, offsets + row};
  return {rows.data[k] + row * rows.pitch[k], 0, rows.pitch[k]};
}

// Returns operand k of a traversal, from (row, column) on.
DMLOPS_INLINE Source source_of(const Rows& rows, int k, std::int64_t row, std::int64_t column) {
  Source source{rows.data[k], rows.pitch[k], rows.step[k]};
  source.rows = rows.row_offsets[k];
  source = source.from_row(row);
  if (rows.offsets[k] == nullptr) {
    source.data += column * source.step;
    return source;
  }
  source.run = rows.run[k];
  source.period = rows.period[k];
  source.period_step = rows.period_step[k];
  source.offsets = rows.offsets[k];
  return source.from_element(column);
}

// Packs `count` rows of `length` elements, `target_pitch` bytes apart in the target. If `spills`,
// kSpill bytes after the target may be overwritten, and the target's rows must be dense.
template <class U>
void pack(char* target, std::int64_t target_pitch, std::int64_t length, std::int64_t count,
          const Source& from, bool spills = false);

// Fills `count` contiguous runs, each with one of the values.
template <class U>
void fill_runs(char* target, std::int64_t bytes, std::int64_t count, const U* values,
               PatternShuffles* shuffles = nullptr);

// The inverse of pack() for a row: writes dense elements to elements `step` bytes apart, or in runs
// of contiguous elements at `offsets`. Aligned as sweep_tiles() is: the loop for 2-byte elements
// would take up to 1.5 times as long.
template <class U>
__attribute__((aligned(64))) void unpack(char* target, std::int64_t step,
                                         const std::int64_t* offsets, const char* source,
                                         std::int64_t length, std::int64_t run = 1);

// ---- Dispatch on the element size, known at run time -----------------------------------------

inline void pack(std::int64_t size, char* target, std::int64_t target_pitch, std::int64_t length,
                 std::int64_t count, const Source& from, bool spills = false) {
  with_element_size(
      size, [&](auto u) { pack<decltype(u)>(target, target_pitch, length, count, from, spills); });
}

inline void unpack(std::int64_t size, char* target, std::int64_t step, const std::int64_t* offsets,
                   const char* source, std::int64_t length, std::int64_t run = 1) {
  with_element_size(
      size, [&](auto u) { unpack<decltype(u)>(target, step, offsets, source, length, run); });
}

}  // namespace dmlops::DMLOPS_TARGET
