// What both ways through a group of log_softmax share: its elements, the terms of its sum, and the
// shape of that sum.
//
// Element i of a group goes to lane i % 64. A lane adds float32 values for some steps and then
// moves its sum to a double; at the end lane j takes in lane j + 32, then j + 16, and so on. Both
// ways keep to this shape, which makes the result independent of instruction set and layout. One
// element that equals the maximum stays out of the sum, since its exp(0) = 1 would swallow the
// others where it dominates: log(1 + rest) is log1p(rest).
#pragma once

#include "kernels/tile.hpp"
#include "simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kSumLanes = 64;
template <bool kRefined>
constexpr int kSumSteps = kRefined ? 1 : 16;

template <class T>
DMLOPS_INLINE T negative_infinity() {
  if constexpr (std::is_same_v<T, float16>) {
    return float16{0xfc00u};
  } else {
    return -__builtin_inff();
  }
}

// The larger; a NaN in x is passed over (it comes back through x - max).
template <class V>
DMLOPS_INLINE V running_max(V max, V x) {
  return max < x ? x : max;
}

// The rounding of x - max shifts exp(x - max) by up to 2^-24 |x - max|, exp has its own error, and
// so has each addition. That is harmless in a large sum, as the logarithm's own unit is large too;
// one below 2 would show it. So in float32 (float16 results are too coarse to show it) such a sum
// is refined: it takes the rounding errors along and moves to doubles at each step. A short group,
// whose sum is mostly small, is refined at once; a longer one by a second sum if the first is
// small.
template <class T>
constexpr bool refines_at_once(std::int64_t count) {
  return std::is_same_v<T, float> && count <= kSumLanes;
}
template <class T>
constexpr bool refines_later(std::int64_t count, double rest) {
  return std::is_same_v<T, float> && count > kSumLanes && rest < 6.4;  // e^2 - 1
}

// 2^64 exp(x - max), and 0 where x is the maximum; those are counted, as -1 each. kRefined adds the
// rounding error of x - max.
template <bool kRefined>
DMLOPS_INLINE f32x exp_below(f32x x, f32x max, i32x& minus_maxima) {
  const f32x d = x - max;
  const i32x is_max = d == 0.0f;
  minus_maxima += is_max;
  f32x e;
  if constexpr (kRefined) {
    e = scaled_exp(d, sum_error(x, -max, d));
  } else {
    e = scaled_exp(d);
  }
  return is_max ? splat<f32x>(0.0f) : e;
}

// What each group's elements are lessened by, max + ln(1 + rest), as a sum of two float32: a
// rounded sum and what its rounding took. In float16, whose differences of two elements are exact
// in float32, they are the two terms, as in any group where the second is far below the first.
template <class T, int kCapacity>
struct Subtrahends {
  alignas(kVectorBytes) float high[kCapacity];
  alignas(kVectorBytes) float low[kCapacity];

  void set(const float* max, const double* rest, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kLanes<f64x>) {
      const f64x top = to_double(max + i), log = log1p(load<f64x>(rest + i));
      const f32half sum =
          __builtin_convertvector(std::is_same_v<T, float> ? top + log : top, f32half);
      const f32half left =
          __builtin_convertvector(log - (__builtin_convertvector(sum, f64x) - top), f32half);
      std::memcpy(high + i, &sum, sizeof sum);
      std::memcpy(low + i, &left, sizeof left);
    }
  }
};

// x - (high + low), in float32 with one rounding: that of the difference is taken along.
template <class T>
DMLOPS_INLINE f32x log_softmax_result(f32x x, f32x high, f32x low) {
  const f32x difference = x - high;
  if constexpr (std::is_same_v<T, float>) {
    const f32x error = sum_error(x, -high, difference);
    return canonical_nan(difference + ((error == error ? error : splat<f32x>(0.0f)) - low));
  } else {
    return canonical_nan(difference - low);
  }
}

// Where the elements of one group lie.
struct GroupShape {
  int rank;
  const std::int64_t* sizes;
  const std::int64_t* strides;

  std::int64_t count() const {
    std::int64_t product = 1;
    for (int d = 0; d < rank; ++d) product *= sizes[d];
    return product;
  }

  std::int64_t step() const { return strides[rank - 1]; }  // between neighbours

  bool dense(std::int64_t size) const { return rank == 1 && (strides[0] == size || sizes[0] == 1); }

  // visit(offset of a run in memory, its index in the part, its length) for the part [begin, end)
  // of the group.
  template <class Visit>
  DMLOPS_INLINE void for_each_run(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    const std::int64_t inner = sizes[rank - 1];
    for (std::int64_t i = begin; i < end;) {
      std::int64_t index = i / inner, offset = (i % inner) * strides[rank - 1];
      for (int d = rank - 2; d >= 0; --d) {
        offset += (index % sizes[d]) * strides[d];
        index /= sizes[d];
      }
      const std::int64_t in_row = inner - i % inner, length = in_row < end - i ? in_row : end - i;
      visit(offset, i - begin, length);
      i += length;
    }
  }
};

}  // namespace dmlops::DMLOPS_TARGET
