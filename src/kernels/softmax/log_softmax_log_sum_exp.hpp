// The log-sum-exp of a group, and its difference from the elements.
#pragma once

#include "kernels/simd/log1p_pair.hpp"
#include "kernels/softmax/log_softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

// scale * e^-r after reduce_range(), to 2^-26; scale is a power of two, or NaN.
//
// Compensates the factors e^(-n kLn2Low) that the terms of a sum omit, assuming the n of the
// maximum less 1. Each unit of difference in n causes an error of 2^-29, which matters in small
// sums of large terms only.
DMLOPS_INLINE FloatPair inverse_exp(f32x r, f32x scale) {
  const f32x tail = exp_tail(-r, 1.0f), square = r * r;
  const f32x m = fma(tail, square, -r), rounded = m + 1.0f;
  const f32x rest = (m - (rounded - 1.0f)) + (fma(tail, square, kLn2Low - r) - m);
  return {rounded * scale, rest * scale};
}

// value as an unevaluated sum, whose second number is NaN unless both are finite, unlike that of
// FloatPair(value): log1p() depends on it.
DMLOPS_INLINE FloatPair split(Doubles value) {
  const f32x high = rounded(value);
  return {high, rounded(value - to_double(high))};
}

// log-sum-exp of groups, max + ln(1 + sum_excluding_max), as an unevaluated sum high + low: for
// float32 a rounded sum and its rounding error; for float16 the two terms, which is accurate
// enough.
template <class T, int kCapacity>
struct LogSumExp {
  using Sum = typename LaneSums<T>::Lane;

  alignas(kVectorBytes) float largest[kCapacity];
  alignas(kVectorBytes) Sum plain_sum[kCapacity];             // of kTermScale e^x
  alignas(kVectorBytes) Sum sum_excluding_maxima[kCapacity];  // of the terms below the maximum
  alignas(kVectorBytes) float max_count[kCapacity];  // number of elements equal to the maximum
  // The sum of e^(x - max) over all elements except one maximum, rounded; -1 if `plain_sum` does
  // not suffice to compute it.
  alignas(kVectorBytes) float sum_excluding_max[kCapacity];
  alignas(kVectorBytes) float sum_low[kCapacity];  // of sum_excluding_max, for float32
  alignas(kVectorBytes) float high[kCapacity];
  alignas(kVectorBytes) float low[kCapacity];

  // Sets the lanes past the last group, which are computed with; the numbers of groups follow.
  DMLOPS_INLINE void clear_past(std::int64_t count) {
    const std::int64_t last = (count - 1) / kFloatLanes * kFloatLanes;
    for (float* const numbers : {largest, max_count, sum_excluding_max, sum_low})
      store(numbers + last, f32x{});
    for (Sum* const sums : {plain_sum, sum_excluding_maxima})
      std::memset(sums + last, 0, kFloatLanes * sizeof(Sum));
  }

