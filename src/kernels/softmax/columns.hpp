// Sums and maxima of groups down columns. Row i of an array holds lane i of all their sums.
#pragma once

#include "kernels/blocks/column_vectors.hpp"
#include "kernels/simd/math.hpp"
#include "kernels/softmax/lane_sums.hpp"

namespace dmlops::DMLOPS_TARGET {

// More columns than other reductions have, since short groups take less time than the beginnings
// and ends of the passes.
constexpr int kSoftmaxColumns = 128;

// A column block that reads runs of adjacent groups in place if that takes less time.
template <class T>
class SoftmaxBlock : public ColumnBlock<T, kSoftmaxColumns> {
  using Block = ColumnBlock<T, kSoftmaxColumns>;

 public:
  // `fewest`: see takes_less_in_place().
  SoftmaxBlock(const Reduction& groups, std::int64_t fewest)
      : SoftmaxBlock(reads_in_place(groups, fewest), groups) {}

  // Calls compute() for each selection of the groups.
  template <class Compute>
  void for_each_selection(const Compute& compute) {
    const auto compute_here = [&](std::int64_t, std::int64_t) {
      // Vectors that overlap would read results in the buffer.
      if (!this->stores_in_place()) this->end_overlap();
      compute();
    };
    const bool in_place = (reads_in_place_ || stores_rows_) && this->is_adjacent();
    Block::for_each_selection(compute_here, in_place ? kSoftmaxColumns : 0);
  }

 private:
  SoftmaxBlock(bool in_place, const Reduction& groups)
      : Block(groups, in_place),
        reads_in_place_(in_place),
        stores_rows_(groups.streaming && fit_selection(groups.kept)) {}

  // True if all groups are adjacent in the output, and fit a selection.
  static bool fit_selection(const ReductionNest& kept) {
    return kept.rank == 1 && kept.sizes[0] <= kSoftmaxColumns && kept.strides[0][0] == Block::kSize;
  }
  // True if runs of groups that are adjacent in the output are to be read in place where the input
  // has them, too. If the output is the input, only runs of whole vectors.
  static bool reads_in_place(const Reduction& groups, std::int64_t fewest) {
    const ReductionNest& kept = groups.kept;
    if (groups.data[0] == nullptr || kept.rank == 0) return false;
    if (writes_to_input(groups) && kept.sizes[0] % kFloatLanes != 0) return false;
    const bool streaming = groups.streaming && !fit_selection(kept);
    // Parts of rows are packed for non-temporal stores.
    if (kept.rank == 1 && streaming) return false;
    const ElementLoops in = element_loops(groups, 1);
    const std::int64_t run = kept.sizes[0], elements = in.count();
    return kept.strides[0][0] == Block::kSize && !Block::share_sets(elements, in.step()) &&
           takes_less_in_place(run, elements, fewest, streaming);
  }
  // True if runs that fill a vector take less time in place than packed: long ones, and those with
  // at least `fewest` elements, less those that the last vector of each row repeats.
  static bool takes_less_in_place(std::int64_t run, std::int64_t elements, std::int64_t fewest,
                                  bool streaming) {
    constexpr std::int64_t kLongRun = 3 * kFloatLanes;
    const std::int64_t repeated = round_up(run, kFloatLanes) - run;
    if (run < kFloatLanes || (run < kLongRun && (run - repeated) * elements < fewest)) return false;
    // Long runs of longer groups are packed for non-temporal stores.
    constexpr std::int64_t kFewElements = 8;
    return !streaming || elements <= kFewElements || run * Block::kSize < kShortestStreamedInPlace;
  }

  const bool reads_in_place_;
  // True if regular stores write whole rows of groups, which non-temporal stores would take longer.
  const bool stores_rows_;
};

// Finds the maxima of a block's groups.
template <class T>
void find_column_maxima(SoftmaxBlock<T>& block, float* maxima) {
  for (std::int64_t c = 0; c < kSoftmaxColumns; ++c) maxima[c] = -kInfinity;
  for (std::int64_t b = 0; b < block.blocks(); ++b) {
    const auto x = block.view(b);
    const std::int64_t rows = block.rows(b);
    for_each_vector(block.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const std::int64_t column = block.column(c);
      f32x largest = load<f32x>(maxima + c);
      for (std::int64_t r = 0; r < rows; ++r) largest = max(largest, load_columns<T>(x, r, column));
      store(maxima + c, largest);
    });
  }
}

// The sums of a block's groups.
template <class T>
class ColumnSums {
  using Sums = LaneSums<T>;
  using Lane = typename Sums::Lane;

