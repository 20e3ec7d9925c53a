// Groups down columns: many groups at once, one per vector lane.
#pragma once

#include "kernels/blocks/group_layout.hpp"
#include "kernels/blocks/pack.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kColumns = 64;
constexpr std::int64_t kBlockRows = 64;

// Elements of groups as rows; element i of column c is at data + i * pitch + c * size.
struct ColumnRows {
  const char* data;
  std::int64_t pitch;

  // Returns the rows from `bytes` on. Null rows, of an operand that is absent or not loaded, stay
  // null.
  DMLOPS_INLINE ColumnRows from(std::int64_t bytes) const {
    return {data == nullptr ? nullptr : data + bytes, pitch};
  }
};

template <class T>
DMLOPS_INLINE const T* row_of(const ColumnRows& rows, std::int64_t r) {
  return reinterpret_cast<const T*>(rows.data + r * rows.pitch);
}

// Rows [first, end) of each `period` rows of a block: those of some lanes of a sum.
struct RowLanes {
  std::int64_t first = 0, end = kBlockRows, period = kBlockRows;

  bool are_all() const { return period == kBlockRows; }
};

// True if the results replace elements of an operand.
inline bool writes_to_input(const Reduction& groups) {
  for (int o = 1; o < kFirstGroupOperand; ++o) {
    if (groups.data[o] != nullptr && groups.data[o] == groups.data[0]) return true;
  }
  return false;
}

// A column block: 64 elements of up to kWidth groups as dense rows, or any number of groups in
// place. Unused columns are initialized, but arbitrary. `overlaps`: where columns are not whole
// vectors, the last vector may overlap the previous one, see column(), unless it would read results
// that have replaced elements.
template <class T, int kWidth = kColumns>
class ColumnBlock {
 public:
  static constexpr std::int64_t kSize = sizeof(T);
  static constexpr std::int64_t kPitch = kWidth * kSize;
  // The rows that load_shared() packs.
  static constexpr std::int64_t kSharedRows = kBlockRows * kWidth / kFloatLanes;

  ColumnBlock(const ColumnBlock&) = delete;  // in_ and out_ refer to members
  explicit ColumnBlock(const Reduction& groups, bool overlaps = false)
      : ColumnBlock(groups, 1, element_loops(groups, 1), overlaps) {}
  // Of another operand than the input.
  ColumnBlock(const Reduction& groups, int operand, const ElementLoops& in, bool overlaps)
      : groups_(groups),
        in_(in.merged(sizes_[0], strides_[0])),
        out_(element_loops(groups, 0).merged(sizes_[1], strides_[1])),
        operand_(operand),
        overlaps_(overlaps && !writes_to_input(groups)),
        input_(groups.data[operand]),
        count_(in.count()) {}

  // Selects `columns` groups from `first` on.
  void select(std::int64_t first, std::int64_t columns) {
    columns_ = columns;
    overlaps_here_ = overlaps_;
    packed_begin_ = kNone;
    read_.select(groups_.kept, operand_, first, columns);
    written_.select(groups_.kept, 0, first, columns);
    initialize();
    const bool is_run = read_.is_uniform() && read_.step == kSize;
    fits_caches_ = count_ * columns * kSize <= kCachedGroups;
    has_next_rows_ =
        is_run && (fits_caches_ ? first + columns + kWidth <= groups_.end : in_.rank == 1);
  }

  // Selects all groups in turn, and calls compute(first, columns) for each selection: up to
  // `max_adjacent` columns of groups that are adjacent in all operands, or if it is 0 up to kWidth.
  template <class Compute>
  void for_each_selection(const Compute& compute, std::int64_t max_adjacent) {
    are_adjacent_ = max_adjacent > 0;
    for (std::int64_t first = groups_.first, columns; first < groups_.end; first += columns) {
      columns = next(first, max_adjacent);
      select(first, columns);
      compute(first, columns);
    }
    if (streaming()) finish_non_temporal();
  }

