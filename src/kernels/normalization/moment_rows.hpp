// Moments along rows.
//
// Sums are float64, and for float16 elements float32 within a block. The first sweep adds elements
// and exact products. If the mean is far from 0, where the variance would lose digits as a
// difference of two sums, a second sweep adds the deviations from the mean.
#pragma once

#include "kernels/blocks/sweep_tiles.hpp"
#include "kernels/normalization/group_sum.hpp"
#include "kernels/normalization/moment_operands.hpp"

namespace dmlops::DMLOPS_TARGET {

// The numbers of groups along rows.
template <class Formula>
struct RowMoments {
  using Factors = typename Formula::Factors;

  GroupMoments<Formula, kTileGroups> moments;
  Factors factors[kTileGroups / kLanes<f64x>];
  f64x sums[kTileGroups][Formula::kSums];  // of a sweep over a tile's groups, folded to a vector
  // The numbers of the group operands that the formula reads, at the index of the operand.
  alignas(kVectorBytes) double operands[Formula::kGroupOperandsEnd][kTileGroups];
};

// A formula of moments along rows, whose results are those of all groups, or of parts of few.
template <class Formula>
class MomentRows : public Formula {
  using T = typename Formula::Element;
  using Vector = typename Formula::Vector;
  using Formula::kSecond;

 public:
  using State = GroupSum<Formula::kSums, Vector>;

  MomentRows(const Reduction& reduction, const typename Formula::Parameters& parameters,
             RowMoments<Formula>& groups)
      : Formula(reduction, parameters), reduction_(reduction), groups_(groups) {}

  // From now on, group k of a tile is group first + k of RowMoments.
  void set_first(std::int64_t first) { first_ = first; }

  void begin(State* states, const GroupTiles& tiles, std::int64_t count) {
    folds_ = tiles.has_whole_groups() && reduction_.stage == Reduction::kAllStages;
    for (std::int64_t k = 0; k < count; ++k) {
      if (!folds_ || k == 0) states[k].clear();
      // end() computes whole vectors, which include groups that do not need the sweep.
      for (f64x& sum : groups_.sums[k]) sum = f64x{};
    }
    load(tiles, count);
    begin(count);
  }
  // Loads the numbers of the selected groups from the group operands. Lanes without a group, which
  // are computed with, are set to 0 with the first selection.
  void load(const GroupTiles& tiles, std::int64_t count) {
    this->for_each_group_operand([&](int operand) {
      double* const numbers = groups_.operands[operand];
      for (int c = 0; first_ == 0 && c < kTileGroups; c += kLanes<f64x>)
        DMLOPS_TARGET::store(numbers + c, f64x{});  // faster than a small memset
      for (std::int64_t k = 0; k < count; ++k)
        numbers[first_ + k] = load_number<T>(tiles.group_operand(operand, k));
    });
  }
  void begin(std::int64_t count) { groups_.moments.begin(*this, 0, count, loaded()); }

  DMLOPS_INLINE bool needs(int s, std::int64_t k) const {
    return this->reduces() && groups_.moments.needs(s, first_ + k);
  }

  // Adds the terms of sweep s over group k in the loaded tile.
  DMLOPS_INLINE void sweep(int s, State* states, const GroupTiles& tiles, std::int64_t k,
                           std::int64_t) const {
    State& state = states[folds_ ? 0 : k];
    const auto add = [&](const auto& add_terms) DMLOPS_LAMBDA_INLINE {
      state.add(Runs<std::decay_t<decltype(add_terms)>>(*this, s, tiles, k, add_terms));
    };
    if (s == 0) {
      with_constant(this->sums_elements(), [&](auto sums_elements) DMLOPS_LAMBDA_INLINE {
        add([](const At& at, Vector* sums) DMLOPS_LAMBDA_INLINE {
          Formula::template add_products<decltype(sums_elements)::value>(at, sums);
        });
      });
    } else {
      const typename Formula::W::Minus minus_center(
          groups_.moments.number(first_ + k, &Formula::Numbers::center));
      add([&](const At& at, Vector* sums)
              DMLOPS_LAMBDA_INLINE { Formula::add_deviations(minus_center, at, sums); });
    }
    if (folds_) fold(state, k);
  }
  // Ends sweep s of the groups that need it, which have `elements`.
  void end(int s, State* states, std::int64_t count, std::int64_t elements) {
    for (std::int64_t k = 0; !folds_ && k < count; ++k) fold(states[k], k);
    groups_.moments.end(*this, s, 0, count, elements,
                        [&](int sum, std::int64_t c) DMLOPS_LAMBDA_INLINE {
                          f64x lanes[kLanes<f64x>];
#pragma GCC unroll 16
                          for (std::int64_t k = 0; k < kLanes<f64x>; ++k)
                            lanes[k] = groups_.sums[min(c + k, count - 1)][sum];
                          return fold_rows<kLanes<f64x> / 2>(lanes, Addition());
                        });
  }