  // Computes sum_excluding_max from plain_sum, from which it subtracts the term of the maximum.
  // Returns true if that is accurate enough for all groups.
  bool take_plain(std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kFloatLanes) subtract_max(i);
    return take_plain_excluding_max(count);
  }
  // Subtracts the term of the maximum from plain_sum, in the vector at i.
  DMLOPS_INLINE void subtract_max(std::int64_t i) {
    const auto top = LaneSums<T>::of(PlainTerms<T>::exp(load<f32x>(largest + i)));
    store(plain_sum + i, LaneSums<T>::from(plain_sum + i).sums - top.sums);
  }

  // Likewise, if plain_sum excludes the term of one maximum.
  //
  // The accepted range of maxima keeps significant terms, and their sum, in float32's range. The
  // sum is rounded at most once per step of a block and once per block. For float32, each rounding
  // is 2^-53 relative, which could matter if the other terms are below 2^-20 of the maximum's. For
  // float16 it is 2^-24, 2^-18 in all: 1/64 ulp of float16 for the logarithm of 1.5.
  bool take_plain_excluding_max(std::int64_t count) {
    constexpr float kLargest = kIsFloat ? 40 : 32, kSmallest = kIsFloat ? 0x1p-20f : 0.5f;
    i32x lacking = {};
    for (std::int64_t i = 0; i < count; i += kFloatLanes) {
      const f32x top = load<f32x>(largest + i);
      const RangeReduction reduced = reduce_range<64>(top);
      // 2^(-n - 32), for terms times 2^32: kTermScale times a sum could overflow.
      const f32x inverse_power = bit_cast<f32x>((286u << 23) - bit_cast<u32x>(reduced.power));
      const i32x in_range = (top >= -64.0f) & (top <= kLargest);
      const f32x scale = in_range ? inverse_power : splat<f32x>(__builtin_nanf(""));
      f32x sum;
      if constexpr (kIsFloat) {
        const FloatPair term = split(load_doubles(plain_sum + i) * to_doubles(0x1p32 / kTermScale));
        const FloatPair inverse = inverse_exp(reduced.r, scale);
        sum = term.high * inverse.high;
        store(sum_low + i, fma(term.high, inverse.low,
                               fma(term.low, inverse.high, fma(term.high, inverse.high, -sum))));
      } else {
        sum = load<f32x>(plain_sum + i) * (0x1p32f / kTermScale) * (short_exp(-reduced.r) * scale);
      }
      const i32x suffices = sum >= kSmallest;
      store(sum_excluding_max + i, suffices ? sum : splat<f32x>(-1));
      lacking |= ~suffices & (lane_indices() < static_cast<std::int32_t>(count - i));
    }
    return !any_lane(lacking);
  }

  // True if plain_sum does not suffice for a group of the vector at i.
  DMLOPS_INLINE bool lacks_sum(std::int64_t i) const {
    return any_bit(bit_cast<u32x>(load<f32x>(sum_excluding_max + i)), 1u << 31);  // 0 or -1
  }

  void take_nothing(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) sum_excluding_max[i] = -1;
  }

  // Computes sum_excluding_max from sum_excluding_maxima and max_count if plain_sum did not
  // suffice.
  void take_excluding_max(std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kFloatLanes) {
      if (!lacks_sum(i)) continue;
      const f32x top = load<f32x>(largest + i);
      const f32x further_maxima =
          load<f32x>(max_count + i) - 1.0f + (top - top);  // NaN if the maximum is infinite
      const f32x plain = load<f32x>(sum_excluding_max + i);
      const i32x suffices = plain >= 0.0f;
      f32x sum;
      if constexpr (kIsFloat) {
        const TermsExcludingMax<T> terms(top);
        alignas(kVectorBytes) float shifted[kFloatLanes], n[kFloatLanes], added[kFloatLanes];
        alignas(kVectorBytes) double sums[kFloatLanes];
        store(shifted, terms.shifted_max());
        store(n, terms.n());
        store(added, further_maxima);
#pragma GCC unroll 16
        for (int k = 0; k < kLanes<f32x>; k += kLanes<f64x>) {
          const f64x remainder =
              to_double(shifted + k) - to_double(n + k) * static_cast<double>(kLn2);
          store(sums + k, load<f64x>(sum_excluding_maxima + i + k) * (1.0 / kTermScale) *
                                  exp_of_remainder(-remainder) +
                              to_double(added + k));
        }
        const FloatPair pair = split(load_doubles(sums));
        sum = pair.high;
        store(sum_low + i, suffices ? load<f32x>(sum_low + i) : pair.low);
      } else {
        sum = fma(load<f32x>(sum_excluding_maxima + i), splat<f32x>(1.0f / kTermScale),
                  further_maxima);
      }
      store(sum_excluding_max + i, suffices ? plain : sum);
    }
  }

  // Computes high and low.
  void compute(std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kFloatLanes) {
      const f32x top = load<f32x>(largest + i), sum = load<f32x>(sum_excluding_max + i);
      if constexpr (kIsFloat) {
        const FloatPair log = log1p(FloatPair{sum, load<f32x>(sum_low + i)});
        const f32x total = top + log.high;
        store(high + i, total);
        store(low + i, sum_error(top, log.high, total) + log.low);
      } else {
        store(high + i, top);
        store(low + i, log1p(sum));
      }
    }
  }

 private:
  static constexpr bool kIsFloat = std::is_same_v<T, float>;
};

// x - (high + low), for float32 with a single rounding: the rounding error of x - high is added.
template <class T>
class Difference {
 public:
  Difference(f32x high, f32x low)
      : high_(high),
        low_(low),
        unordered_(canonical_nan(high == high ? splat<f32x>(-kInfinity) : high)) {}

  // True if of<true>() may be used, for float32 elements of all groups: high > 0, no |x| has a
  // larger exponent than high, and no result is infinite.
  DMLOPS_INLINE static bool are_in_range(f32x smallest, f32x high) {
    // The largest number with this exponent.
    const auto same_exponent = bit_cast<f32x>(bit_cast<u32x>(high) | 0x7fffffu);
    const i32x in_range = (high > 0.0f) & (high < 0x1p126f) & (smallest >= -same_exponent);
    return std::is_same_v<T, float> && !any_lane(~in_range);
  }
  static bool is_in_range(float smallest, float high) {
    return are_in_range(splat<f32x>(smallest), splat<f32x>(high));
  }

  template <bool kInRange = false>
  DMLOPS_INLINE f32x of(f32x x) const {
    const f32x difference = x - high_;
    if constexpr (!std::is_same_v<T, float>) {
      return canonical_nan(difference - low_);
    } else if constexpr (kInRange) {
      return difference + ((x - (difference + high_)) - low_);
    } else {
      // Differences are NaN for all elements of some groups, and for elements of -infinity in
      // others.
      const f32x result = difference + (sum_error(x, -high_, difference) - low_);
      return result == result ? result : unordered_;
    }
  }

 private:
  f32x high_, low_, unordered_;
};

}  // namespace dmlops::DMLOPS_TARGET
