// Sums and maxima of groups down columns. Row i of an array holds lane i of all their sums.
#pragma once

#include "kernels/blocks/column_block.hpp"
#include "kernels/simd/math.hpp"
#include "kernels/softmax/lane_sums.hpp"

namespace dmlops::DMLOPS_TARGET {

// More columns than other reductions have, since short groups take less time than the beginnings
// and ends of the passes.
constexpr int kSoftmaxColumns = 128;
template <class T>
using SoftmaxBlock = ColumnBlock<T, kSoftmaxColumns>;

// Finds the maxima of a block's groups.
template <class T>
void find_column_maxima(SoftmaxBlock<T>& block, float* maxima) {
  for (std::int64_t c = 0; c < kSoftmaxColumns; ++c) maxima[c] = -kInfinity;
  for (std::int64_t b = 0; b < block.blocks(); ++b) {
    const auto x = block.view(b);
    const std::int64_t rows = block.rows(b);
    for_each_vector(block.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      f32x largest = load<f32x>(maxima + c);
      for (std::int64_t r = 0; r < rows; ++r) largest = max(largest, load_columns<T>(x, r, c));
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
  // Returns the sum of term(0), term(1), ..., of the only block of groups.
  template <class Term>
  DMLOPS_INLINE static Sums block_sum(std::int64_t rows, const Term& term) {
    Sums lanes[kSumLanes];
    const std::int64_t used = min(rows, kSumLanes);
    for (std::int64_t lane = 0; lane < used; ++lane) {
      Sums sum = Sums::of(term(lane));
      for (std::int64_t r = lane + kSumLanes; r < rows; r += kSumLanes) sum += term(r);
      lanes[lane] = sum;
    }
    return add_lanes(used, [&](std::int64_t lane) DMLOPS_LAMBDA_INLINE { return lanes[lane]; });
  }

  // Calls done(c, sums, seen) for each vector of columns. terms(c) creates its terms, whose
  // statistics are collected in `seen`.
  template <class Seen, class MakeTerms, class Done>
  void add_up(SoftmaxBlock<T>& block, const MakeTerms& terms, const Done& done) {
    const std::int64_t columns = block.columns(), blocks = block.blocks();
    Seen seen[kSoftmaxColumns / kLanes<f32x>];
    for (std::int64_t b = 0; b < blocks; ++b) {
      const auto x = block.view(b);
      const std::int64_t rows = block.rows(b), step = b % kSteps;
      if (step == 0 && b != 0) add_blocks(b == kSteps, kSumLanes, columns);
      for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        auto terms_here = terms(c);
        Seen seen_here;
        const auto term = [&](std::int64_t r) DMLOPS_LAMBDA_INLINE {
          block.prefetch_next(r, c);
          return terms_here.term(load_columns<T>(x, r, c), seen_here);
        };
        if (blocks == 1) return done(c, block_sum(rows, term), seen_here);
        seen_here = seen[c / kLanes<f32x>];
        for (std::int64_t lane = 0; lane < min(rows, kSumLanes); ++lane) {
          Sums sum = Sums::of(term(lane));
          if (step != 0) sum += Sums::from(sums_[lane] + c);
          for (std::int64_t r = lane + kSumLanes; r < rows; r += kSumLanes) sum += term(r);
          sum.store_to(sums_[lane] + c);
        }
        seen[c / kLanes<f32x>] = seen_here;
      });
    }
    if (blocks == 1) return;
    if (blocks > kSteps)
      add_blocks(false, min(block.count() - (blocks - 1) / kSteps * kSumBlock, kSumLanes), columns);
    for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const Sums total = blocks > kSteps ? Sums::of(combined<LaneSums<float>>(blocks_, c).sums)
                                         : combined<Sums>(sums_, c);
      done(c, total, seen[c / kLanes<f32x>]);
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
