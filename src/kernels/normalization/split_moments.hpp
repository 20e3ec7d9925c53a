// Moments of groups whose elements lie side by side, such as those of group normalization with
// channels last. A column has the elements of one index of a group's outermost dimension.
#pragma once

#include "kernels/normalization/moment_columns.hpp"
#include "kernels/normalization/moment_rows.hpp"

namespace dmlops::DMLOPS_TARGET {

// Up to kTileGroups groups.
template <class T, class Formula>
class SplitMoments {
 public:
  SplitMoments(const Reduction& groups, const typename Formula::Parameters& parameters,
               const RowMoments<Formula>& moments)
      : groups_(groups),
        formula_(groups, parameters),
        moments_(moments.moments),
        columns_(with_loops(groups, rows_, kept_)) {
    const ReductionNest &elements = groups.elements, &kept = groups.kept;
    add(kept_, elements, 0);
    for (int d = 0; d < kept.rank; ++d) add(kept_, kept, d);
    for (int d = 1; d < elements.rank; ++d) copy(rows_, rows_.rank++, elements, d);
    columns_.first *= elements.sizes[0];
    columns_.end *= elements.sizes[0];
    shape_ = {columns_.first, elements.sizes[0], element_loops(columns_, 1).count()};
  }

  // True if add_up() is possible.
  bool have_blocks() const { return shape_.rows >= kSumBlock; }
  // Adds up the lanes of sweep s over each block of a sum.
  void add_up(int s, const BlockSums& blocks) const {
    for (std::int64_t k = 0; k < groups_.end - groups_.first; ++k) {
      if (!moments_.needs(s, k)) blocks.clear(k);  // since the lanes of all groups are added up
    }
    for (const Pass pass : {Pass::rows, Pass::heads}) {
      if (pass == Pass::heads && shape_.longest_head() == 0) return;
      for_each_part([&](int part) { add_up(s, blocks, pass, part); });
    }
  }
  void finish() const {
    for_each_part([&](int part) { finish(part); });
  }

 private:
  static void copy(ReductionNest& to, int target, const ReductionNest& from, int d) {
    to.sizes[target] = from.sizes[d];
    for (int o = 0; o < kReductionOperands; ++o) to.strides[o][target] = from.strides[o][d];
  }
  // Adds a dimension outside of the others, merged with the last one if it continues that.
  static void add(ReductionNest& to, const ReductionNest& from, int d) {
    const int last = to.rank - 1;
    bool continues = last >= 0;
    for (int o = 0; continues && o < kFirstGroupOperand; ++o)
      continues = from.strides[o][d] == to.strides[o][last] * to.sizes[last];
    if (continues) {
      to.sizes[last] *= from.sizes[d];
    } else {
      copy(to, to.rank++, from, d);
    }
  }

  template <class Compute>
  void for_each_part(const Compute& compute) const {
    DMLOPS_TARGET::for_each_part(groups_, groups_.parts, compute);
  }

  // Adds up a part: some lanes of some columns, each whole cache lines, of the input and of kept
  // sums.
  DMLOPS_NO_INLINE void add_up(int s, const BlockSums& blocks, Pass pass, int part) const {
    constexpr std::int64_t width = kLineBytes / sizeof(T), depth = kLineBytes / sizeof(double),
                           chunks = kMomentLanes / depth;
    const std::int64_t count = columns_.end - columns_.first, all = ceil_div(count, width) * chunks;
    const std::int64_t end = all * (part + 1) / groups_.parts;
    for (std::int64_t i = all * part / groups_.parts, next; i < end; i = next) {
      const std::int64_t first = i % chunks, whole = (end - i) / chunks;
      RowLanes lanes;
      next = i + chunks * whole;
      if (first != 0 || whole == 0) {
        next = min(end, i + chunks - first);
        lanes = {first * depth, (first + next - i) * depth, kMomentLanes};
      }
      Reduction columns = columns_;
      columns.first = columns_.first + i / chunks * width;
      columns.end = min(columns_.end, columns_.first + ceil_div(next, chunks) * width);
      add_up(s, blocks, pass, columns, lanes);
    }
  }
  DMLOPS_NO_INLINE void add_up(int s, const BlockSums& blocks, Pass pass, const Reduction& columns,
                               const RowLanes& lanes) const {
    SplitColumnSums<Formula::kSums, typename Formula::Vector> sums(shape_, blocks, pass);
    MomentColumns<T, Formula>(columns, formula_).add_up_split(s, sums, lanes, moments_, shape_);
  }
  DMLOPS_NO_INLINE void finish(int part) const {
    MomentColumns<T, Formula>(columns_, formula_).finish_split(part, moments_, shape_);
  }

  const Reduction& groups_;
  const Formula formula_;
  const GroupMoments<Formula, kTileGroups>& moments_;
  ReductionNest kept_, rows_;  // the columns, and their elements
  Reduction columns_;
  SplitGroups shape_;
};

}  // namespace dmlops::DMLOPS_TARGET
