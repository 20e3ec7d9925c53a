// Sums of groups that have several columns each, in the order of GroupSum.
//
// The columns of a group follow each other in that order, but are added up row by row. So the lanes
// of each block are kept until all of the group's blocks can be added up. A block that begins in
// one column and ends in the next one is continued after all rows: see Pass.
#pragma once

#include "kernels/blocks/column_vectors.hpp"
#include "kernels/blocks/group_parts.hpp"
#include "kernels/simd/doubles.hpp"

namespace dmlops::DMLOPS_TARGET {

// The shape of groups that are split into columns.
struct SplitGroups {
  std::int64_t first;    // column
  std::int64_t columns;  // of a group
  std::int64_t rows;     // elements of a column; where sums are added up, at least a block of them

  // Returns the number of elements of column c in the block in which the previous column ends.
  std::int64_t head(std::int64_t c) const { return (kSumBlock - c * rows % kSumBlock) % kSumBlock; }
  // Returns the length of the longest head; lengths repeat after kSumBlock columns at most.
  std::int64_t longest_head() const {
    std::int64_t longest = 0;
    for (std::int64_t c = 1; c < min(columns, kSumBlock); ++c) longest = max(longest, head(c));
    return longest;
  }
};

// A first pass adds up all rows, without the heads of columns; a second one adds up the heads.
enum class Pass : std::uint8_t { rows, heads };

// kSums sums of each of up to 64 columns; V as in MomentColumnSums.
template <int kSums, class V>
class SplitColumnSums {
 public:
  SplitColumnSums(const SplitGroups& groups, const BlockSums& blocks, Pass pass)
      : groups_(groups), blocks_(blocks), pass_(pass) {}

  // Selects the columns [begin, begin + count); column_of(c) returns the first column of the vector
  // at begin + c, which may overlap the previous vector.
  template <class ColumnOf>
  void select(std::int64_t begin, std::int64_t count, const ColumnOf& column_of) {
    for_each_vector(count, [&](std::int64_t c) {
      next_[c / kFloatLanes] = kNever;
      const std::int64_t first = column_of(c), past = begin + c - first;
      for (std::int64_t j = 0; j < kFloatLanes; ++j)
        select_column(c + j, first + j, j >= past && first + j < begin + count);
    });
  }

