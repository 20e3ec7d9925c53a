// Sums over the elements of a group in one fixed order, so that results do not depend on
// instruction set, layout and number of tiles.
//
// Element i goes to lane i % kWidth, of 32 lanes. A lane adds up its elements of a block of 1024,
// in float64 for float32 elements and in float32 for float16 ones, and adds the sums of the blocks
// in float64; finally, in float64, lane j + 16 is added to lane j, then lane j + 8, and so on.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/simd/doubles.hpp"
#include "kernels/simd/fold.hpp"

namespace dmlops::DMLOPS_TARGET {

// Returns v in the lanes [first, used), and 0 in the others.
template <class Number>
DMLOPS_INLINE Number existing(std::int64_t first, std::int64_t used, Number v) {
  using Index = Lane<decltype(v != v)>;
  decltype(v != v) lane;
  for (int i = 0; i < kLanes<Number>; ++i) lane[i] = i;
  const auto exists = (lane >= static_cast<Index>(first)) & (lane < static_cast<Index>(used));
  return exists ? v : Number{};
}
DMLOPS_INLINE Doubles existing(std::int64_t first, std::int64_t used, Doubles v) {
  constexpr std::int64_t half = kLanes<f64x>;
  return {existing(first, used, v.lower), existing(first - half, used - half, v.upper)};
}

// kSums sums over the elements of a group, in lanes of type V: Doubles, or f32x within a block.
// clear() must precede the first sum: a constructor would take time for unused states of tiles.
template <int kSums, class V>
class GroupSum {
 public:
  DMLOPS_INLINE void clear() {
    filled_ = 0;
    has_blocks_ = false;
    kept_ = nullptr;
  }

  // From now on, the lanes of each block are kept at `lanes`, [blocks][kSums][kWidth], rather than
  // added up. end_blocks() must follow the last element.
  DMLOPS_INLINE void keep_blocks(double* lanes) { kept_ = lanes; }
  DMLOPS_INLINE void end_blocks() {
    if (filled_ > 0) end_block();
  }

  // Adds the elements of runs, of which there is at least one. `runs` begins at the first element;
  // left() are those of the current run from there on, which skip(n) passes, and at the end of the
  // last one done() is true. prefetch(i, n) precedes the terms of n elements, and returns false if
  // the run needs no prefetches. add_terms(i, first, used, sums) adds those of the vector of
  // elements from i on, of which [first, used) exist; the others are 0.
  template <class Runs>
  DMLOPS_INLINE void add(Runs runs) {
    do {
      if (filled_ == kSumBlock) end_block();
      add_to_block(runs);
    } while (!runs.done());
  }

  // Returns the lanes of a sum over all blocks, added down to one vector.
  DMLOPS_INLINE f64x folded(int sum) const {
    return has_blocks_ || filled_ == 0
               ? folded([&](int j) DMLOPS_LAMBDA_INLINE { return with_blocks(sum, j); })
               : folded([&](int j) DMLOPS_LAMBDA_INLINE { return load_doubles(lanes_[sum] + j); });
  }

  // The lanes of all blocks, [kSums][kWidth], as the only ones of a group in several chunks.
  DMLOPS_INLINE void store_lanes(double* lanes) const {
    for (int s = 0; s < kSums; ++s) {
      for (int j = 0; j < kWidth; j += kFloatLanes)
        store(lanes + s * kWidth + j, with_blocks(s, j));
    }
  }
  DMLOPS_INLINE void load_lanes(const double* lanes) {
    clear();
    std::memcpy(blocks_, lanes, sizeof blocks_);
    has_blocks_ = true;
  }

 private:
  static constexpr int kWidth = kMomentLanes;
  using Lane = std::conditional_t<std::is_same_v<V, f32x>, float, double>;
  // Independent accumulators, which hide the latency of additions.
  static constexpr int kTogether = 2;
  // Elements that are prefetched at a time. More would fill the queue of cache misses, so that the
  // additions wait.
  static constexpr std::int64_t kPrefetched = 128;

  // Adds the elements of runs up to the end of the block, with the sums in registers.
  template <class Runs>
  DMLOPS_INLINE void add_to_block(Runs& runs) {
    constexpr std::int64_t together = kTogether * kFloatLanes;
    const Runs first = runs;
    std::int64_t filled = 0;
    for (std::int64_t lane = 0; lane < kWidth; lane += together) {
      V sums[kTogether][kSums];
#pragma GCC unroll 16
      for (int v = 0; v < kTogether; ++v) load_lanes(lane + v * kFloatLanes, sums[v]);
      runs = first;
      filled = filled_;
      do {
        const std::int64_t length = min(runs.left(), kSumBlock - filled);
        add_run(lane - filled % kWidth, length, runs, lane == 0, sums);
        filled += length;
        runs.skip(length);
      } while (filled < kSumBlock && !runs.done());
#pragma GCC unroll 16
      for (int v = 0; v < kTogether; ++v) store_lanes(lane + v * kFloatLanes, sums[v]);
    }
    filled_ = filled;
  }