  std::int64_t count() const { return count_; }  // elements in a group
  // True if results are written by non-temporal stores. Those of adjacent groups are stored in
  // place instead.
  bool streaming() const { return groups_.streaming && !are_adjacent_; }
  // Returns the number of groups of the next selection, from `first` on. Runs of adjacent groups
  // are divided evenly. Up to kWidth columns: long runs of groups are not combined if they are
  // whole vectors, which need no packing. Other runs take less time to pack than blocks that are
  // not full. With non-temporal stores, selections end at cache lines of the output.
  std::int64_t next(std::int64_t first, std::int64_t max_adjacent) {
    const ReductionNest& kept = groups_.kept;
    std::int64_t columns = kWidth;
    if (max_adjacent > 0) {
      const std::int64_t run = kept.sizes[0] - first % kept.sizes[0];
      const std::int64_t left = min(run, groups_.end - first);
      columns = min(round_up(ceil_div(left, ceil_div(left, max_adjacent)), kFloatLanes), left);
      return overlaps_ || columns < kFloatLanes ? columns : columns / kFloatLanes * kFloatLanes;
    }
    if (kept.rank > 1 && kept.sizes[0] >= kWidth / 2 && kept.sizes[0] % kFloatLanes == 0) {
      const std::int64_t size = kept.sizes[0], blocks = ceil_div(size, kWidth);
      if (blocks < 4) columns = round_up(ceil_div(size, blocks), kFloatLanes);
      columns = min(columns, size - first % size);
    }
    if (streaming() && kept.rank > 0 && kept.strides[0][0] == kSize) {
      written_.select(groups_.kept, 0, first, 1);
      const char* const output = groups_.data[0] + written_.runs[0].offset;
      columns = min(columns, kWidth - bytes_past_line(output) / kSize);
    }
    return min(columns, groups_.end - first);
  }
  std::int64_t columns() const { return columns_; }
  // Returns the number of lanes that have the numbers of the selected columns.
  std::int64_t lanes() const {
    return fills_vectors() ? round_up(columns_, kFloatLanes) : columns_;
  }
  std::int64_t blocks() const { return ceil_div(count_, kBlockRows); }
  std::int64_t rows(std::int64_t block) const {
    return min(kBlockRows, count_ - block * kBlockRows);
  }

  // Returns the first column of the vector at c, a multiple of the lanes: c, but the last vector
  // ends at the last column, and so may overlap the previous one.
  DMLOPS_INLINE std::int64_t column(std::int64_t c) const {
    return fills_vectors() ? min(c, columns_ - kFloatLanes) : c;
  }
  // True if vectors cover exactly the selected columns, perhaps with an overlap.
  bool fills_vectors() const {
    return columns_ % kFloatLanes == 0 || (overlaps_here_ && columns_ > kFloatLanes);
  }
  // Ends the overlap in this selection, for packed rows that results replace in the buffer: a
  // vector that overlaps would read results.
  void end_overlap() {
    if (!overlaps_here_) return;
    overlaps_here_ = false;
    initialize();
  }

  bool overlaps() const { return overlaps_; }
  // True if many of `count` elements of a group, `step` bytes apart, map to the same cache sets.
  static bool share_sets(std::int64_t count, std::int64_t step) {
    return count > kRowsInPlace && step % kSetPeriod == 0;
  }

  // True if the groups' elements are rows in memory that vectors cover exactly.
  bool in_place() const {
    return in_.rank == 1 && read_.is_uniform() && read_.step == kSize && fills_vectors();
  }
  // True if any number of groups that follow each other is in place.
  bool is_adjacent() const {
    return in_.rank == 1 && groups_.kept.rank > 0 && groups_.kept.strides[operand_][0] == kSize;
  }
  // True if results are written in place: to rows of the output that vectors cover exactly.
  bool stores_in_place() const {
    return written_.is_uniform() && written_.step == kSize && fills_vectors() && !streaming();
  }
  // Returns the rows of groups in place, from element `begin` on.
  ColumnRows rows_from(std::int64_t begin) const {
    return {input_ + read_.runs[0].offset + begin * in_.step(), in_.step()};
  }

  // Packs the rows of the lanes among the elements of the groups from `begin` on, a multiple of 64.
  ColumnRows load_rows(std::int64_t begin, const RowLanes& lanes = {}) {
    if (begin != packed_begin_) {
      const std::int64_t count = min(kBlockRows, count_ - begin);
      for (std::int64_t r = lanes.first; r < count; r += lanes.period) {
        in_.for_each_long_run(begin + r, begin + min(r + lanes.end - lanes.first, count),
                              [&](const ElementLoops::Run& run) { pack_rows(r, run); });
      }
      packed_begin_ = begin;
    }
    return {buffer_, kPitch};
  }

