// The arithmetic of log_softmax: the terms of a sum, their sums in lanes, what the sum makes of a
// group, and its results.
//
// The elements that equal the maximum stay out of the sum, since their exp(0) = 1 would swallow the
// others where one dominates: log(1 + rest) is log1p(rest).
#pragma once

#include "simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

// The terms of groups whose maxima are `max`, times kScale so that nothing is lost to subnormals,
// and 0 where x is the maximum. Below 2^-190 they are 0.
template <class T>
class Terms;

// exp(x - N kLn2) = 2^(n - N) e^(r + low), where max = N kLn2 + remainder. The maximum is not
// subtracted first, as the rounding of the difference would show in a small sum; only the exponents
// are. Beyond 2^20, where n kLn2 would lose digits, the difference is exact for every x that
// counts.
template <>
class Terms<float> {
 public:
  static constexpr double kScale = 0x1p64;

  explicit Terms(f32x max)
      : max_(max),
        far_(abs(max) >= 0x1p20f ? max : splat<f32x>(0.0f)),
        n_(nearest_power(max - far_, splat<f32x>(kLog2E), splat<f32x>(kPowerShift)).n),
        shift_(splat<f32x>(kPowerShift + 64) - n_),
        end_((n_ - 191.0f) * kLn2),
        low_(n_ * kLn2Low) {}

  // kScale exp(x - N kLn2), to 0.75 ulp. `others` counts the elements that are not the maximum.
  // kNear: elements lie less than 130 below a maximum of less than 2^20.
  template <bool kNear>
  DMLOPS_INLINE f32x term(f32x x, i32x& others) const {
    const i32x is_other = x != max_;
    others = is_other ? others + 1 : others;
    const f32x d = kNear ? x : at_least(x - far_, end_);
    const Power power = nearest_power(d, splat<f32x>(kLog2E), shift_);
    const f32x r = fma(power.n, splat<f32x>(-kLn2), d);
    const f32x low = fma(power.n, splat<f32x>(-kLn2Low), low_);  // (N - n) kLn2Low
    const f32x m = r + fma(exp_tail(r, 1.0f), r * r, low);       // e^(r + low) - 1, nearly
    const f32x factor = is_other ? power.value : splat<f32x>(0.0f);
    return fma(m, factor, factor);
  }

  // N, and max without what all elements are lessened by.
  DMLOPS_INLINE f32x n() const { return n_; }
  DMLOPS_INLINE f32x near() const { return max_ - far_; }

 private:
  f32x max_, far_, n_, shift_, end_, low_;
};

// exp(x - max), to 2e-7: the difference of two float16 is near enough in float32.
template <>
class Terms<float16> {
 public:
  static constexpr double kScale = 0x1p64;

  explicit Terms(f32x max) : max_(max) {}

  template <bool kNear>
  DMLOPS_INLINE f32x term(f32x x, i32x& others) const {
    const i32x is_other = x != max_;
    others = is_other ? others + 1 : others;
    const f32x difference = x - max_;
    const f32x d = kNear ? difference : at_least(difference, splat<f32x>(kExpEnd));
    const Power power = nearest_power(d, splat<f32x>(kLog2E), splat<f32x>(kPowerShift + 64));
    const f32x r = fma(power.n, splat<f32x>(-kLn2), d);
    const f32x factor = is_other ? power.value : splat<f32x>(0.0f);
    return polynomial(r, 1.0f, 1.0f, 0x1.fffdfcp-2f, 0x1.5557aep-3f, 0x1.572a06p-5f,
                      0x1.10627ap-7f) *
           factor;
  }

 private:
  f32x max_;
};

// As many lanes of the sum as a vector of float32 has, over up to 64 steps, or 127 of a single
// lane.
template <class T>
struct LaneSums;

// Each addition would cost half an ulp in float32, which a small sum would show in the result.
template <>
struct LaneSums<float> {
  using Lane = double;
  f64x lower = {}, upper = {};