  // Adds `length` elements of a run; the lanes of `sums` begin with element i, which precedes the
  // run if it is negative.
  template <class Runs>
  DMLOPS_INLINE static void add_run(std::int64_t i, std::int64_t length, const Runs& runs,
                                    bool prefetches, V (&sums)[kTogether][kSums]) {
    constexpr std::int64_t together = kTogether * kFloatLanes;
    if (i < 0) {
      add_existing(i, length, runs, sums);
      i += kWidth;
    }
    const std::int64_t last = length - together;
    std::int64_t prefetched = 0;
    do {
      std::int64_t end = last;
      if (prefetches) {
        const std::int64_t piece = min(kPrefetched, length - prefetched);
        const bool any = runs.prefetch(prefetched, piece);
        prefetched += piece;
        if (any) end = min(last, prefetched - 1);
      }
      for (; i <= end; i += kWidth) {
#pragma GCC unroll 16
        for (int v = 0; v < kTogether; ++v)
          runs.add_terms(i + v * kFloatLanes, 0, kFloatLanes, sums[v]);
      }
    } while (i <= last);
    if (i < length) add_existing(i, length, runs, sums);
  }

  // Adds those of the vectors of elements from i on that are in [0, end).
  template <class Runs>
  DMLOPS_INLINE static void add_existing(std::int64_t i, std::int64_t end, const Runs& runs,
                                         V (&sums)[kTogether][kSums]) {
#pragma GCC unroll 16
    for (int v = 0; v < kTogether; ++v, i += kFloatLanes) {
      const std::int64_t first = max(-i, 0), used = min(kFloatLanes, end - i);
      if (first < used) runs.add_terms(i, first, used, sums[v]);
    }
  }

  DMLOPS_INLINE static void load(const float* lanes, f32x& v) {
    v = DMLOPS_TARGET::load<f32x>(lanes);
  }
  DMLOPS_INLINE static void load(const double* lanes, Doubles& v) { v = load_doubles(lanes); }

  DMLOPS_INLINE void load_lanes(std::int64_t lane, V (&sums)[kSums]) const {
#pragma GCC unroll 16
    for (int s = 0; s < kSums; ++s) {
      sums[s] = V{};
      if (filled_ > 0) load(lanes_[s] + lane, sums[s]);
    }
  }
  DMLOPS_INLINE void store_lanes(std::int64_t lane, const V (&sums)[kSums]) {
#pragma GCC unroll 16
    for (int s = 0; s < kSums; ++s) store(lanes_[s] + lane, sums[s]);
  }
  // lanes_from(j) returns those from lane j on.
  template <class LanesFrom>
  DMLOPS_INLINE static f64x folded(const LanesFrom& lanes_from) {
    constexpr int kHere = kLanes<f64x>;
    f64x sums[kWidth / kHere];
#pragma GCC unroll 16
    for (int j = 0; j < kWidth; j += kFloatLanes) {
      const Doubles lanes = lanes_from(j);
      sums[j / kHere] = lanes.lower;
      sums[j / kHere + 1] = lanes.upper;
    }
    return add_halves(sums);
  }

  // Returns a vector of lanes, summed over all blocks.
  DMLOPS_INLINE Doubles with_blocks(int sum, int lane) const {
    Doubles sums = {};
    if (filled_ > 0) sums = load_doubles(lanes_[sum] + lane);
    return has_blocks_ ? load_doubles(blocks_[sum] + lane) + sums : sums;
  }

  DMLOPS_NO_INLINE void end_block() {
    store_lanes(kept_ == nullptr ? blocks_[0] : kept_);
    filled_ = 0;
    if (kept_ == nullptr) {
      has_blocks_ = true;
    } else {
      kept_ += kSums * kWidth;
    }
  }

  alignas(kVectorBytes) Lane lanes_[kSums][kWidth];     // of the current block, if filled
  alignas(kVectorBytes) double blocks_[kSums][kWidth];  // of the previous blocks
  std::int64_t filled_;                                 // elements of the current block
  bool has_blocks_;
  double* kept_;  // where the lanes of each block are kept, or null
};

}  // namespace dmlops::DMLOPS_TARGET