  // Computes the factors of the results.
  void prepare(std::int64_t count) {
    this->with_kind([&](auto kind) {
      const auto load = loaded();
      for (std::int64_t c = 0; c < count; c += kLanes<f64x>) {
        groups_.factors[c / kLanes<f64x>] = Formula::template factors<decltype(kind)::value>(
            groups_.moments.vectors()[c / kLanes<f64x>],
            [&](int operand) { return load(operand, c); });
      }
    });
  }
  DMLOPS_INLINE void finish(const GroupTiles& tiles, std::int64_t k, std::int64_t) const {
    Formula::finish(LaneOf(groups_.factors, first_ + k), tiles, k);
  }

  // Writes the outputs with an element for each group that exist.
  void report(const GroupTiles& tiles, std::int64_t count) const {
    Formula::for_each_output([&](int operand, f64x Formula::Numbers::*number) {
      if (reduction_.data[operand] == nullptr) return;
      for (std::int64_t k = 0; k < count; ++k)
        store_number<T>(tiles.group_operand(operand, k),
                        groups_.moments.number(first_ + k, number));
    });
  }

 private:
  using Row = MomentRow<T>;
  using At = typename Row::At;

  // The runs of group k in the loaded tile, for GroupSum. Prefetches runs that the hardware
  // prefetcher does not follow.
  template <class AddTerms>
  class Runs {
   public:
    DMLOPS_INLINE Runs(const MomentRows& formula, int s, const GroupTiles& tiles, std::int64_t k,
                       const AddTerms& add_terms)
        : tiles_(&tiles),
          k_(k),
          reads_second_(has_bit(formula.reads(s), kSecond)),
          add_terms_(&add_terms),
          run_(tiles.begin()) {
      begin();
    }

    DMLOPS_INLINE bool done() const { return run_ == tiles_->end(); }
    DMLOPS_INLINE std::int64_t left() const { return left_; }
    DMLOPS_INLINE void skip(std::int64_t length) {
      row_.elements += length;
      row_.seconds = row_.seconds.from(length);
      left_ -= length;
      if (left_ > 0) return;
      ++run_;
      if (!done()) begin();
    }
    DMLOPS_INLINE bool prefetch(std::int64_t i, std::int64_t length) const {
      const std::int64_t ahead = tiles_->jump(1, *run_);
      if (ahead != 0) prefetch_row(row_.elements + i, ahead, length);
      const std::int64_t second = reads_second_ ? tiles_->jump(kSecond, *run_) : 0;
      if (second != 0) prefetch_row(row_.seconds.row() + i, second, length);
      return ahead != 0 || second != 0;
    }
    DMLOPS_INLINE void add_terms(std::int64_t i, std::int64_t first, std::int64_t used,
                                 Vector* sums) const {
      (*add_terms_)(At{row_, i, used, first}, sums);
    }

   private:
    DMLOPS_INLINE void begin() {
      row_.elements = tiles_->row<T>(1, k_, *run_);
      if (reads_second_) row_.seconds = {*tiles_, kSecond, k_, *run_};
      left_ = run_->length;
    }

    const GroupTiles* tiles_;
    std::int64_t k_;
    bool reads_second_;
    const AddTerms* add_terms_;
    const TileRun* run_;
    Row row_ = {};
    std::int64_t left_ = 0;
  };