  // Packs elements that all groups share, `count` from `begin` on, at most kSharedRows: each row is
  // a vector that repeats its element.
  ColumnRows load_shared(std::int64_t begin, std::int64_t count) {
    constexpr std::int64_t pitch = kFloatLanes * kSize;
    if (packed_begin_ == kNone || begin < packed_begin_ ||
        begin + count > packed_begin_ + kSharedRows) {
      in_.for_each_run(begin, min(begin + kSharedRows, count_),
                       [&](std::int64_t offset, std::int64_t i, std::int64_t length) {
                         pack<Bits<T>>(buffer_ + i * pitch, pitch, kFloatLanes, length,
                                       {input_ + offset, in_.step(), 0, nullptr});
                       });
      packed_begin_ = begin;
    }
    return {buffer_ + (begin - packed_begin_) * pitch, pitch};
  }

  // Returns the rows of a block: those of whole vectors in place, unless many of them map to the
  // same cache sets; others packed.
  ColumnRows view(std::int64_t block) {
    const std::int64_t begin = block * kBlockRows;
    if (share_sets(count_, in_.step()) || !in_place()) return load_rows(begin);
    set_next_rows(0, {begin * in_.step(), in_.step(), 0, 1, rows(block)});
    return rows_from(begin);
  }

  // Returns the rows of the next groups, or of the next block if the groups are too long for the
  // caches. They are to be prefetched, since the hardware prefetcher follows neither such short
  // rows nor the order of lanes.
  DMLOPS_INLINE const char* const* next_rows() const { return next_rows_; }
  // Prefetches column `c` of such a row.
  DMLOPS_INLINE void prefetch_next(std::int64_t row, std::int64_t c) const {
    __builtin_prefetch(next_rows_[row] + c * kSize);
  }

  // Returns the byte offset of element `i` of column `c` in the output.
  std::int64_t output_offset(std::int64_t c, std::int64_t i) {
    return written_.offsets()[c] + out_.offset(i);
  }

  // Calls write(target, pitch, first, rows) for the elements [begin, begin + rows) of the groups,
  // to write results of the elements [begin + first, ...) to the output's rows if possible,
  // otherwise to the block, from which they are unpacked.
  template <class Write>
  DMLOPS_INLINE void store_results(std::int64_t begin, std::int64_t rows, const Write& write) {
    if (stores_in_place()) {
      char* const output = groups_.data[0] + written_.runs[0].offset;
      return out_.for_each_run(
          begin, begin + rows,
          [&](std::int64_t offset, std::int64_t i, std::int64_t length)
              DMLOPS_LAMBDA_INLINE { write(output + offset, out_.step(), i, length); });
    }
    const std::int64_t pitch = max(columns_ * kSize, kPitch);
    write(buffer_, pitch, 0, rows);
    packed_begin_ = kNone;
    unpack_results(begin, rows, pitch);
  }

 private:
  using Run = typename OperandGroups<kWidth>::Run;

  static constexpr std::int64_t kNone = -1;
  static constexpr std::int64_t kCachedGroups = 256 << 10;  // bytes of groups that stay in L2
  // More rows that are a multiple of kSetPeriod bytes apart would evict each other from L1.
  static constexpr std::int64_t kRowsInPlace = 8, kSetPeriod = 1024;

  // Initializes the unused columns that vectors cover, which packing leaves as they are.
  void initialize() {
    if (!fills_vectors()) std::memset(buffer_, 0, static_cast<std::size_t>(rows(0) * kPitch));
  }

  // Sets next_rows_ for a run of a block's elements from `begin` on.
  void set_next_rows(std::int64_t begin, const ElementLoops::Run& run) {
    const std::int64_t ahead = fits_caches_ ? columns_ * kSize : kBlockRows * run.step;
    const char* const input = input_ + run.offset + read_.runs[0].offset + ahead;
    for (std::int64_t i = 0; i < run.count; ++i)
      next_rows_[begin + run.first + i * run.period] =
          has_next_rows_ ? input + i * run.step : buffer_;
  }

