// Packs rows of any layout into dense rows, and unpacks dense rows, for elements of 1, 2, 4 or 8
// bytes.
#pragma once

#include "kernels/blocks/pack_row.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr std::int64_t kSpill = 16;  // bytes that pack() may overwrite after its target

// Rows `pitch` bytes apart, whose elements are `step` bytes apart, in runs at `offsets` unless
// null.
struct Source {
  const char* data;
  std::int64_t pitch;
  std::int64_t step;
  const std::int64_t* offsets = nullptr;
  std::int64_t run = 1;   // elements of a run
  std::int64_t skip = 0;  // elements of the first run before the row
};

// Returns the first element of a row of operand k.
DMLOPS_INLINE char* row_of(const Rows& rows, int k, std::int64_t row) {
  const std::int64_t* const offsets = rows.row_offsets[k];
  return rows.data[k] + (offsets != nullptr ? offsets[row] : row * rows.pitch[k]);
}

// Returns operand k of a traversal, from (row, column) on; if its rows have offsets, the row alone.
DMLOPS_INLINE Source source_of(const Rows& rows, int k, std::int64_t row, std::int64_t column) {
  const char* const data = row_of(rows, k, row);
  if (rows.offsets[k] == nullptr)
    return {data + column * rows.step[k], rows.pitch[k], rows.step[k]};
  const std::int64_t run = rows.run[k];
  return {data, rows.pitch[k], rows.step[k], rows.offsets[k] + column / run, run, column % run};
}

// Packs `count` rows of `length` elements, `target_pitch` bytes apart in the target. If `spills`,
// kSpill bytes after the target may be overwritten, and the target's rows must be dense.
template <class U>
void pack(char* target, std::int64_t target_pitch, std::int64_t length, std::int64_t count,
          const Source& from, bool spills = false);

// The inverse of pack() for a row: writes dense elements to elements `step` bytes apart, or in runs
// of contiguous elements at `offsets`.
template <class U>
void unpack(char* target, std::int64_t step, const std::int64_t* offsets, const char* source,
            std::int64_t length, std::int64_t run = 1);

// ---- Dispatch on the element size, known at run time -----------------------------------------

inline void pack(std::int64_t size, char* target, std::int64_t target_pitch, std::int64_t length,
                 std::int64_t count, const Source& from, bool spills = false) {
  switch (size) {
    case 1:
      return pack<std::uint8_t>(target, target_pitch, length, count, from, spills);
    case 2:
      return pack<std::uint16_t>(target, target_pitch, length, count, from, spills);
    case 4:
      return pack<std::uint32_t>(target, target_pitch, length, count, from, spills);
    default:
      return pack<std::uint64_t>(target, target_pitch, length, count, from, spills);
  }
}

inline void unpack(std::int64_t size, char* target, std::int64_t step, const std::int64_t* offsets,
                   const char* source, std::int64_t length, std::int64_t run) {
  switch (size) {
    case 1:
      return unpack<std::uint8_t>(target, step, offsets, source, length, run);
    case 2:
      return unpack<std::uint16_t>(target, step, offsets, source, length, run);
    case 4:
      return unpack<std::uint32_t>(target, step, offsets, source, length, run);
    default:
      return unpack<std::uint64_t>(target, step, offsets, source, length, run);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
