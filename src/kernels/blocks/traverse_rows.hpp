// The rows of a traversal's operands: dense in the operand, packed into a block, or written from
// one.
#pragma once

#include "kernels/blocks/pack.hpp"
#include "kernels/blocks/pack_patterns.hpp"
#include "kernels/blocks/traverse.hpp"

namespace dmlops::DMLOPS_TARGET {

// Returns the rows of operand k from (row, column) on, which are dense in the operand.
template <class Byte>
DenseRows<Byte> rows_in_place(const Rows& rows, int k, std::int64_t row, std::int64_t column) {
  return DenseRows<Byte>{rows.data[k], rows.pitch[k], rows.row_offsets[k]}.from(
      row, column * rows.step[k]);
}

// Writes dense results to a range of an output row.
inline void write(const Rows& rows, std::int64_t size, std::int64_t row, std::int64_t column,
                  std::int64_t length, const char* results, const char* ahead = nullptr) {
  char* const target = row_of(rows, 0, row);
  if (rows.layout[0] != Layout::in_place) {
    const std::int64_t* const offsets = rows.offsets[0];
    const std::int64_t step = rows.step[0], run = rows.run[0];
    if (offsets != nullptr)
      return unpack(size, target, step, offsets + column / run, results, length, run);
    return unpack(size, target + column * step, step, nullptr, results, length, 1);
  }
  if (rows.streaming) return copy_streaming(target + column * size, results, length * size, ahead);
  copy_run(target + column * size, results, length * size);
}

// Bytes from which equal rows are packed once for all blocks.
constexpr std::int64_t kShortestEqual = 384;

// Packs the rows of a traversal's inputs. Keeps what blocks and iterations of the outer loops have
// in common: shuffles, and rows that are equal.
class Packer {
 public:
  // Packs ranges of the rows of operand k, `pitch` bytes apart in the buffer. If they are dense
  // there, the buffer needs kSpill extra bytes.
  void pack_rows(const Rows& rows, int k, std::int64_t size, std::int64_t row, std::int64_t column,
                 std::int64_t length, std::int64_t count, char* buffer, std::int64_t pitch) {
    Source source = source_of(rows, k, row, column);
    PatternShuffles& shuffles = shuffles_[k - 1];
    if (!shuffles.is_rejected()) {
      if (repeats_period(rows, k, size)) {
        if (has_many(rows, rows.period[k])) source.of_periods = &shuffles;
      } else if (length == rows.length && has_many(rows, length)) {
        source.of_rows = &shuffles;
      }
    }
    pack(size, buffer, pitch, length, count, source, pitch == length * size);
  }

  // Returns the shuffles that fill rows with elements of the first input, or null for a few rows.
  PatternShuffles* shuffles(const Rows& rows) {
    constexpr std::int64_t kFewest = 256;
    return all_rows(rows) >= kFewest ? &shuffles_[0] : nullptr;
  }

  // Returns the dense row of operand k, packed as a whole, or null if its rows differ, are in
  // place, or are too long.
  const char* equal_row(const Rows& rows, int k, std::int64_t size) {
    if (rows.count == 1 || rows.layout[k] == Layout::in_place || !broadcasts_row(rows, k) ||
        rows.length > kLongest)
      return nullptr;
    char* const packed = rows_[k - 1];
    if (data_[k - 1] != rows.data[k])
      pack(size, packed, 0, rows.length, 1, source_of(rows, k, 0, 0));
    data_[k - 1] = rows.data[k];
    return packed;
  }

 private:
  static constexpr std::int64_t kLongest = 1024;  // elements

  // True if the patterns of operand k are periods rather than rows.
  static bool repeats_period(const Rows& rows, int k, std::int64_t size) {
    return rows.offsets[k] != nullptr && rows.length * size >= kShortestOfPeriods &&
           rows.length >= 2 * rows.period[k];
  }
  // True if patterns of `count` elements are short, and enough to prepare shuffles for them.
  static bool has_many(const Rows& rows, std::int64_t count) {
    const std::int64_t elements = rows.length * all_rows(rows);
    return count <= kLongestPattern && elements >= max(kFewestPatterns * count, kFewestElements);
  }

  const char* data_[kMaxInputs] = {};
  PatternShuffles shuffles_[kMaxInputs];
  alignas(kVectorBytes) char rows_[kMaxInputs][kLongest * sizeof(std::uint64_t)];
};

constexpr std::int64_t kShortRow = 32;  // bytes below which rows in place are packed, to be merged

// Returns the input of a formula of two that is constant along rows and kept in a register, or 0.
// Constants of short rows are packed, so that several rows are transformed as one, unless the rows
// of another operand are not contiguous.
inline int constant_operand(const Rows& rows, const Traversal& t) {
  const std::int64_t bytes = rows.length * t.size;
  if (kForSize || t.inputs == 1 || bytes < kShortRow) return 0;
  const int constant = rows.layout[1] == Layout::broadcast   ? 1
                       : rows.layout[2] == Layout::broadcast ? 2
                                                             : 0;
  if (constant == 0 || bytes >= kShortestAcross) return constant;
  for (const int k : {0, 3 - constant}) {
    if (rows.layout[k] == Layout::in_place && !are_contiguous(rows, k, t.size)) return constant;
  }
  return 0;
}

}  // namespace dmlops::DMLOPS_TARGET
