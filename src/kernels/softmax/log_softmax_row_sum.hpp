// The sum over a group of contiguous elements, in 16 lanes.
#pragma once

#include "kernels/softmax/log_softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kSumSteps = kSumBlock / kSumLanes;

// The maximum of contiguous elements, in lanes.
template <class T>
struct RowMaximum {
  f32x largest = splat<f32x>(-kInfinity);

  DMLOPS_INLINE void add(const T* x, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + kLanes<f32x> <= count; i += kLanes<f32x>) largest = max(largest, load<f32x>(x + i));
    if (i < count) largest = max(largest, load_first(x + i, count - i, kNegativeInfinity<T>));
  }
};

template <class Terms>
class RowSum {
 public:
  using T = typename Terms::Element;
  using Seen = typename Terms::Seen;

  explicit RowSum(const Terms& terms) : terms_(terms) {
#pragma GCC unroll 16
    for (auto& sums : sums_) sums = LaneSums<T>{};
  }

  // Adds elements of the group; the number is a multiple of kSumLanes, except at the end of the
  // group.
  DMLOPS_INLINE void add(const T* x, std::int64_t count) {
    for (std::int64_t begin = 0; begin < count;) {
      if (steps_ == kSumSteps) end_block();
      const std::int64_t chunk = min(count - begin, (kSumSteps - steps_) * kSumLanes);
      add_steps(x + begin, chunk);
      steps_ += (chunk + kSumLanes - 1) / kSumLanes;
      begin += chunk;
    }
  }

  // Returns the lanes of the total.
  DMLOPS_INLINE void store_to(double* lanes) {
    end_block();
    for (int j = 0; j < kSumLanes; ++j) lanes[j] = blocks_[j];
  }
  // Returns the total of several blocks.
  DMLOPS_INLINE double sum() {
    end_block();
    for (int half = kSumLanes / 2; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) blocks_[j] += blocks_[j + half];
    }
    return blocks_[0];
  }
  // Returns the lanes of a single block, added down to one vector.
  DMLOPS_INLINE auto folded() {
#pragma GCC unroll 16
    for (int half = kVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
      for (int k = 0; k < half; ++k) sums_[k] += sums_[k + half];
    }
    return sums_[0].folded();
  }
  const Seen& seen() const { return seen_; }
  std::int64_t non_max_count() const { return non_max_counts_; }  // valid after store_to() or sum()

 private:
  using Term = decltype(std::declval<Terms>().term(f32x(), std::declval<Seen&>()));

  static constexpr int kVectors = kSumLanes / kLanes<f32x>;
  // Computes several terms before adding them if there are enough registers, which exposes more
  // instruction-level parallelism than out-of-order execution finds.
  static constexpr int kTogether = kVectorBytes == 64 && std::is_same_v<T, float> ? 4 : 1;

  DMLOPS_INLINE void add_steps(const T* x, std::int64_t count) {
    const std::int64_t whole = count / kSumLanes * kSumLanes;
    Seen seen = seen_;
    for (int k = 0; k < kVectors; ++k) {  // one vector at a time, limited by registers
      const std::int64_t lane = k * kLanes<f32x>, last = whole + lane;
      LaneSums<T> sums = sums_[k];
      std::int64_t i = lane;
      for (; i + (kTogether - 1) * kSumLanes < whole; i += kTogether * kSumLanes) {
        Term terms[kTogether];
#pragma GCC unroll 16
        for (int step = 0; step < kTogether; ++step) {
          terms[step] = terms_.term(load<f32x>(x + i + step * kSumLanes), seen);
        }
#pragma GCC unroll 16
        for (const Term& term : terms) sums += term;
      }
      for (; i < whole; i += kSumLanes) {
        sums += terms_.term(load<f32x>(x + i), seen);
      }
      if (last < count) {
        sums += terms_.last_terms(x + last, min(count - last, kLanes<f32x>), seen);
      }
      sums_[k] = sums;
    }
    seen_ = seen;
  }

  DMLOPS_INLINE void end_block() {
    alignas(kVectorBytes) typename LaneSums<T>::Lane lanes[kSumLanes];
#pragma GCC unroll 16
    for (int k = 0; k < kVectors; ++k) {
      sums_[k].store_to(lanes + k * kLanes<f32x>);
      sums_[k] = LaneSums<T>{};
    }
#pragma GCC unroll 16
    for (int j = 0; j < kSumLanes; j += kLanes<f64x>) {
      const f64x ended = to_double(lanes + j);
      store(blocks_ + j, block_ == 0 ? ended : load<f64x>(blocks_ + j) + ended);
    }
    non_max_counts_ += seen_.non_max_count();
    steps_ = 0;
    ++block_;
  }

  const Terms terms_;
  LaneSums<T> sums_[kVectors];                      // of the current block
  alignas(kVectorBytes) double blocks_[kSumLanes];  // of the previous blocks
  Seen seen_;
  std::int64_t steps_ = 0, block_ = 0, non_max_counts_ = 0;
};

}  // namespace dmlops::DMLOPS_TARGET
