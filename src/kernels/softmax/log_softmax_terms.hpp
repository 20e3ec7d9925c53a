// The terms of log_softmax's sums.
//
// The plain sum of e^x is computed in the pass that finds the maximum. It is inaccurate if the
// maximum is far from 0, or if the maximum's term dominates the sum. In these cases, and in short
// float16 groups, a second pass computes the sum excluding the maxima.
#pragma once

#include "kernels/simd/math.hpp"
#include "kernels/softmax/lane_sums.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr float kTermScale = 0x1p64f;  // scales all terms, against underflow

// The largest element; ignores NaN, which reach the result through the sum.
struct Largest {
  f32x largest = splat<f32x>(-kInfinity);

  DMLOPS_INLINE void operator+=(f32x x) { largest = max(largest, x); }
};

// The largest element and, for float32, the smallest; ignores NaN, as above.
template <class T>
struct Range : Largest {
  f32x smallest = splat<f32x>(kInfinity);

  DMLOPS_INLINE void operator+=(f32x x) {
    Largest::operator+=(x);
    if constexpr (std::is_same_v<T, float>) smallest = min(smallest, x);
  }
};

// e^r for |r| <= ln(2) / 2, to 2e-7.
DMLOPS_INLINE f32x short_exp(f32x r) {
  return polynomial(r, 1.0f, 1.0f, 0x1.fffdfcp-2f, 0x1.5557aep-3f, 0x1.572a06p-5f, 0x1.10627ap-7f);
}

// kTermScale e^x as 2^(n + 64) e^r, r = x - n kLn2, omitting kLn2Low, which LogSumExp compensates.
// Below kExpEnd the term is 0; above x = 43 it is unspecified.
template <class T>
struct PlainTerms {
  // The relative error is 1.2 * 2^-24, for float16 2e-7.
  DMLOPS_INLINE static auto exp(f32x x) {
    const RangeReduction reduced = reduce_range<64>(max(x, splat<f32x>(kExpEnd)));
    if constexpr (std::is_same_v<T, float>) {
      return fma(expm1_of_remainder(reduced.r), reduced.power, reduced.power);
    } else {
      return Product{short_exp(reduced.r), reduced.power};
    }
  }

  template <class Statistics>
  DMLOPS_INLINE auto term(f32x x, Statistics& seen) const {
    seen += x;
    return exp(x);
  }
};

// Counts the elements below the maximum.
struct NonMaxCount {
  i32x count = {};
};

// kTermScale e^(x - max) for given maxima, 0 if x is the maximum, and 0 below 2^-190.
template <class T>
class TermsExcludingMax;

// kTermScale e^(x - N kLn2) = 2^(n - N) e^(r + low), where max = N kLn2 + remainder. Subtracts
// exponents instead of the maximum, since the rounding error of the difference would show in a
// small sum. For |max| >= 2^20, where n kLn2 would be inexact, the maximum is subtracted first,
// which is exact for every significant x.
template <>
class TermsExcludingMax<float> {
 public:
  explicit TermsExcludingMax(f32x max)
      : max_(max),
        offset_(abs(max) >= 0x1p20f ? max : splat<f32x>(0.0f)),
        n_(nearest_power(max - offset_, splat<f32x>(kLog2E), splat<f32x>(kPowerShift)).n),
        shift_(splat<f32x>(kPowerShift + 64) - n_),
        end_((n_ - 191.0f) * kLn2),
        low_(n_ * kLn2Low) {}

  // The error is at most 0.75 ulp.
  DMLOPS_INLINE f32x term(f32x x, NonMaxCount& counter) const {
    const i32x is_below_max = x != max_;
    counter.count -= is_below_max;
    const f32x d = max(x - offset_, end_);
    const Power power = nearest_power(d, splat<f32x>(kLog2E), shift_);
    const f32x r = fma(power.n, splat<f32x>(-kLn2), d);
    const f32x low = fma(power.n, splat<f32x>(-kLn2Low), low_);  // (N - n) kLn2Low
    const f32x m = r + fma(exp_tail(r, 1.0f), r * r, low);       // approximately e^(r + low) - 1
    const f32x factor = is_below_max ? power.value : splat<f32x>(0.0f);
    return fma(m, factor, factor);
  }

  float filler() const { return max_[0]; }  // an element that adds no term
  // Returns N, and max - offset for the offset that is subtracted from all elements.
  DMLOPS_INLINE f32x n() const { return n_; }
  DMLOPS_INLINE f32x shifted_max() const { return max_ - offset_; }

 private:
  f32x max_, offset_, n_, shift_, end_, low_;
};

// The relative error is 2e-7: the difference of two float16 is accurate enough in float32.
template <>
class TermsExcludingMax<float16> {
 public:
  explicit TermsExcludingMax(f32x max) : max_(max) {}

  DMLOPS_INLINE Product term(f32x x, NonMaxCount& counter) const {
    const i32x is_below_max = x != max_;
    counter.count -= is_below_max;
    const RangeReduction reduced = reduce_range<64>(max(x - max_, splat<f32x>(kExpEnd)));
    return {short_exp(reduced.r), is_below_max ? reduced.power : splat<f32x>(0.0f)};
  }

  float16 filler() const {
    const u16half bits = narrow(max_);
    return float16::from_bits(bits[0]);
  }

 private:
  f32x max_;
};

}  // namespace dmlops::DMLOPS_TARGET