  // As MomentColumnSums::add_up(), without totals; sums before kFirst stay 0.
  template <std::int64_t kRows, int kFirst, class IsNeeded, class Load, class MakeTerms>
  DMLOPS_INLINE void add_up(std::int64_t count, std::int64_t columns, const RowLanes& lanes,
                            const IsNeeded& is_needed, const Load& load,
                            const MakeTerms& make_terms) {
    const std::int64_t all = pass_ == Pass::rows ? count : groups_.longest_head();
    lanes_begin_ = lanes.first;
    lanes_end_ = min(lanes.end, kMomentLanes);
    for_each_vector(columns, [&](std::int64_t c) { begin(c); });
    for (std::int64_t begin = 0; begin < all; begin += kRows) {
      load(begin);
      const std::int64_t end = min(begin + kRows, all);
      for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        if (!is_needed(c)) return;
        const auto add = make_terms(c);
        for (std::int64_t from = begin, to; from < end; from = to) {
          to = min(end, next_[c / kFloatLanes]);
          add_rows(lanes_[c / kFloatLanes], from - begin, to - begin, add);
          if (to == next_[c / kFloatLanes]) end_blocks(c);
        }
      });
    }
  }

 private:
  static constexpr std::int64_t kNever = INT64_MAX;
  using Lane = std::conditional_t<std::is_same_v<V, f32x>, float, double>;

  // The block of a sum that a column is in.
  struct Column {
    std::int64_t end;    // the row at which it ends
    std::int64_t shift;  // from the lanes of rows to those of the sum
    double* lanes;       // [kSums][kMomentLanes]
    bool is_kept;        // false for heads in the first pass
  };

  void select_column(std::int64_t i, std::int64_t column, bool exists) {
    if (!exists) {
      columns_[i] = {kNever, 0, nullptr, false};
      return;
    }
    const std::int64_t c = column % groups_.columns, first = c * groups_.rows;
    const std::int64_t head = groups_.head(c);
    double* const lanes = blocks_.lanes(column / groups_.columns, first / kSumBlock);
    const bool of_rows = pass_ == Pass::rows;
    const std::int64_t block_end = head > 0 ? head : of_rows ? kSumBlock : kNever;
    columns_[i] = {block_end, first % kMomentLanes, lanes, of_rows ? head == 0 : head > 0};
    next_[i / kFloatLanes] = min(next_[i / kFloatLanes], block_end);
  }

  // Calls visit(the lane's sum in the vector, its place among the kept ones) for the lanes of a
  // column.
  template <class Visit>
  DMLOPS_INLINE void for_each_lane(std::int64_t i, const Visit& visit) {
    const Column& column = columns_[i];
    char* const sums = reinterpret_cast<char*>(lanes_[i / kFloatLanes]) +
                       i % kFloatLanes * std::int64_t{sizeof(Lane)};
    for (std::int64_t lane = lanes_begin_; lane < lanes_end_; ++lane) {
      const std::int64_t place = (lane + column.shift) % kMomentLanes;
      for (int s = 0; s < kSums; ++s)
        visit(sums + (lane * kSums + s) * std::int64_t{sizeof(V)},
              column.lanes + s * kMomentLanes + place);
    }
  }

  // Sets the lanes of a vector of columns: to 0, or to those of the blocks that heads continue.
  void begin(std::int64_t c) {
    std::memset(lanes_[c / kFloatLanes], 0, sizeof lanes_[0]);
    for (std::int64_t i = c; pass_ == Pass::heads && i < c + kFloatLanes; ++i) {
      if (!columns_[i].is_kept) continue;
      for_each_lane(i, [](char* sum, const double* kept) {
        const auto lane = static_cast<Lane>(*kept);
        std::memcpy(sum, &lane, sizeof lane);
      });
    }
  }

  template <class Add>
  DMLOPS_INLINE void add_rows(V (&lanes)[kMomentLanes][kSums], std::int64_t begin, std::int64_t end,
                              const Add& add) {
    for (std::int64_t lane = lanes_begin_; lane < lanes_end_; ++lane) {
      std::int64_t r = begin + (lane - begin) % kMomentLanes;
      if (r < begin) r += kMomentLanes;
      V sums[kSums];
#pragma GCC unroll 16
      for (int s = 0; s < kSums; ++s) sums[s] = lanes[lane][s];
      for (; r < end; r += kMomentLanes) add(r, sums);
#pragma GCC unroll 16
      for (int s = 0; s < kSums; ++s) lanes[lane][s] = sums[s];
    }
  }

  // Keeps the lanes of the columns of a vector whose blocks end, and begins their next blocks.
  DMLOPS_NO_INLINE void end_blocks(std::int64_t c) {
    const std::int64_t row = next_[c / kFloatLanes];
    std::int64_t next = kNever;
    for (std::int64_t i = c; i < c + kFloatLanes; ++i) {
      Column& column = columns_[i];
      if (column.end == row) {
        const bool is_kept = column.is_kept;
        for_each_lane(i, [is_kept](char* sum, double* kept) DMLOPS_LAMBDA_INLINE {
          Lane lane;
          std::memcpy(&lane, sum, sizeof lane);
          if (is_kept) *kept = static_cast<double>(lane);
          std::memset(sum, 0, sizeof lane);
        });
        column.is_kept = true;
        column.lanes += kSums * kMomentLanes;
        column.end =
            pass_ == Pass::rows && row < groups_.rows ? min(row + kSumBlock, groups_.rows) : kNever;
      }
      next = min(next, column.end);
    }
    next_[c / kFloatLanes] = next;
  }

  const SplitGroups& groups_;
  const BlockSums& blocks_;
  const Pass pass_;
  std::int64_t lanes_begin_ = 0, lanes_end_ = kMomentLanes;  // those that are added up
  Column columns_[kColumns];
  std::int64_t next_[kColumns / kFloatLanes];  // the row at which the next block of a vector ends
  alignas(kVectorBytes) V lanes_[kColumns / kFloatLanes][kMomentLanes][kSums];  // of the blocks
};

}  // namespace dmlops::DMLOPS_TARGET
