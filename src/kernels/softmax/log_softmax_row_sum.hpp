// The sum over a group of neighbours in memory, 16 of which fill its lanes.
#pragma once

#include "kernels/softmax/log_softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kSumSteps = kSumBlock / kSumLanes;

// The maximum of neighbours in memory, in lanes.
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
    for (auto& sums : sums_) sums = LaneSums<T>{};
  }

  // Adds elements of the group: a whole number of steps, or the last ones.
  DMLOPS_INLINE void add(const T* x, std::int64_t count) {
    for (std::int64_t begin = 0; begin < count;) {
      if (steps_ == kSumSteps) end_block();
      const std::int64_t chunk = min(count - begin, (kSumSteps - steps_) * kSumLanes);
      add_steps(x + begin, chunk);
      steps_ += (chunk + kSumLanes - 1) / kSumLanes;
      begin += chunk;
    }
  }

  // The lanes of all that was added.
  DMLOPS_INLINE void store_to(double* lanes) {
    end_block();
    for (int j = 0; j < kSumLanes; ++j) lanes[j] = blocks_[j];
  }
  // Their sum, of several blocks.
  DMLOPS_INLINE double sum() {
    end_block();
    for (int half = kSumLanes / 2; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) blocks_[j] += blocks_[j + half];
    }
    return blocks_[0];
  }
  // The lanes of a single block, as many of them added up as leaves one vector.
  DMLOPS_INLINE auto folded() {
    for (int half = kVectors / 2; half > 0; half /= 2) {
      for (int k = 0; k < half; ++k) sums_[k] += sums_[k + half];
    }
    return sums_[0].folded();
  }
  const Seen& seen() const { return seen_; }
  std::int64_t non_max_count() const {
    return non_max_counts_;
  }  // of several blocks, once they are added up

 private:
  using Term = decltype(std::declval<Terms>().term(f32x(), std::declval<Seen&>()));

  static constexpr int kVectors = kSumLanes / kLanes<f32x>;
  // Terms that are known before they are added, where there are registers for them: their steps
  // overlap further than a processor looks ahead.
  static constexpr int kTogether = kVectorBytes == 64 && std::is_same_v<T, float> ? 4 : 1;

  DMLOPS_INLINE void add_steps(const T* x, std::int64_t count) {
    const std::int64_t whole = count / kSumLanes * kSumLanes;
    Seen seen = seen_;
    for (int k = 0; k < kVectors; ++k) {  // one by one, as the register file holds no more
      const std::int64_t lane = k * kLanes<f32x>, last = whole + lane;
      LaneSums<T> sums = sums_[k];
      std::int64_t i = lane;
      for (; i + (kTogether - 1) * kSumLanes < whole; i += kTogether * kSumLanes) {
        Term terms[kTogether];
        for (int step = 0; step < kTogether; ++step) {
          terms[step] = terms_.term(load<f32x>(x + i + step * kSumLanes), seen);
        }
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
    for (int k = 0; k < kVectors; ++k) {
      sums_[k].store_to(lanes + k * kLanes<f32x>);
      sums_[k] = LaneSums<T>{};
    }
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
  alignas(kVectorBytes) double blocks_[kSumLanes];  // of those before
  Seen seen_;
  std::int64_t steps_ = 0, block_ = 0, non_max_counts_ = 0;
};

}  // namespace dmlops::DMLOPS_TARGET
