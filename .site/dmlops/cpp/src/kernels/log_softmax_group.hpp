// What both ways through a group of log_softmax share: its elements, the terms of its sum, and the
// shape of that sum.
//
// Element i of a group goes to lane i % 64. A lane adds float32 values for 64 steps and then moves
// its sum to a double; at the end lane j takes in lane j + 32, then j + 16, and so on. Both ways
// keep to this shape, which makes the result independent of instruction set and layout. The
// elements that equal the maximum stay out of the sum, since their exp(0) = 1 would swallow the
// others where one dominates: log(1 + rest) is log1p(rest).
#pragma once

#include "kernels/tile.hpp"
#include "simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kSumSteps = 64;
static_assert(kSumBlock == kSumLanes * kSumSteps);

template <class T>
DMLOPS_INLINE T negative_infinity() {
  if constexpr (std::is_same_v<T, float16>) {
    return float16{0xfc00u};
  } else {
    return -__builtin_inff();
  }
}

// The larger; a NaN in x is passed over (it comes back through the sum).
template <class V>
DMLOPS_INLINE V running_max(V max, V x) {
  return at_least(max, x);
}

// The terms of groups whose maxima are `max`: exp(x) as 2^(n - N) e^r, where max = N ln(2) + r. The
// maximum is not subtracted first, as the rounding of the difference would show in a small sum;
// only the exponents are. Beyond 2^20, where n ln(2) would lose digits, the difference is exact for
// every x that counts.
template <class T>
class Terms {
 public:
  static constexpr double kScale = 0x1p64;  // so that nothing is lost to subnormals

  explicit Terms(f32x max)
      : max_(max), far_(abs(max) >= 0x1p20f ? max : splat<f32x>(0.0f)), n_(nearest(max - far_)) {
    shift_ = splat<f32x>(kPowerShift + 64) - n_;
    end_ = (n_ - 191.0f) * kLn2;
  }

  // kScale exp(x - N ln(2)), and 0 where x is the maximum; those are counted, as -1 each. Below
  // 2^-190 it is 0.
  DMLOPS_INLINE f32x operator()(f32x x, i32x& minus_maxima) const {
    const i32x is_max = x == max_;
    minus_maxima += is_max;
    const f32x d = at_least(x - far_, end_);
    const Power power = nearest_power(d, splat<f32x>(kLog2E), shift_);
    const f32x high = fma(power.n, splat<f32x>(-kLn2), d);
    f32x term;
    if constexpr (std::is_same_v<T, float>) {
      // To 0.75 ulp: what the remainder lost by rounding is added back.
      const f32x low = power.n * -kLn2Low, r = high + low;
      term = fma(high + fma(exp_tail(r, 1.0f), r * r, low), power.value, power.value);
    } else {
      const f32x r = fma(power.n, splat<f32x>(-kLn2Low), high);
      term = fma(expm1_of_remainder(r), power.value, power.value);
    }
    return is_max ? splat<f32x>(0.0f) : term;
  }

  // N, and max without what all elements are lessened by.
  DMLOPS_INLINE f32x n() const { return n_; }
  DMLOPS_INLINE f32x near() const { return max_ - far_; }

 private:
  DMLOPS_INLINE static f32x nearest(f32x x) {
    return nearest_power(x, splat<f32x>(kLog2E), splat<f32x>(kPowerShift)).n;
  }

  f32x max_, far_, n_, shift_, end_;
};

// A lane's float32 sum over up to kSumSteps steps. In float32 it is two numbers: a sum that starts
// above all terms, so that what it loses is easy to tell, and the sum of what it lost. Each
// addition would otherwise cost half an ulp, which a small sum would show in the result. (float16
// results are too coarse to show it.)
template <class T>
struct LaneSum {
  static constexpr bool kExact = std::is_same_v<T, float>;
  static constexpr float kStart = kExact ? 0x1p71f : 0.0f;  // above 64 terms of up to 2^64.5
  f32x sum = splat<f32x>(kStart), lost = {};

  DMLOPS_INLINE void operator+=(f32x term) {
    const f32x next = sum + term;
    if constexpr (kExact) lost += term - (next - sum);
    sum = next;
  }

  // Of both in memory, as doubles.
  DMLOPS_INLINE static f64x total(const float* sum, const float* lost) {
    if constexpr (!kExact) return to_double(sum);
    return (to_double(sum) - static_cast<double>(kStart)) + to_double(lost);
  }
};

// What each group's elements are lessened by, max + ln(1 + rest), as a sum of two float32: a
// rounded sum and what its rounding took. In float16, whose differences of two elements float32
// holds well enough, they are the two terms.
template <class T, int kCapacity>
struct Subtrahends {
  alignas(kVectorBytes) float max[kCapacity];
  alignas(kVectorBytes) double sum[kCapacity];     // of the terms
  alignas(kVectorBytes) double maxima[kCapacity];  // how many elements equal the maximum
  alignas(kVectorBytes) float high[kCapacity];
  alignas(kVectorBytes) float low[kCapacity];

  void compute(std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kLanes<f32x>) {
      const Terms<T> terms(load<f32x>(max + i));
      alignas(kVectorBytes) float n[kLanes<f32x>], near[kLanes<f32x>];
      store(n, terms.n());
      store(near, terms.near());
      for (int k = 0; k < kLanes<f32x>; k += kLanes<f64x>) {
        compute_at(i + k, to_double(near + k) - to_double(n + k) * 0x1.62e42fefa39efp-1);
      }
    }
  }

 private:
  DMLOPS_INLINE void compute_at(std::int64_t i, f64x remainder) {
    const f64x top = to_double(max + i);
    const f64x terms =
        load<f64x>(sum + i) * (1.0 / Terms<T>::kScale) * exp_of_remainder(-remainder);
    // An infinite maximum makes NaN of it.
    const f64x log = log1p(terms + (load<f64x>(maxima + i) - 1.0)) + (top - top);
    const f32half rounded = to_float(std::is_same_v<T, float> ? top + log : top);
    std::memcpy(high + i, &rounded, sizeof rounded);
    const f32half left = to_float(log - (to_double(high + i) - top));
    std::memcpy(low + i, &left, sizeof left);
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