  // Packs a run of a block's elements from `begin` on.
  void pack_rows(std::int64_t begin, const ElementLoops::Run& run) {
    auto& groups = read_;
    set_next_rows(begin, run);
    char* const target = buffer_ + (begin + run.first) * kPitch;
    const char* const input = input_ + run.offset;
    const std::int64_t pitch = run.period * kPitch;
    if (groups.has_short_runs(kSize)) {
      return pack<Bits<T>>(target, pitch, columns_, run.count,
                           {input, run.step, 0, groups.offsets()});
    }
    for (int r = 0; r < groups.run_count; ++r) {
      const Run& columns = groups.runs[r];
      pack<Bits<T>>(target + columns.first * kSize, pitch, columns.count, run.count,
                    {input + columns.offset, run.step, groups.step, nullptr});
    }
  }

  // Writes results whose rows in the block are `pitch` bytes apart.
  DMLOPS_NO_INLINE void unpack_results(std::int64_t begin, std::int64_t rows, std::int64_t pitch) {
    out_.for_each_long_run(begin, begin + rows,
                           [&](const ElementLoops::Run& run) { unpack_results(run, pitch); });
  }
  void unpack_results(const ElementLoops::Run& run, std::int64_t pitch) {
    auto& groups = written_;
    char* target = groups_.data[0] + run.offset;
    const char* source = buffer_ + run.first * pitch;
    const std::int64_t rows = run.count;
    pitch *= run.period;
    // Along the groups, if their elements are contiguous.
    if (groups.step != kSize && run.step == kSize && rows > 1) {
      const Source results = {source, kSize, pitch, nullptr};
      const std::int64_t bytes = rows * kSize;
      if (groups.is_uniform())
        return pack<Bits<T>>(target + groups.runs[0].offset, groups.step, rows, columns_, results);
      alignas(kVectorBytes) char packed[kBlockRows * kPitch + kSpill];
      pack<Bits<T>>(packed, bytes, rows, columns_, results, true);
      return copy_runs<true>(target, packed, groups.offsets(), columns_, bytes, bytes);
    }
    // Reversed groups are packed from their last one on.
    if (groups.step == -kSize && !groups.has_short_runs(kSize)) {
      for (int r = 0; r < groups.run_count; ++r) {
        const Run& columns = groups.runs[r];
        const std::int64_t last = (columns.count - 1) * kSize;
        pack<Bits<T>>(target + columns.offset - last, run.step, columns.count, rows,
                      {source + columns.first * kSize + last, pitch, -kSize, nullptr});
      }
      return;
    }
    for (std::int64_t row = 0; row < rows; ++row, target += run.step, source += pitch) {
      if (groups.has_short_runs(kSize)) {
        unpack<Bits<T>>(target, 0, groups.offsets(), source, columns_);
        continue;
      }
      for (int r = 0; r < groups.run_count; ++r)
        unpack_run(target, source, groups.runs[r], groups.step);
    }
  }

  void unpack_run(char* target, const char* source, const Run& run, std::int64_t step) const {
    target += run.offset;
    source += run.first * kSize;
    if (step != kSize) {
      unpack<Bits<T>>(target, step, nullptr, source, run.count);
    } else if (streaming()) {
      copy_streaming(target, source, run.count * kSize);
    } else {
      copy_run(target, source, run.count * kSize);
    }
  }

  const Reduction& groups_;
  std::int64_t sizes_[2][kMaxRank], strides_[2][kMaxRank];
  const ElementLoops in_, out_;  // with merged dimensions
  const int operand_;
  const bool overlaps_;
  const char* const input_;
  std::int64_t count_, columns_ = 0;
  bool overlaps_here_ = false;  // true if vectors of the selection overlap
  bool are_adjacent_ = false;   // true if selections are runs of groups
  std::int64_t packed_begin_ = kNone;
  OperandGroups<kWidth> read_, written_;  // the selected groups
  bool fits_caches_ = true;               // true if the caches are likely to keep these groups
  bool has_next_rows_ = false;            // true if there are rows that next_rows_ refers to
  const char* next_rows_[kBlockRows];
  alignas(kVectorBytes) char buffer_[kBlockRows * kPitch];
};

}  // namespace dmlops::DMLOPS_TARGET
