// Moments of few groups, whose sums are kept block by block: in parts, or split into columns.
#pragma once

#include "kernels/blocks/group_parts.hpp"
#include "kernels/normalization/split_moments.hpp"

namespace dmlops::DMLOPS_TARGET {

// Up to kPartGroups groups. The bits are those of reduce_rows().
template <class T, class Formula>
class MomentParts {
 public:
  using Parameters = typename Formula::Parameters;

  MomentParts(const Reduction& groups, const Parameters& parameters)
      : groups_(groups),
        parameters_(parameters),
        sorts_(!groups.split && sort_elements(groups, sizeof(T), in_memory_)),
        of_sums_{groups.split || sorts_ ? restricted(groups, rows().reads(0)) : groups},
        of_results_{with_loops(groups, in_memory_, groups.kept)} {}

  void run() {
    begin();
    const auto add_parts = [this](int s, const BlockSums& sums) {
      for_each_part(groups_, groups_.parts, [&](int part) { add_up(s, sums, part); });
    };
    if (groups_.split) {
      const SplitMoments<T, Formula> columns(groups_, parameters_, moments_);
      reduce([&](int s, const BlockSums& sums) {
        if (columns.have_blocks()) {
          columns.add_up(s, sums);
        } else {
          add_parts(s, sums);
        }
      });
      columns.finish();
    } else {
      reduce(add_parts);
      prepare();
      for_each_part(groups_, groups_.parts, [&](int part) { finish(part); });
    }
    report();
  }

 private:
  using GroupRows = MomentRows<Formula>;
  using State = typename GroupRows::State;
  static constexpr std::int64_t kBlockLanes = Formula::kSums * kMomentLanes;
  static_assert(kPartGroups <= kTileGroups);

  std::int64_t count() const { return groups_.end - groups_.first; }
  GroupRows rows() { return GroupRows(groups_, parameters_, moments_); }

  // The selections of groups that share tiles, and the number of elements at whose multiples parts
  // begin.
  struct Ranges {
    Reduction groups;
    std::int64_t unit = 0, selections = 0;
    std::int64_t firsts[kPartGroups] = {};  // the first group of each selection
  };

  // Sets ranges, and calls visit(tiles, first, count) for each selection.
  template <class Visit>
  DMLOPS_NO_INLINE void begin(Ranges& ranges, const Visit& visit) {
    GroupTiles tiles(ranges.groups, sizeof(T));
    elements_ = tiles.count();
    ranges.unit = kSumBlock * tiles.part_unit();
    for (std::int64_t first = groups_.first, selected; first < groups_.end; first += selected) {
      selected = tiles.select(first);
      ranges.firsts[ranges.selections++] = first;
      visit(tiles, first, selected);
    }
  }
  // Sets the numbers of the groups.
  DMLOPS_NO_INLINE void begin() {
    GroupRows rows = this->rows();
    begin(of_sums_, [&](const GroupTiles& tiles, std::int64_t first, std::int64_t selected) {
      rows.set_first(first - groups_.first);
      rows.load(tiles, selected);
    });
    rows.begin(count());
    if (sorts_) begin(of_results_, [](const GroupTiles&, std::int64_t, std::int64_t) {});
  }

  // Computes the sweeps that groups need; add_blocks(s, sums) adds up the blocks of a sweep's sums.
  template <class AddBlocks>
  void reduce(const AddBlocks& add_blocks) {
    const BlockSums sums(groups_, elements_, kBlockLanes);
    for (int s = 0; s < Formula::kSweeps; ++s) {
      if (!is_needed(s)) continue;
      add_blocks(s, sums);
      sums.add_up();
      end(s, sums);
    }
  }

  DMLOPS_NO_INLINE void prepare() { rows().prepare(count()); }

  DMLOPS_NO_INLINE bool is_needed(int s) {
    const GroupRows rows = this->rows();
    for (std::int64_t g = 0; g < count(); ++g) {
      if (rows.needs(s, g)) return true;
    }
    return false;
  }

  // Calls visit(tiles, count, number of the first group, from, to) for the elements [from, to) of
  // the groups of each selection that belong to a part.
  template <class Visit>
  void for_each_range(const Ranges& ranges, int part, const Visit& visit) {
    GroupTiles tiles(ranges.groups, sizeof(T));
    const std::int64_t unit = ranges.unit, units = ceil_div(elements_, unit),
                       all = ranges.selections * units;
    const std::int64_t end = all * (part + 1) / groups_.parts;
    for (std::int64_t i = all * part / groups_.parts, next; i < end; i = next) {
      const std::int64_t selection = i / units, skipped = selection * units;
      next = min(end, skipped + units);
      const std::int64_t selected = tiles.select(ranges.firsts[selection]);
      visit(tiles, ranges.firsts[selection] - groups_.first, selected, (i - skipped) * unit,
            min(elements_, (next - skipped) * unit));
    }
    if (tiles.streams()) finish_non_temporal();
  }

  void add_up(int s, const BlockSums& sums, int part) {
    GroupRows rows = this->rows();
    State states[kTileGroups];
    for_each_range(of_sums_, part,
                   [&](GroupTiles& tiles, std::int64_t first, std::int64_t selected,
                       std::int64_t from, std::int64_t to) {
                     bool needed[kTileGroups];
                     rows.set_first(first);
                     for (std::int64_t k = 0; k < selected; ++k) {
                       states[k].clear();
                       states[k].keep_blocks(sums.lanes(first + k, from / kSumBlock));
                       needed[k] = rows.needs(s, k);
                       if (needed[k]) continue;
                       // The lanes of all groups are added up.
                       for (std::int64_t b = from / kSumBlock; b * kSumBlock < to; ++b)
                         std::memset(sums.lanes(first + k, b), 0, kBlockLanes * sizeof(double));
                     }
                     sweep_tiles(s, tiles, rows, states, needed, selected, from, to);
                     for (std::int64_t k = 0; k < selected; ++k) states[k].end_blocks();
                   });
  }

  DMLOPS_NO_INLINE void end(int s, const BlockSums& sums) {
    State states[kTileGroups];
    for (std::int64_t g = 0; g < count(); ++g) states[g].load_lanes(sums.total(g));
    rows().end(s, states, count(), elements_);
  }

  void finish(int part) {
    GroupRows rows = this->rows();
    const Ranges& ranges = sorts_ ? of_results_ : of_sums_;
    for_each_range(ranges, part,
                   [&](GroupTiles& tiles, std::int64_t first, std::int64_t selected,
                       std::int64_t from, std::int64_t to) {
                     rows.set_first(first);
                     finish_tiles(tiles, rows, selected, from, to);
                   });
  }

  DMLOPS_NO_INLINE void report() {
    GroupTiles tiles(groups_, sizeof(T));
    GroupRows rows = this->rows();
    for (std::int64_t first = groups_.first, selected; first < groups_.end; first += selected) {
      selected = tiles.select(first);
      rows.set_first(first - groups_.first);
      rows.report(tiles, selected);
    }
  }

  const Reduction& groups_;
  const Parameters& parameters_;
  ReductionNest in_memory_;  // the elements in the order of memory
  const bool sorts_;         // true if the results are computed in it
  Ranges of_sums_, of_results_;
  std::int64_t elements_ = 0;  // of a group
  RowMoments<Formula> moments_;
};

}  // namespace dmlops::DMLOPS_TARGET
