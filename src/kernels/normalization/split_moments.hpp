// Moments of groups whose elements lie side by side, such as those of group normalization with
// channels last, down columns: one for each index of the groups' outermost dimension.
#pragma once

#include "kernels/normalization/moment_columns.hpp"

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
        columns_{rows_, kept_} {
    const ReductionNest &elements = groups.elements, &kept = groups.kept;
    add(kept_, elements, 0);
    for (int d = 0; d < kept.rank; ++d) add(kept_, kept, d);
    for (int d = 1; d < elements.rank; ++d) copy(rows_, rows_.rank++, elements, d);
    std::memcpy(columns_.data, groups.data, sizeof groups.data);
    shape_ = {elements.sizes[0], element_loops(columns_, 1).count()};
    columns_.first = groups.first * shape_.columns;
    columns_.end = groups.end * shape_.columns;
    columns_.streaming = groups.streaming;
    columns_.parts = groups.parts;
  }

  // True if add_up() is possible.
  bool have_blocks() const { return shape_.rows >= kSumBlock; }
  // Adds up the lanes of sweep s over each block of a sum.
  void add_up(int s, const BlockSums& blocks) const {
    for (std::int64_t k = 0; k < groups_.end - groups_.first; ++k) {
      if (!moments_.needs(s, k)) blocks.clear(k);  // are added up, too
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
    DMLOPS_TARGET::for_each_part(groups_, columns_.parts, compute);
  }
  DMLOPS_NO_INLINE void add_up(int s, const BlockSums& blocks, Pass pass, int part) const {
    RowLanes lanes;
    if (columns_.parts > 1) {
      lanes = {kMomentLanes * part / columns_.parts, kMomentLanes * (part + 1) / columns_.parts,
               kMomentLanes};
    }
    SplitColumnSums<Formula::kSums, typename Formula::Vector> sums(shape_, blocks, pass);
    MomentColumns<T, Formula> columns(columns_, formula_);
    columns.add_up_split(s, sums, lanes, moments_, shape_.columns);
  }
  DMLOPS_NO_INLINE void finish(int part) const {
    MomentColumns<T, Formula> columns(columns_, formula_);
    columns.finish_split(part, moments_, shape_.columns);
  }

  const Reduction& groups_;
  const Formula formula_;
  const GroupMoments<Formula, kTileGroups>& moments_;
  ReductionNest kept_, rows_;  // the columns, and their elements
  Reduction columns_;
  SplitGroups shape_;
};

}  // namespace dmlops::DMLOPS_TARGET