  static LaneSums from(const Lane* lanes) {
    return {load<f64x>(lanes), load<f64x>(lanes + kLanes<f64x>)};
  }
  DMLOPS_INLINE void operator+=(f32x terms) {
    lower += lower_to_double(terms);
    upper += upper_to_double(terms);
  }
  DMLOPS_INLINE void store_to(Lane* lanes) const {
    store(lanes, lower);
    store(lanes + kLanes<f64x>, upper);
  }
};

// A float16 is too coarse to show it.
template <>
struct LaneSums<float16> {
  using Lane = float;
  f32x sums = {};

  static LaneSums from(const Lane* lanes) { return {load<f32x>(lanes)}; }
  DMLOPS_INLINE void operator+=(f32x terms) { sums += terms; }
  DMLOPS_INLINE void store_to(Lane* lanes) const { store(lanes, sums); }
};

// What each group's elements are lessened by, max + ln(1 + rest), as a sum of two float32: a
// rounded sum and what its rounding took. In float16, whose differences of two elements float32
// holds well enough, they are the two terms.
template <class T, int kCapacity>
struct Subtrahends {
  alignas(kVectorBytes) float max[kCapacity];
  alignas(kVectorBytes) double sum[kCapacity];    // of the terms
  alignas(kVectorBytes) float maxima[kCapacity];  // how many elements equal the maximum
  alignas(kVectorBytes) float high[kCapacity];
  alignas(kVectorBytes) float low[kCapacity];

  void compute(std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kLanes<f32x>) {
      // An infinite maximum makes NaN of it.
      const f32x top = load<f32x>(max + i), others = load<f32x>(maxima + i) - 1.0f + (top - top);
      if constexpr (std::is_same_v<T, float>) {
        const Terms<T> terms(top);
        alignas(kVectorBytes) float n[kLanes<f32x>], near[kLanes<f32x>], one_less[kLanes<f32x>];
        store(n, terms.n());
        store(near, terms.near());
        store(one_less, others);
        for (int k = 0; k < kLanes<f32x>; k += kLanes<f64x>) {
          const f64x remainder = to_double(near + k) - to_double(n + k) * static_cast<double>(kLn2);
          const f64x rest = scaled_sum(i + k) * exp_of_remainder(-remainder);
          set(i + k, log1p(rest + to_double(one_less + k)));
        }
      } else {
        alignas(kVectorBytes) float rest[kLanes<f32x>];
        for (int k = 0; k < kLanes<f32x>; k += kLanes<f64x>) {
          const f32half rounded = to_float(scaled_sum(i + k));
          std::memcpy(rest + k, &rounded, sizeof rounded);
        }
        store(high + i, top);
        store(low + i, log1p(load<f32x>(rest) + others));
      }
    }
  }

 private:
  DMLOPS_INLINE f64x scaled_sum(std::int64_t i) const {
    return load<f64x>(sum + i) * (1.0 / Terms<T>::kScale);
  }

  DMLOPS_INLINE void set(std::int64_t i, f64x log) {
    const f64x top = to_double(max + i);
    const f32half rounded = to_float(top + log);
    std::memcpy(high + i, &rounded, sizeof rounded);
    const f32half left = to_float(log - (to_double(high + i) - top));
    std::memcpy(low + i, &left, sizeof left);
  }
};

// x - (high + low), in float32 with one rounding: that of the difference is taken along.
template <class T>
class Difference {
 public:
  Difference(f32x high, f32x low)
      : high_(high),
        low_(low),
        unordered_(canonical_nan(high == high ? splat<f32x>(-kInfinity) : high)) {}

  // kNear: as for the terms, and no element lies below -high < 0.
  template <bool kNear>
  DMLOPS_INLINE f32x of(f32x x) const {
    const f32x difference = x - high_;
    if constexpr (!std::is_same_v<T, float>) {
      return canonical_nan(difference - low_);
    } else if constexpr (kNear) {
      return difference + ((x - (difference + high_)) - low_);
    } else {
      // Unordered are all elements of some groups, and in others what belongs to -infinity.
      const f32x result = difference + (sum_error(x, -high_, difference) - low_);
      return result == result ? result : unordered_;
    }
  }

 private:
  f32x high_, low_, unordered_;
};

}  // namespace dmlops::DMLOPS_TARGET
