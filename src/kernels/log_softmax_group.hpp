// What both ways through a group of log_softmax share: its elements, the terms of its sum, and the
// shape of that sum.
//
// Element i of a group goes to lane i % 64. A lane adds float32 values for 16 steps and then moves
// its sum to a double; at the end lane j takes in lane j + 32, then j + 16, and so on. Both ways
// keep to this shape, which makes the result independent of instruction set and layout. One element
// that equals the maximum stays out of the sum, since its exp(0) = 1 would swallow the others where
// it dominates: log(1 + rest) is log1p(rest).
#pragma once

#include "kernels/tile.hpp"
#include "simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kSumLanes = 64;
constexpr int kSumSteps = 16;
constexpr std::int64_t kSumBlock = kSumLanes * kSumSteps;

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

// The rounding of x - max shifts exp(x - max) by up to 2^-24 |x - max|. That is harmless in a large
// sum, but where one or few elements dominate, log1p(rest) would show it. So the sum takes the
// rounding errors along: in float32 (float16 results are too coarse to show them), in a short group
// at once, in a longer one by a second sum if the first is small.
template <class T>
constexpr bool refines_at_once(std::int64_t count) {
  return std::is_same_v<T, float> && count <= 256;
}
template <class T>
constexpr bool refines_later(std::int64_t count, double rest) {
  return std::is_same_v<T, float> && count > 256 &&
         rest < (count > 54 * 32 ? 54.0 : static_cast<double>(count) / 32);
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

// Logarithms as sums of two float32.
template <int kCapacity>
struct Logs {
  alignas(kVectorBytes) float high[kCapacity];
  alignas(kVectorBytes) float low[kCapacity];

  // Those of 1 + rest[i].
  void set(const double* rest, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kLanes<f64x>) {
      const f64x log = log1p(load<f64x>(rest + i));
      const f32half rounded = __builtin_convertvector(log, f32half);
      std::memcpy(high + i, &rounded, sizeof rounded);
      const f64x left = log - __builtin_convertvector(rounded, f64x);
      const f32half rounded_left = __builtin_convertvector(left, f32half);
      std::memcpy(low + i, &rounded_left, sizeof rounded_left);
    }
  }
};

// (x - max) - log. In float32 the rounding errors of the difference and of the logarithm are taken
// along, so that only one of the result's own size remains: where both parts are alike, that alone
// is an ulp of theirs.
template <class T>
DMLOPS_INLINE f32x log_softmax_result(f32x x, f32x max, f32x log_high, f32x log_low) {
  const f32x d = x - max;
  if constexpr (std::is_same_v<T, float>) {
    const f32x error = sum_error(x, -max, d);
    const f32x log = log_high + (log_low - (error == error ? error : splat<f32x>(0.0f)));
    return canonical_nan(d - log);
  } else {
    return canonical_nan(d - log_high);
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
