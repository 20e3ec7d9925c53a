// The lanes of a sum over a group's terms, in the fixed order of softmax and log_softmax.
//
// Element i of a group belongs to lane i % 16. A lane adds its 64 elements of a block, in float64
// for float32 elements and in float32 for float16 ones, and adds the blocks in float64; finally
// lane j + 8 is added to lane j, then lane j + 4, and so on. Rows and columns keep this order,
// which makes results independent of instruction set and layout.
#pragma once

#include "kernels/simd/doubles.hpp"

namespace dmlops::DMLOPS_TARGET {

// A term as an unevaluated product, added by a fused multiply-add. The second factor is a power of
// two.
struct Product {
  f32x factor, power;

  DMLOPS_INLINE f32x value() const { return factor * power; }
};

// kLanes<f32x> lanes of a sum, over the elements of a block.
template <class T>
struct LaneSums;

// In double: half an ulp of float32 per addition would show in the results of small sums.
template <>
struct LaneSums<float> {
  using Lane = double;
  f64x lower, upper;

  static LaneSums from(const Lane* lanes) {
    return {load<f64x>(lanes), load<f64x>(lanes + kLanes<f64x>)};
  }
  DMLOPS_INLINE static LaneSums of(f32x terms) {
    Doubles both = to_double(terms);
    return {both.lower, both.upper};
  }
  DMLOPS_INLINE void operator+=(f32x terms) { *this += of(terms); }
  DMLOPS_INLINE void operator+=(const LaneSums& other) {
    lower += other.lower;
    upper += other.upper;
  }
  DMLOPS_INLINE f64x folded() const { return lower + upper; }
  DMLOPS_INLINE void store_to(Lane* lanes) const {
    store(lanes, lower);
    store(lanes + kLanes<f64x>, upper);
  }
};

// In float32, which suffices for float16.
template <>
struct LaneSums<float16> {
  using Lane = float;
  f32x sums;

  static LaneSums from(const Lane* lanes) { return {load<f32x>(lanes)}; }
  DMLOPS_INLINE static LaneSums of(f32x terms) { return {terms}; }
  DMLOPS_INLINE static LaneSums of(const Product& terms) { return {terms.value()}; }
  DMLOPS_INLINE void operator+=(f32x terms) { sums += terms; }
  DMLOPS_INLINE void operator+=(const Product& terms) {
    sums = fma(terms.factor, terms.power, sums);
  }
  DMLOPS_INLINE void operator+=(const LaneSums& other) { sums += other.sums; }
  DMLOPS_INLINE f32x folded() const { return sums; }
  DMLOPS_INLINE void store_to(Lane* lanes) const { store(lanes, sums); }
};

// Adds lanes kLane, kLane + kStride, ... of the first `used` ones in the fixed order of the sum;
// sums(lane) returns a lane, or that of each column of a vector.
template <int kLane = 0, int kStride = 1, class Sums>
DMLOPS_INLINE auto add_lanes(std::int64_t used, const Sums& sums) {
  if constexpr (kStride == kSumLanes) {
    return sums(kLane);
  } else {
    auto sum = add_lanes<kLane, 2 * kStride>(used, sums);
    constexpr int kNext = kLane + kStride;
    if (kNext < used) sum += add_lanes<kNext, 2 * kStride>(used, sums);
    return sum;
  }
}

}  // namespace dmlops::DMLOPS_TARGET