 public:
  // Returns the sum of the only block of groups; lane_sum(lane) returns that of a lane.
  template <class LaneSum>
  DMLOPS_INLINE static Sums block_sum(std::int64_t rows, const LaneSum& lane_sum) {
    Sums lanes[kSumLanes];
    const std::int64_t used = min(rows, kSumLanes);
    for (std::int64_t lane = 0; lane < used; ++lane) lanes[lane] = lane_sum(lane);
    return add_lanes(used, [&](std::int64_t lane) DMLOPS_LAMBDA_INLINE { return lanes[lane]; });
  }

  // Calls done(c, sums, seen) for each vector of columns for which is_needed(c). terms(c) creates
  // its terms, whose statistics are collected in `seen`.
  template <class Seen, class MakeTerms, class Done, class IsNeeded = EveryVector>
  void add_up(SoftmaxBlock<T>& block, const MakeTerms& terms, const Done& done,
              const IsNeeded& is_needed = {}) {
    const std::int64_t columns = block.lanes(), blocks = block.blocks();
    Seen seen[kSoftmaxColumns / kFloatLanes];
    for (std::int64_t b = 0; b < blocks; ++b) {
      const auto x = block.view(b);
      const std::int64_t rows = block.rows(b), step = b % kSteps;
      if (step == 0 && b != 0) add_blocks(b == kSteps, kSumLanes, columns);
      for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        if (!is_needed(c)) return;
        auto terms_here = terms(c);
        Seen seen_here;
        const std::int64_t offset = block.column(c) * std::int64_t{sizeof(T)};
        const char* const column = x.data + offset;
        // Returns the sum of a lane, whose rows are 16 apart. With indices of rows instead of
        // pointers, the loop would not fit the registers.
        const auto lane_sum = [&](std::int64_t lane, const Lane* begun) DMLOPS_LAMBDA_INLINE {
          const char* row = column + lane * x.pitch;
          const char* const* next = block.next_rows() + lane;
          const std::int64_t pitch = kSumLanes * x.pitch;
          const auto term = [&]() DMLOPS_LAMBDA_INLINE {
            __builtin_prefetch(*next + offset, 0, 2);
            return terms_here.term(load<f32x>(reinterpret_cast<const T*>(row)), seen_here);
          };
          Sums sum = Sums::of(term());
          if (begun != nullptr) sum += Sums::from(begun);
          for (std::int64_t remaining = rows - lane; remaining > kSumLanes;
               remaining -= kSumLanes) {
            row += pitch;
            next += kSumLanes;
            sum += term();
          }
          return sum;
        };
        if (blocks == 1) {
          const auto whole = [&](std::int64_t lane)
                                 DMLOPS_LAMBDA_INLINE { return lane_sum(lane, nullptr); };
          return done(c, block_sum(rows, whole), seen_here);
        }
        seen_here = seen[c / kFloatLanes];
        for (std::int64_t lane = 0; lane < min(rows, kSumLanes); ++lane) {
          Lane* const sum = sums_[lane] + c;
          lane_sum(lane, step != 0 ? sum : nullptr).store_to(sum);
        }
        seen[c / kFloatLanes] = seen_here;
      });
    }
    if (blocks == 1) return;
    if (blocks > kSteps)
      add_blocks(false, min(block.count() - (blocks - 1) / kSteps * kSumBlock, kSumLanes), columns);
    for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      if (!is_needed(c)) return;
      const Sums total = blocks > kSteps ? Sums::of(combined<LaneSums<float>>(blocks_, c).sums)
                                         : combined<Sums>(sums_, c);
      done(c, total, seen[c / kFloatLanes]);
    });
  }

 private:
  static constexpr std::int64_t kSteps = kSumBlock / kBlockRows;

  // Adds all lanes.
  template <class S>
  DMLOPS_INLINE static S combined(const typename S::Lane (*lanes)[kSoftmaxColumns],
                                  std::int64_t c) {
    return add_lanes(kSumLanes, [=](std::int64_t lane)
                                    DMLOPS_LAMBDA_INLINE { return S::from(lanes[lane] + c); });
  }

  // Adds the first `used` lanes of the block to the total; a last block may be short.
  void add_blocks(bool first, std::int64_t used, std::int64_t columns) {
    for (std::int64_t lane = 0; lane < used; ++lane) {
      for (std::int64_t c = 0; c < columns; c += kLanes<f64x>) {
        const f64x sums = to_double(sums_[lane] + c);
        store(blocks_[lane] + c, first ? sums : load<f64x>(blocks_[lane] + c) + sums);
      }
    }
  }

  alignas(kVectorBytes) Lane sums_[kSumLanes][kSoftmaxColumns];      // of the current block
  alignas(kVectorBytes) double blocks_[kSumLanes][kSoftmaxColumns];  // of the previous blocks
};

}  // namespace dmlops::DMLOPS_TARGET
