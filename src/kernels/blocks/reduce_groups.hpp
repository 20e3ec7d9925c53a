// Runs the formula of a reduction over groups, along rows.
#pragma once

#include "kernels/blocks/group_tiles.hpp"

namespace dmlops::DMLOPS_TARGET {

// Returns the lanes of a group's sums of a sweep, where groups are reduced in stages.
inline double* sums_of(const GroupTiles& tiles, int sweep, std::int64_t k) {
  return reinterpret_cast<double*>(tiles.group_operand(kGroupSums + sweep, k));
}

// Adds the elements [from, to) of the selected groups that need sweep s. Aligned, since the place
// of the loops within cache lines would change the time by up to 12 %.
template <class Formula>
DMLOPS_NO_INLINE __attribute__((aligned(64))) void sweep_tiles(
    int s, GroupTiles& tiles, Formula& formula, typename Formula::State* states, const bool* needed,
    std::int64_t groups, std::int64_t from, std::int64_t to) {
  const auto sweep = [&](std::int64_t begin, std::int64_t length) DMLOPS_LAMBDA_INLINE {
    tiles.load(formula.reads(s), begin, length, tiles.shortest_summed());
    for (std::int64_t k = 0; k < groups; ++k) {
      if (needed[k]) formula.sweep(s, states, tiles, k, begin);
    }
  };
  tiles.for_each_tile(from, to, tiles.tile_length(formula.reads(s)), sweep);
}

// Writes the results of the elements [from, to) of the selected groups.
template <class Formula>
DMLOPS_NO_INLINE void finish_tiles(GroupTiles& tiles, Formula& formula, std::int64_t groups,
                                   std::int64_t from, std::int64_t to) {
  unsigned int constant = 0;  // operands of which runs may have a single element
  if constexpr (Formula::kHasSums) constant = Formula::kConstantInRuns;
  const auto finish = [&](std::int64_t begin, std::int64_t length) DMLOPS_LAMBDA_INLINE {
    tiles.load(formula.reads(Formula::kSweeps) | 1u, begin, length, GroupTiles::kShortestResults,
               constant);
    for (std::int64_t k = 0; k < groups; ++k) formula.finish(tiles, k, begin);
    tiles.store(begin, length);
  };
  tiles.for_each_tile(from, to, tiles.tile_length(), finish);
}

// Writes the results of `groups` groups from `first` on, whose elements are visited in the order of
// `elements`.
template <class T, class Formula>
DMLOPS_NO_INLINE void finish_in_order(const Reduction& reduction, const ReductionNest& elements,
                                      Formula& formula, std::int64_t first, std::int64_t groups) {
  Reduction range = sorted(reduction, elements);
  range.end = first + groups;
  GroupTiles tiles(range, sizeof(T));
  for (std::int64_t k = 0, count; k < groups; k += count) {
    count = tiles.select(first + k);
    formula.set_first(k);
    finish_tiles(tiles, formula, count, 0, tiles.count());
  }
  formula.set_first(0);
}

// Runs a formula over the groups: kSweeps sweeps over the elements of the groups that need them,
// then finish(). The formula keeps the numbers of up to kTileGroups groups, and is called for all
// of them at once where no elements are read. Bit o of reads(s) is set if sweep s reads operand o;
// reads(kSweeps) is for finish(). kHasSums: groups can be reduced in stages, by their `sums`.
template <class T, class Formula>
DMLOPS_INLINE void reduce_groups(const Reduction& reduction, Formula& formula) {
  ReductionNest in_memory;
  bool sorts = false;  // true if results are computed in the order of memory, unlike sums
  if constexpr (Formula::kHasSums) {
    sorts =
        element_loops(reduction, 1).count() * std::int64_t{sizeof(T)} > GroupTiles::kWholeBytes &&
        reduction.stage == Reduction::kAllStages && sort_elements(reduction, sizeof(T), in_memory);
  }
  const Reduction tiled = sorts ? restricted(reduction, formula.reads(0)) : reduction;
  GroupTiles tiles(tiled, sizeof(T));
  typename Formula::State states[kTileGroups];
  for (std::int64_t first = reduction.first, groups; first < reduction.end; first += groups) {
    groups = tiles.select(first);
    formula.begin(states, tiles, groups);
    for (int s = 0; s < Formula::kSweeps; ++s) {
      bool needed[kTileGroups], any = false;
      for (std::int64_t k = 0; k < groups; ++k) {
        needed[k] = formula.needs(s, k);
        any = any || needed[k];
      }
      if (!any) continue;
      if constexpr (Formula::kHasSums) {
        if (s < reduction.stage) {
          for (std::int64_t k = 0; k < groups; ++k) {
            if (needed[k]) states[k].sums.load_lanes(sums_of(tiles, s, k));
          }
          formula.end(s, states, groups, reduction.group_elements);
          continue;
        }
      }
      sweep_tiles(s, tiles, formula, states, needed, groups, 0, tiles.count());
      if constexpr (Formula::kHasSums) {
        if (s == reduction.stage) {
          for (std::int64_t k = 0; k < groups; ++k) {
            if (needed[k]) states[k].sums.store_lanes(sums_of(tiles, s, k));
          }
          break;
        }
      }
      formula.end(s, states, groups, tiles.count());
    }
    if (reduction.stage >= 0 && reduction.stage < Formula::kSweeps) continue;
    formula.prepare(groups);
    if constexpr (Formula::kHasSums) {
      if (sorts) finish_in_order<T>(reduction, in_memory, formula, first, groups);
    }
    if (!sorts) finish_tiles(tiles, formula, groups, 0, tiles.count());
    formula.report(tiles, groups);  // at the end, since outputs may share the memory of inputs
  }
  if (tiles.streams()) finish_non_temporal();
}

}  // namespace dmlops::DMLOPS_TARGET
