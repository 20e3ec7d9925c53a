// Sums of groups down columns, in the order of GroupSum.
#pragma once

#include "kernels/blocks/column_block.hpp"
#include "kernels/simd/doubles.hpp"

namespace dmlops::DMLOPS_TARGET {

// kSums sums of each of up to 64 groups. A V has a sum of each group of a vector: Doubles, or f32x
// within a block of the sum.
template <int kSums, class V>
class MomentColumnSums {
 public:
  // For each kRows rows, calls load(begin). Then, for each vector of columns for which
  // is_needed(c): add = make_terms(c), and add(r, sums) for each row, which adds the row's terms.
  template <std::int64_t kRows, class IsNeeded, class Load, class MakeTerms>
  DMLOPS_INLINE void add_up(std::int64_t count, std::int64_t columns, const RowLanes& lanes,
                            const IsNeeded& is_needed, const Load& load,
                            const MakeTerms& make_terms) {
    const bool whole = lanes.period != kMomentLanes;
    for (std::int64_t begin = 0; begin < count; begin += kRows) {
      load(begin);
      const std::int64_t rows = min(kRows, count - begin), in_block = begin % kSumBlock;
      const std::int64_t end = min(min(rows, lanes.end), kMomentLanes);
      const bool last = begin + rows == count, ends = last || in_block + rows == kSumBlock;
      for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        if (!is_needed(c)) return;
        const auto add = make_terms(c);
        // If all rows are loaded at once, the lanes are folded at once, so that all vectors share
        // lanes that stay in L1.
        const std::int64_t v = count <= kRows && whole ? 0 : c / kLanesHere;
        for (std::int64_t lane = lanes.first; lane < end; ++lane) {
          // Element by element, so that the sums stay in registers.
          V sums[kSums];
#pragma GCC unroll 16
          for (int s = 0; s < kSums; ++s) sums[s] = in_block != 0 ? lanes_[v][lane][s] : V{};
          for (std::int64_t r = lane; r < rows; r += kMomentLanes) add(r, sums);
#pragma GCC unroll 16
          for (int s = 0; s < kSums; ++s) lanes_[v][lane][s] = sums[s];
        }
        if (!ends) return;
        const std::int64_t used = min(in_block + rows, kMomentLanes);
        if (whole && count <= kSumBlock) return fold(lanes_[v], used, totals_[c / kLanesHere]);
        end_block(v, lanes.first, min(used, lanes.end), begin < kSumBlock);
        if (whole && last) fold(blocks_[v], kMomentLanes, totals_[c / kLanesHere]);
      });
    }
  }

  // Shares the lanes of a sweep's sums with the shards that compute the other lanes.
  void share(void* sums, int sweep) { blocks_ = static_cast<Blocks>(sums) + sweep * kVectors; }
  template <class IsNeeded>
  void fold_shared(std::int64_t count, std::int64_t columns, const IsNeeded& is_needed) {
    for_each_vector(columns, [&](std::int64_t c) {
      if (!is_needed(c)) return;
      fold(blocks_[c / kLanesHere], min(count, kMomentLanes), totals_[c / kLanesHere]);
    });
  }

  // The totals of the vector of columns at c.
  DMLOPS_INLINE const Doubles* totals(std::int64_t c) const { return totals_[c / kLanesHere]; }

 private:
  static constexpr std::int64_t kLanesHere = kLanes<f32x>;
  static constexpr int kVectors = kColumns / kLanes<f32x>;
  using Blocks = Doubles (*)[kMomentLanes][kSums];

  // Adds lanes of the block to those of the previous blocks.
  DMLOPS_INLINE void end_block(std::int64_t v, std::int64_t begin, std::int64_t end, bool first) {
    for (std::int64_t lane = begin; lane < end; ++lane) {
#pragma GCC unroll 16
      for (int s = 0; s < kSums; ++s) {
        const Doubles sum = wide(lanes_[v][lane][s]);
        blocks_[v][lane][s] = first ? sum : blocks_[v][lane][s] + sum;
      }
    }
  }
  DMLOPS_INLINE static Doubles wide(f32x v) { return to_double(v); }
  DMLOPS_INLINE static Doubles wide(Doubles v) { return v; }

  // Adds lane j + 16 to lane j, and so on, from the first step that has two lanes to add.
  template <class Lane>
  static void fold(const Lane (&lanes)[kMomentLanes][kSums], std::int64_t used,
                   Doubles (&total)[kSums]) {
    Doubles sums[kMomentLanes / 2][kSums];
    std::int64_t half = kMomentLanes / 2;
    while (half >= used && half > 1) half /= 2;
    for (std::int64_t j = 0; j < min(used, half); ++j) {
#pragma GCC unroll 16
      for (int s = 0; s < kSums; ++s) {
        sums[j][s] = wide(lanes[j][s]);
        if (j + half < used) sums[j][s] = sums[j][s] + wide(lanes[j + half][s]);
      }
    }
    for (used = min(used, half), half /= 2; half > 0; used = min(used, half), half /= 2) {
      for (std::int64_t j = 0; j + half < used; ++j) {
#pragma GCC unroll 16
        for (int s = 0; s < kSums; ++s) sums[j][s] = sums[j][s] + sums[j + half][s];
      }
    }
    for (int s = 0; s < kSums; ++s) total[s] = sums[0][s];
  }

  alignas(kVectorBytes) V lanes_[kVectors][kMomentLanes][kSums];  // of the block
  alignas(kVectorBytes) Doubles own_blocks_[kVectors][kMomentLanes][kSums];
  Blocks blocks_ = own_blocks_;  // the lanes of all blocks
  alignas(kVectorBytes) Doubles totals_[kVectors][kSums];
};

}  // namespace dmlops::DMLOPS_TARGET
