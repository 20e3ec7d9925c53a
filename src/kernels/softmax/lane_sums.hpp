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

// The terms in the lanes that are used; the others are 0.
DMLOPS_INLINE f32x masked(f32x terms, i32x used) { return used ? terms : splat<f32x>(0.0f); }
DMLOPS_INLINE Product masked(Product terms, i32x used) {
  return {terms.factor, masked(terms.power, used)};
}

// kFloatLanes lanes of a sum, over the elements of a block: in double for float32, of which half
// an ulp per addition would show in the results of small sums; in float32 for float16.
template <class T>
struct LaneSums {
  static constexpr bool kIsWide = std::is_same_v<T, float>;
  using Lane = std::conditional_t<kIsWide, double, float>;
  std::conditional_t<kIsWide, Doubles, f32x> sums;

  static LaneSums from(const Lane* lanes) {
    if constexpr (kIsWide) return {load_doubles(lanes)};
    if constexpr (!kIsWide) return {load<f32x>(lanes)};
  }
  DMLOPS_INLINE static LaneSums of(f32x terms) {
    if constexpr (kIsWide) return {to_double(terms)};
    if constexpr (!kIsWide) return {terms};
  }
  DMLOPS_INLINE static LaneSums of(Doubles lanes) {
    if constexpr (kIsWide) return {lanes};
    if constexpr (!kIsWide) return {rounded(lanes)};
  }
  DMLOPS_INLINE static LaneSums of(Product terms) { return {terms.value()}; }
  DMLOPS_INLINE void operator+=(f32x terms) { *this += of(terms); }
  DMLOPS_INLINE void operator+=(Product terms) { sums = fma(terms.factor, terms.power, sums); }
  DMLOPS_INLINE void operator+=(const LaneSums& other) { sums = sums + other.sums; }
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
