// Reductions of normalizations: along rows or down columns, as the layout requires, or in parts.
#pragma once

#include "kernels/normalization/moment_columns.hpp"
#include "kernels/normalization/moment_parts.hpp"

namespace dmlops::DMLOPS_TARGET {

// Shorter groups, whose elements are loaded at once, are computed down columns unless there are few
// groups.
constexpr std::int64_t kMomentsAlongRows = kBlockRows + 1;

// True if the groups, of elements of `size` bytes, are computed along rows.
DMLOPS_INLINE bool fills_moment_rows(const Reduction& groups, std::int64_t size) {
  const ElementLoops in = element_loops(groups, 1);
  if (groups.stage != Reduction::kAllStages || leave_lanes_empty(groups)) return true;
  if (in.count() < kMomentsAlongRows) return false;
  // Groups that are nearer than the elements of a group share cache lines.
  const bool fits_tile = in.count() * size <= GroupTiles::kWholeBytes;
  const auto nearer = [&](int operand) {
    const std::int64_t step = groups.kept.rank == 0 ? 0 : abs(groups.kept.strides[operand][0]);
    const ElementLoops loops = element_loops(groups, operand);
    return step != 0 &&
           step < min(kLineBytes, fits_tile ? nearest_elements(loops) : abs(loops.step()));
  };
  const std::int64_t count = groups.end - groups.first;
  return !nearer(1) && !(nearer(0) && in.run() < kGroupStep && count >= kGroupStep);
}

// The functions below are not inlined, so that their buffers share the stack.

template <class T, class Formula>
DMLOPS_NO_INLINE void reduce_along_rows(const Reduction& reduction,
                                        const typename Formula::Parameters& parameters) {
  RowMoments<Formula> groups;
  MomentRows<Formula> rows(reduction, parameters, groups);
  reduce_rows<T>(reduction, rows);
}

template <class T, class Formula>
DMLOPS_NO_INLINE void reduce_down_columns(const Reduction& reduction, const Formula& formula) {
  MomentColumns<T, Formula>(reduction, formula).run();
}

template <class T, class Formula>
DMLOPS_NO_INLINE void reduce_in_parts(const Reduction& reduction,
                                      const typename Formula::Parameters& parameters) {
  MomentParts<T, Formula>(reduction, parameters).run();
}

// Computes up to kPartGroups groups that lie side by side: a part has some lanes of their sums.
template <class T, class Formula>
DMLOPS_NO_INLINE void reduce_by_lanes(const Reduction& reduction, const Formula& formula) {
  static_assert(Formula::kSweeps == 2 && Formula::kSums <= kMaxPartSums);
  const auto run_part = [&](int stage, int part) {
    MomentColumns<T, Formula> columns(reduction, formula);
    columns.run_part(stage, part);
  };
  for (int stage = 0; stage <= Formula::kSweeps; ++stage)
    for_each_part(reduction, reduction.parts, [&](int part) { run_part(stage, part); });
  run_part(Formula::kSweeps + 1, 0);
}

template <class T, class Formula>
void reduce_moments(const Reduction& reduction, const void* given) {
  const auto& parameters = *static_cast<const typename Formula::Parameters*>(given);
  if (reduction.split || (reduction.parts > 1 && !reduction.by_lanes))
    return reduce_in_parts<T, Formula>(reduction, parameters);
  if (reduction.parts == 1 && fills_moment_rows(reduction, sizeof(T)))
    return reduce_along_rows<T, Formula>(reduction, parameters);
  const Formula formula(reduction, parameters);
  if (reduction.parts > 1) return reduce_by_lanes<T>(reduction, formula);
  reduce_down_columns<T>(reduction, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