  DMLOPS_INLINE void fold(State& state, std::int64_t k) const {
    for (int i = 0; i < Formula::kSums; ++i) groups_.sums[k][i] = state.folded(i);
    state.clear();
  }

  // Returns the function from a group operand and the index of a vector of groups to its numbers.
  auto loaded() const {
    return [this](int operand, std::int64_t c) {
      return DMLOPS_TARGET::load<f64x>(groups_.operands[operand] + c);
    };
  }

  const Reduction& reduction_;
  RowMoments<Formula>& groups_;
  std::int64_t first_ = 0;
  bool folds_ = false;  // true if the sums of a group are folded in its tile, and share states[0]
};

// Returns the lanes of a group's sums of a sweep, where groups are reduced in stages.
inline double* sums_of(const GroupTiles& tiles, int sweep, std::int64_t k) {
  return reinterpret_cast<double*>(tiles.group_operand(kGroupSums + sweep, k));
}

// Writes the results of `groups` groups from `first` on, whose elements are visited in the order of
// `elements`.
template <class T, class Formula>
DMLOPS_NO_INLINE void finish_in_order(const Reduction& reduction, const ReductionNest& elements,
                                      Formula& formula, std::int64_t first, std::int64_t groups) {
  Reduction range = with_loops(reduction, elements, reduction.kept);
  range.end = first + groups;
  GroupTiles tiles(range, sizeof(T));
  for (std::int64_t k = 0, count; k < groups; k += count) {
    count = tiles.select(first + k);
    formula.set_first(k);
    finish_tiles(tiles, formula, count, 0, tiles.count());
  }
  formula.set_first(0);
}

// Computes the groups, up to kTileGroups at a time.
template <class T, class Formula>
DMLOPS_INLINE void reduce_rows(const Reduction& reduction, MomentRows<Formula>& rows) {
  ReductionNest in_memory;
  // True if results are computed in the order of memory, unlike sums.
  const bool sorts =
      element_loops(reduction, 1).count() * std::int64_t{sizeof(T)} > GroupTiles::kWholeBytes &&
      reduction.stage == Reduction::kAllStages && sort_elements(reduction, sizeof(T), in_memory);
  const Reduction tiled = sorts ? restricted(reduction, rows.reads(0)) : reduction;
  GroupTiles tiles(tiled, sizeof(T));
  typename MomentRows<Formula>::State states[kTileGroups];
  for (std::int64_t first = reduction.first, groups; first < reduction.end; first += groups) {
    groups = tiles.select(first);
    rows.begin(states, tiles, groups);
    for (int s = 0; s < Formula::kSweeps; ++s) {
      bool needed[kTileGroups], any = false;
      for (std::int64_t k = 0; k < groups; ++k) {
        needed[k] = rows.needs(s, k);
        any = any || needed[k];
      }
      if (!any) continue;
      if (s < reduction.stage) {
        for (std::int64_t k = 0; k < groups; ++k) {
          if (needed[k]) states[k].load_lanes(sums_of(tiles, s, k));
        }
        rows.end(s, states, groups, reduction.group_elements);
        continue;
      }
      sweep_tiles(s, tiles, rows, states, needed, groups, 0, tiles.count());
      if (s == reduction.stage) {
        for (std::int64_t k = 0; k < groups; ++k) {
          if (needed[k]) states[k].store_lanes(sums_of(tiles, s, k));
        }
        break;
      }
      rows.end(s, states, groups, tiles.count());
    }
    if (reduction.stage >= 0 && reduction.stage < Formula::kSweeps) continue;
    rows.prepare(groups);
    if (sorts) {
      finish_in_order<T>(reduction, in_memory, rows, first, groups);
    } else {
      finish_tiles(tiles, rows, groups, 0, tiles.count());
    }
    rows.report(tiles, groups);  // at the end, since outputs may share the memory of inputs
  }
  if (tiles.streams()) finish_non_temporal();
}

}  // namespace dmlops::DMLOPS_TARGET
