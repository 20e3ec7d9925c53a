// Sums over the elements of a group in one fixed order, which makes them independent of instruction
// set, layout and number of tiles.
//
// Element i goes to lane i % 16. A lane adds up the 64 elements of a block, and then the sums of
// the blocks, in float64; finally lane j + 8 is added to lane j, then lane j + 4, and so on: the
// order of log_softmax's sums.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/simd/convert.hpp"

namespace dmlops::DMLOPS_TARGET {

DMLOPS_INLINE Doubles operator+(Doubles a, Doubles b) {
  return {a.lower + b.lower, a.upper + b.upper};
}
DMLOPS_INLINE Doubles operator-(Doubles a, Doubles b) {
  return {a.lower - b.lower, a.upper - b.upper};
}
DMLOPS_INLINE Doubles operator*(Doubles a, Doubles b) {
  return {a.lower * b.lower, a.upper * b.upper};
}
DMLOPS_INLINE Doubles to_doubles(double value) { return {splat<f64x>(value), splat<f64x>(value)}; }
// Rounded to float32.
DMLOPS_INLINE f32x rounded(Doubles v) {
  const f32half lower = to_float(v.lower), upper = to_float(v.upper);
#if defined(__AVX512F__)
  return _mm512_insertf32x8(_mm512_castps256_ps512(lower), upper, 1);
#elif defined(__AVX2__)
  return _mm256_set_m128(upper, lower);
#else
  const f32half halves[] = {lower, upper};
  f32x result;
  static_assert(sizeof result == sizeof halves, "two halves");
  std::memcpy(&result, halves, sizeof result);
  return result;
#endif
}

// kSums sums of a term for each element.
template <int kSums>
class GroupSum {
 public:
  void clear() { *this = GroupSum(); }

  // Adds elements of the group: a whole number of steps of 16, or the last ones. `terms(i, used,
  // out)` sets the terms of a vector of elements from i on, of which `used` exist; it may be asked
  // for several vectors of a lane before the next one.
  template <class Terms>
  DMLOPS_INLINE void add(std::int64_t count, const Terms& terms) {
    for (std::int64_t begin = 0; begin < count;) {
      if (steps_ == kSteps) end_block();
      const std::int64_t part = min(count - begin, (kSteps - steps_) * kSumLanes);
      add_steps(begin, part, terms);
      steps_ += (part + kSumLanes - 1) / kSumLanes;
      begin += part;
    }
  }

  // All of it; nothing can be added then.
  double total(int sum) {
    if (steps_ > 0) end_block();
    double* const lanes = blocks_[sum];
    for (int half = kSumLanes / 2; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
    }
    return lanes[0];
  }

 private:
  static constexpr std::int64_t kSteps = kSumBlock / kSumLanes, kLanesHere = kLanes<f32x>;
  static constexpr int kVectors = kSumLanes / kLanes<f32x>;

  template <class Terms>
  DMLOPS_INLINE void add_steps(std::int64_t begin, std::int64_t count, const Terms& terms) {
    const std::int64_t whole = count / kSumLanes * kSumLanes;
    for (int v = 0; v < kVectors; ++v) {
      Doubles sums[kSums], added[kSums];
      const std::int64_t lane = v * kLanesHere;
      for (int s = 0; s < kSums; ++s) sums[s] = load_lanes(lanes_[s] + lane);
      for (std::int64_t i = lane; i < whole; i += kSumLanes) {
        terms(begin + i, kLanesHere, added);
        for (int s = 0; s < kSums; ++s) sums[s] = sums[s] + added[s];
      }
      const std::int64_t used = min(count - whole - lane, kLanesHere);
      if (used > 0) {
        terms(begin + whole + lane, used, added);
        for (int s = 0; s < kSums; ++s) sums[s] = sums[s] + first_lanes(added[s], used);
      }
      for (int s = 0; s < kSums; ++s) store_lanes(lanes_[s] + lane, sums[s]);
    }
  }

  DMLOPS_INLINE static Doubles load_lanes(const double* lanes) {
    return {load<f64x>(lanes), load<f64x>(lanes + kLanes<f64x>)};
  }
  DMLOPS_INLINE static void store_lanes(double* lanes, Doubles v) {
    store(lanes, v.lower);
    store(lanes + kLanes<f64x>, v.upper);
  }
  DMLOPS_INLINE static Doubles first_lanes(Doubles v, std::int64_t used) {
    alignas(kVectorBytes) double lanes[kLanesHere];
    store_lanes(lanes, v);
    for (std::int64_t i = used; i < kLanesHere; ++i) lanes[i] = 0;
    return load_lanes(lanes);
  }

  DMLOPS_NO_INLINE void end_block() {
    for (int s = 0; s < kSums; ++s) {
      for (int j = 0; j < kSumLanes; ++j) {
        blocks_[s][j] += lanes_[s][j];
        lanes_[s][j] = 0;
      }
    }
    steps_ = 0;
  }

  alignas(kVectorBytes) double lanes_[kSums][kSumLanes] = {};   // of the current block
  alignas(kVectorBytes) double blocks_[kSums][kSumLanes] = {};  // of those before
  std::int64_t steps_ = 0;
};

// A vector of a row's elements from i on, of which `used` exist; 0 in the other lanes.
template <class T>
DMLOPS_INLINE f32x load_elements(const T* row, std::int64_t i, std::int64_t used) {
  return used == kLanes<f32x> ? load<f32x>(row + i)
                              : load_partial<f32x>(row + i, static_cast<std::size_t>(used));
}
template <class T>
DMLOPS_INLINE void store_elements(T* row, std::int64_t i, std::int64_t used, f32x v) {
  if (used == kLanes<f32x>) {
    store(row + i, v);
  } else {
    store_partial(row + i, v, static_cast<std::size_t>(used));
  }
}

// visit(i, used) for each vector of a row.
template <class Visit>
DMLOPS_INLINE void for_each_vector_of_row(std::int64_t length, const Visit& visit) {
  std::int64_t i = 0;
  for (; i + kLanes<f32x> <= length; i += kLanes<f32x>) visit(i, std::int64_t{kLanes<f32x>});
  if (i < length) visit(i, length - i);
}

}  // namespace dmlops::DMLOPS_TARGET
