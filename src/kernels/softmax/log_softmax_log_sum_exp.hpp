// The log-sum-exp of a group, and its difference from the elements.
#pragma once

#include "kernels/softmax/log_softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

// e^-r after reduce_range(), as an unevaluated sum hi + lo, to 2^-26.
//
// Compensates the factors e^(-n kLn2Low) that the terms of a sum omit, assuming the n of the
// maximum less 1. Each unit of difference in n causes an error of 2^-29, which matters in small
// sums of large terms only.
struct Inverse {
  f32x rounded, lacking;

  explicit Inverse(f32x r) {
    const f32x tail = exp_tail(-r, 1.0f), square = r * r;
    const f32x m = fma(tail, square, -r);
    rounded = m + 1.0f;
    lacking = (m - (rounded - 1.0f)) + (fma(tail, square, kLn2Low - r) - m);
  }
};

// log-sum-exp of groups, max + ln(1 + sum_excluding_max), as an unevaluated sum hi + lo: for
// float32 a rounded sum and its rounding error; for float16 the two terms, which is accurate
// enough.
template <class T, int kCapacity>
struct LogSumExp {
  using Sum = typename LaneSums<T>::Lane;

  alignas(kVectorBytes) float largest[kCapacity];
  alignas(kVectorBytes) Sum plain_sum[kCapacity];             // of kTermScale e^x
  alignas(kVectorBytes) Sum sum_excluding_maxima[kCapacity];  // of the terms below the maximum
  alignas(kVectorBytes) float max_count[kCapacity];  // number of elements equal to the maximum
  // The sum of e^(x - max) over all elements except one maximum; -1 if `plain_sum` does not suffice
  // to compute it.
  alignas(kVectorBytes) Sum sum_excluding_max[kCapacity];
  alignas(kVectorBytes) float high[kCapacity];
  alignas(kVectorBytes) float low[kCapacity];

  // Sets the lanes past the last group, which are computed with; the numbers of groups follow.
  DMLOPS_INLINE void clear_past(std::int64_t count) {
    const std::int64_t last = (count - 1) / kFloatLanes * kFloatLanes;
    for (float* const numbers : {largest, max_count, high, low}) store(numbers + last, f32x{});
    for (Sum* const sums : {plain_sum, sum_excluding_maxima, sum_excluding_max})
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

  // Likewise, if plain_sum excludes the term of one maximum. high and low hold e^-max meanwhile.
  //
  // The accepted range of maxima keeps significant terms, and their sum, in float32's range. The
  // sum is rounded at most once per step of a block and once per block. For float32, each rounding
  // is 2^-53 relative, which could matter if the other terms are below 2^-20 of the maximum's. For
  // float16 it is 2^-24, 2^-18 in all: 1/64 ulp of float16 for the logarithm of 1.5.
  bool take_plain_excluding_max(std::int64_t count) {
    constexpr float kLargest = kIsFloat ? 40 : 32;
    for (std::int64_t i = 0; i < count; i += kFloatLanes) {  // high + low: e^-max
      const f32x top = load<f32x>(largest + i);
      RangeReduction reduced = reduce_range<64>(top);
      const f32x inverse_power = bit_cast<f32x>((318u << 23) - bit_cast<u32x>(reduced.power));
      const i32x in_range = (top >= -64.0f) & (top <= kLargest);
      const f32x scale = in_range ? inverse_power : splat<f32x>(__builtin_nanf(""));  // 2^-n
      if constexpr (kIsFloat) {
        Inverse inverse(reduced.r);
        store(high + i, inverse.rounded * scale);
        store(low + i, inverse.lacking * scale);
      } else {
        store(high + i, short_exp(-reduced.r) * scale);
      }
    }
    Vec<Sum> worst = {};  // includes lanes past the last group, which hold a valid value
    for (std::int64_t i = 0; i < count; i += kLanes<Vec<Sum>>) {
      constexpr Sum kUnscale = Sum{1} / kTermScale, kSmallest = kIsFloat ? 0x1p-20f : 0.5f;
      const auto terms = load<Vec<Sum>>(plain_sum + i);
      Vec<Sum> sum;
      if constexpr (kIsFloat) {
        sum = terms * kUnscale * (to_double(high + i) + to_double(low + i));
      } else {
        sum = terms * kUnscale * load<f32x>(high + i);
      }
      const Vec<Sum> taken = sum >= kSmallest ? sum : splat<Vec<Sum>>(-1);
      store(sum_excluding_max + i, taken);
      worst = min(worst, taken);
    }
    return !any_bit(bit_cast<u32x>(worst), 1u << 31);  // 0 or -1
  }

  // True if plain_sum does not suffice for a group of the vector at i.
  DMLOPS_INLINE bool lacks_sum(std::int64_t i) const {
    Vec<Sum> worst = {};
    for (std::int64_t j = i; j < i + kFloatLanes; j += kLanes<Vec<Sum>>)
      worst = min(worst, load<Vec<Sum>>(sum_excluding_max + j));
    return any_bit(bit_cast<u32x>(worst), 1u << 31);  // 0 or -1
  }

  void take_nothing(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) sum_excluding_max[i] = -1;
  }

