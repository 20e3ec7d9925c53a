// Moments of few long groups in parts: the sums of some blocks of elements, and their results.
#pragma once

#include "kernels/blocks/group_parts.hpp"
#include "kernels/blocks/group_sum.hpp"
#include "kernels/blocks/reduce_groups.hpp"

namespace dmlops::DMLOPS_TARGET {

// Up to kPartGroups groups. The bits are those of reduce_groups().
template <class T, class Formula>
class MomentParts {
 public:
  using Parameters = typename Formula::Parameters;

  MomentParts(const Reduction& groups, const Parameters& parameters)
      : groups_(groups), parameters_(parameters) {}

  void run() {
    begin();
    const BlockSums sums(groups_, elements_, kLanes);
    for (int s = 0; s < Formula::kSweeps; ++s) {
      if (!is_needed(s)) continue;
      for_each_part(groups_, groups_.parts, [&](int part) { add_up(s, sums, part); });
      sums.add_up();
      end(s, sums);
    }
    for_each_part(groups_, groups_.parts, [&](int part) { finish(part); });
    report();
  }

 private:
  using State = typename Formula::State;
  using Numbers = typename Formula::template Numbers<double>;
  static constexpr std::int64_t kLanes = Formula::kSums * kMomentLanes;

  // Sets the numbers of the groups, and the selections of groups that share tiles.
  DMLOPS_NO_INLINE void begin() {
    GroupTiles tiles(groups_, sizeof(T));
    Formula formula(groups_, parameters_);
    elements_ = tiles.count();
    unit_ = kSumBlock * tiles.part_unit();
    for (std::int64_t first = groups_.first, count; first < groups_.end; first += count) {
      count = tiles.select(first);
      firsts_[selections_++] = first;
      for (std::int64_t k = 0; k < count; ++k) {
        State state;
        formula.begin(state, tiles, k);
        numbers_[first - groups_.first + k] = state;
      }
    }
  }

  bool is_needed(int s) const {
    const Formula formula(groups_, parameters_);
    for (std::int64_t g = 0; g < groups_.end - groups_.first; ++g) {
      if (formula.needs(s, numbers_[g])) return true;
    }
    return false;
  }

  // Calls visit(tiles, count, numbers of the first group, its number, from, to) for the elements
  // [from, to) of the groups of each selection that belong to a part.
  template <class Visit>
  void for_each_range(int part, const Visit& visit) {
    GroupTiles tiles(groups_, sizeof(T));
    const std::int64_t units = (elements_ + unit_ - 1) / unit_, all = selections_ * units;
    const std::int64_t end = all * (part + 1) / groups_.parts;
    for (std::int64_t i = all * part / groups_.parts, next; i < end; i = next) {
      const std::int64_t selection = i / units, skipped = selection * units;
      next = min(end, skipped + units);
      const std::int64_t count = tiles.select(firsts_[selection]);
      visit(tiles, firsts_[selection] - groups_.first, count, (i - skipped) * unit_,
            min(elements_, (next - skipped) * unit_));
    }
    if (tiles.streams()) finish_non_temporal();
  }

  void add_up(int s, const BlockSums& sums, int part) {
    Formula formula(groups_, parameters_);
    State states[kTileGroups];
    for_each_range(part, [&](GroupTiles& tiles, std::int64_t first, std::int64_t count,
                             std::int64_t from, std::int64_t to) {
      bool needed[kTileGroups];
      for (std::int64_t k = 0; k < count; ++k) {
        static_cast<Numbers&>(states[k]) = numbers_[first + k];
        states[k].sums.clear();
        states[k].sums.keep_blocks(sums.lanes(first + k, from / kSumBlock));
        needed[k] = formula.needs(s, states[k]);
      }
      sweep_tiles(s, tiles, formula, states, needed, count, from, to);
      for (std::int64_t k = 0; k < count; ++k) states[k].sums.end_blocks();
    });
  }

  void end(int s, const BlockSums& sums) {
    const Formula formula(groups_, parameters_);
    for (std::int64_t g = 0; g < groups_.end - groups_.first; ++g) {
      if (!formula.needs(s, numbers_[g])) continue;
      State state;
      static_cast<Numbers&>(state) = numbers_[g];
      state.sums.load_lanes(sums.total(g));
      formula.end(s, state, elements_);
      numbers_[g] = state;
    }
  }

  void finish(int part) {
    Formula formula(groups_, parameters_);
    State states[kTileGroups];
    for_each_range(part, [&](GroupTiles& tiles, std::int64_t first, std::int64_t count,
                             std::int64_t from, std::int64_t to) {
      for (std::int64_t k = 0; k < count; ++k)
        static_cast<Numbers&>(states[k]) = numbers_[first + k];
      finish_tiles(tiles, formula, states, count, from, to);
    });
  }

  DMLOPS_NO_INLINE void report() {
    GroupTiles tiles(groups_, sizeof(T));
    const Formula formula(groups_, parameters_);
    for (std::int64_t first = groups_.first, count; first < groups_.end; first += count) {
      count = tiles.select(first);
      for (std::int64_t k = 0; k < count; ++k)
        formula.report(numbers_[first - groups_.first + k], tiles, k);
    }
  }

  const Reduction& groups_;
  const Parameters& parameters_;
  std::int64_t elements_ = 0,
               unit_ = 0;  // of a group; parts begin at multiples of `unit_` elements
  std::int64_t selections_ = 0;
  std::int64_t firsts_[kPartGroups];  // the first group of each selection
  Numbers numbers_[kPartGroups];
};

}  // namespace dmlops::DMLOPS_TARGET
