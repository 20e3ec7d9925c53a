// Sums and maxima of groups down columns. Row i of an array holds lane i of all their sums.
#pragma once

#include "kernels/blocks/column_block.hpp"
#include "kernels/simd/math.hpp"
#include "kernels/softmax/lane_sums.hpp"

namespace dmlops::DMLOPS_TARGET {

// Finds the maxima of a block's groups.
template <class T>
void find_column_maxima(ColumnBlock<T>& block, float* maxima) {
  for (std::int64_t c = 0; c < kColumns; ++c) maxima[c] = -kInfinity;
  for (std::int64_t b = 0; b < block.blocks(); ++b) {
    const char* const x = block.load(b);
    const std::int64_t rows = block.rows(b);
    for_each_vector(block.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      f32x largest = load<f32x>(maxima + c);
      for (std::int64_t r = 0; r < rows; ++r) largest = max(largest, load_columns<T>(x, r, c));
      store(maxima + c, largest);
    });
  }
}

// The sums of up to 64 groups. terms(c) creates the terms of the vector of columns at c; seen[]
// collects their statistics.
template <class T>
class ColumnSums {
  using Sums = LaneSums<T>;
  using Lane = typename Sums::Lane;

 public:
  template <class MakeTerms, class Seen>
  void add_up(ColumnBlock<T>& block, const MakeTerms& terms, Seen* seen, Lane* sums) {
    const std::int64_t columns = block.columns(), blocks = block.blocks();
    for (std::int64_t b = 0; b < blocks; ++b) {
      const char* const x = block.load(b);
      const std::int64_t rows = block.rows(b), step = b % kSteps;
      if (step == 0 && b != 0) add_blocks(b == kSteps, kSumLanes, columns);
      for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        const auto terms_here = terms(c);
        Seen seen_here = seen[c / kLanes<f32x>];
        const auto term = [&](std::int64_t r) DMLOPS_LAMBDA_INLINE {
          block.prefetch_next(r, c);
          return terms_here.term(load_columns<T>(x, r, c), seen_here);
        };
        const auto lane_sum = [&](std::int64_t lane) DMLOPS_LAMBDA_INLINE {
          Sums sum = Sums::of(term(lane));
          if (step != 0) sum += Sums::from(sums_[lane] + c);
          for (std::int64_t r = lane + kSumLanes; r < rows; r += kSumLanes) sum += term(r);
          return sum;
        };
        // With a single block, lanes j and j + 8 are added at once.
        const std::int64_t used = min(rows, kSumLanes);
        for (std::int64_t lane = 0; lane < min(used, kHalf); ++lane) {
          Sums sum = lane_sum(lane);
          if (lane + kHalf < used) {
            const Sums partner = lane_sum(lane + kHalf);
            if (blocks == 1) {
              sum += partner;
            } else {
              partner.store_to(sums_[lane + kHalf] + c);
            }
          }
          sum.store_to(sums_[lane] + c);
        }
        if (blocks == 1) combined<Sums, kHalf>(sums_, used, c).store_to(sums + c);
        seen[c / kLanes<f32x>] = seen_here;
      });
    }
    if (blocks > kSteps) {
      add_blocks(false, min(block.count() - (blocks - 1) / kSteps * kSumBlock, kSumLanes), columns);
      for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        alignas(kVectorBytes) double lanes[kLanes<f32x>];
        combined<LaneSums<float>, kSumLanes>(blocks_, kSumLanes, c).store_to(lanes);
        for (int k = 0; k < kLanes<f32x>; ++k) sums[c + k] = static_cast<Lane>(lanes[k]);
      });
    } else if (blocks > 1) {
      for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        combined<Sums, kSumLanes>(sums_, kSumLanes, c).store_to(sums + c);
      });
    }
  }

 private:
  static constexpr std::int64_t kSteps = kSumBlock / kBlockRows;
  static constexpr int kHalf = kSumLanes / 2;

  // Adds lanes kLane, kLane + kStride, ... below kEnd in the fixed order of the sum. kEnd is 16, or
  // 8 if lanes j and j + 8 have been added. Lanes from `used` on are empty; kLane is not.
  template <class S, int kEnd, int kLane = 0, int kStride = 1>
  DMLOPS_INLINE static S combined(const typename S::Lane (*lanes)[kColumns], std::int64_t used,
                                  std::int64_t c) {
    if constexpr (kStride == kEnd) {
      return S::from(lanes[kLane] + c);
    } else {
      S sum = combined<S, kEnd, kLane, 2 * kStride>(lanes, used, c);
      constexpr int kNext = kLane + kStride;
      if (kNext < used) sum += combined<S, kEnd, kNext, 2 * kStride>(lanes, used, c);
      return sum;
    }
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

  alignas(kVectorBytes) Lane sums_[kSumLanes][kColumns];      // of the current block
  alignas(kVectorBytes) double blocks_[kSumLanes][kColumns];  // of the previous blocks
};

}  // namespace dmlops::DMLOPS_TARGET