  // Computes sum_excluding_max from sum_excluding_maxima and max_count if plain_sum did not
  // suffice.
  void take_excluding_max(std::int64_t count) {
    const auto take = [&](std::int64_t i, Vec<Sum> sum) DMLOPS_LAMBDA_INLINE {
      const auto before = load<Vec<Sum>>(sum_excluding_max + i);
      store(sum_excluding_max + i, before >= Sum{0} ? before : sum);
    };
    for (std::int64_t i = 0; i < count; i += kFloatLanes) {
      if (!lacks_sum(i)) continue;
      const f32x top = load<f32x>(largest + i);
      const f32x further_maxima =
          load<f32x>(max_count + i) - 1.0f + (top - top);  // NaN if the maximum is infinite
      if constexpr (std::is_same_v<T, float>) {
        const TermsExcludingMax<T> terms(top);
        alignas(kVectorBytes) float shifted[kFloatLanes], n[kFloatLanes], added[kFloatLanes];
        store(shifted, terms.shifted_max());
        store(n, terms.n());
        store(added, further_maxima);
#pragma GCC unroll 16
        for (int k = 0; k < kLanes<f32x>; k += kLanes<f64x>) {
          const f64x remainder =
              to_double(shifted + k) - to_double(n + k) * static_cast<double>(kLn2);
          take(i + k, load<f64x>(sum_excluding_maxima + i + k) * (1.0 / kTermScale) *
                              exp_of_remainder(-remainder) +
                          to_double(added + k));
        }
      } else {
        take(i, fma(load<f32x>(sum_excluding_maxima + i), splat<f32x>(1.0f / kTermScale),
                    further_maxima));
      }
    }
  }

  // Computes high and low. Loops of short chains, since processors hold too few waiting
  // instructions for more than one vector of the whole chain; they overwrite the sums.
  void compute(std::int64_t count) {
    if constexpr (kIsFloat) {
      for (std::int64_t i = 0; i < count; i += kLanes<f64x>) {
        const Log1pReduction reduced = reduce_log1p(load<f64x>(sum_excluding_max + i));
        store(sum_excluding_max + i, reduced.z);
        store(plain_sum + i, reduced.k_ln2);
      }
      for (std::int64_t i = 0; i < count; i += kLanes<f64x>) {
        const f64x z = load<f64x>(sum_excluding_max + i), k_ln2 = load<f64x>(plain_sum + i);
        store(plain_sum + i, log1p_of({z, k_ln2}));
      }
      for (std::int64_t i = 0; i < count; i += kLanes<f64x>) {
        const f64x top = to_double(largest + i), log = load<f64x>(plain_sum + i);
        store(high + i, to_float(top + log));
        store(low + i, to_float(log - (to_double(high + i) - top)));
      }
    } else {
      for (std::int64_t i = 0; i < count; i += kFloatLanes) {
        store(high + i, load<f32x>(largest + i));
        store(low + i, log1p(load<f32x>(sum_excluding_max + i)));
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
