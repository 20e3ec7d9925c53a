// The terms of softmax, and their sums.
#pragma once

#include "kernels/blocks/row_elements.hpp"
#include "kernels/simd/fold.hpp"
#include "kernels/simd/math.hpp"
#include "kernels/softmax/lane_sums.hpp"

namespace dmlops::DMLOPS_TARGET {

// Tracks the largest |x|. May ignore NaN.
struct LargestAbs {
  f32x largest = {};

  DMLOPS_INLINE void operator+=(f32x x) { largest = max_abs(x, largest); }
  DMLOPS_INLINE void operator+=(const LargestAbs& other) { *this += other.largest; }
};

struct NothingSeen {
  DMLOPS_INLINE void operator+=(f32x) {}
  DMLOPS_INLINE void operator+=(const NothingSeen&) {}
};

// e^x = 2^(k/8) e^r for float32 elements, as an unevaluated sum power (1 + m).
//
// The relative error is 0.18 * 2^-24. `power` is a table entry, a float32 number that differs from
// c 2^(k/8) by 0.05 * 2^-24: the factor c, common to all terms, is chosen so that all 8 entries are
// close. The polynomial and its roundings add 0.08, the range reduction 0.05: its divisor, ln(2) /
// 8 / 2579, is a float32 number to 2^-35.6, so that a single fused multiply-add reduces the range.
template <class T>
struct SoftmaxTerm {
  static constexpr float kFar = 256;      // for |x| + 132 below, k * 2579 is exact
  static constexpr float kLowest = -190;  // the smallest binary exponent, relative to the maximum's
  static constexpr int kScale = 64;       // the maximum's binary exponent, against underflow
  static constexpr int kNumbers = 2;      // that a term consists of

  f32x power, m;

  SoftmaxTerm() = default;
  DMLOPS_INLINE SoftmaxTerm(f32x x, u32x exponent) {
    constexpr float kShift = 0x1.8p23f, kMultiple = 2579.0f;
    const f32x shifted = fma(x, splat<f32x>(8 * kLog2E), splat<f32x>(kShift));
    const f32x k = fma(shifted, splat<f32x>(kMultiple), splat<f32x>(-kShift * kMultiple));
    const f32x r = fma(k, splat<f32x>(-0x1.19d24ap-15f), x);
    const i32x index = bit_cast<i32x>(shifted);
    power = bit_cast<f32x>((bit_cast<u32x>(index) << 20) + bit_cast<u32x>(lookup(kBits, index)) +
                           exponent);
    m = r * polynomial(r, 1.0f, 0.5f, 0x1.555c6ep-3f, 0x1.555662p-5f);
  }

  DMLOPS_INLINE f32x rounded() const { return fma(power, m, power); }

  // Returns the product with the unevaluated sum high + low, rounded once if it is normal.
  DMLOPS_INLINE f32x times(f32x high, f32x low) const {
    return fma(power, high, power * fma(m, high, low));
  }

  // Returns the quotient by the group's sum, given the product with its reciprocal: 1 if the term,
  // rounded like those of the sum, equals the rounded sum. Otherwise the sum exceeds the rounded
  // term by at least half an ulp, so that no quotient exceeds 1.
  DMLOPS_INLINE f32x quotient(f32x product, f32x sum) const {
    return rounded() == sum ? splat<f32x>(1.0f) : product;
  }

  DMLOPS_INLINE void store_to(float* powers, float* remainders) const {
    store(powers, power);
    store(remainders, m);
  }
  DMLOPS_INLINE void load_from(const float* powers, const float* remainders) {
    power = load<f32x>(powers);
    m = load<f32x>(remainders);
  }

 private:
  // The bits of c 2^(k/8), minus k << 20, for c = 0.99743897.
  static constexpr std::int32_t kBits[8] = {1065310249, 1065040446, 1064817700, 1064669698,
                                            1064603205, 1064625598, 1064744922, 1064969950};
};

// e^x = 2^f 2^n for float16 elements, to 2.7e-6.
template <>
struct SoftmaxTerm<float16> {
  static constexpr float kFar = 0x1p17f;
  static constexpr float kLowest = -100;
  static constexpr int kScale = 0;
  static constexpr int kNumbers = 1;

  f32x term;

  SoftmaxTerm() = default;
  DMLOPS_INLINE SoftmaxTerm(f32x x, u32x exponent) {
    const Power nearest = nearest_power(x, splat<f32x>(kLog2E), splat<f32x>(kPowerShift));
    const f32x f = fma(x, splat<f32x>(kLog2E), -nearest.n);
    term = polynomial(f, 0x1.ffffe8p-1f, 0x1.62e0dep-1f, 0x1.ec06b2p-3f, 0x1.ca13ecp-5f,
                      0x1.399ee4p-7f) *
           bit_cast<f32x>(bit_cast<u32x>(nearest.value) + exponent);
  }

  DMLOPS_INLINE f32x rounded() const { return term; }
  DMLOPS_INLINE f32x times(f32x high, f32x) const { return term * high; }
  DMLOPS_INLINE static f32x quotient(f32x product, f32x) { return product; }
  DMLOPS_INLINE void store_to(float* terms, float*) const { store(terms, term); }
  DMLOPS_INLINE void load_from(const float* terms, const float*) { term = load<f32x>(terms); }
};

// The sum of a group's terms, rounded to float32, and its reciprocal, the unevaluated sum
// high + low; for float16 only `high` is used. GroupTerms has the reciprocal times 2^kScale.
struct TermSum {
  f32x sum, high, low;
};

// Terms of a group, 2^kScale e^x / 2^N, where 2^N is the power of two nearest to e^max. This factor
// cancels in the quotient by the sum, so that no rounded difference of elements enters an
// exponential. From |max| = kFar on, the maximum is subtracted from the elements first, which is
// exact unless the term is negligible.
template <class T>
class GroupTerms {
 public:
  // `top`: the maxima of the groups that the lanes belong to.
  explicit GroupTerms(f32x top) : far_(abs(top) < SoftmaxTerm<T>::kFar ? splat<f32x>(0.0f) : top) {
    const f32x n = nearest_power(top - far_, splat<f32x>(kLog2E), splat<f32x>(kPowerShift)).n;
    end_ = (n + SoftmaxTerm<T>::kLowest) * kLn2;
    exponent_ = bit_cast<u32x>(__builtin_convertvector(SoftmaxTerm<T>::kScale - n, i32x)) << 23;
  }

  DMLOPS_INLINE SoftmaxTerm<T> operator()(f32x x) const {
    return SoftmaxTerm<T>(max(x - far_, end_), exponent_);
  }
  DMLOPS_INLINE f32x term(f32x x, NothingSeen&) const { return (*this)(x).rounded(); }
  DMLOPS_INLINE static f32x result(const SoftmaxTerm<T>& term, const TermSum& sum) {
    const f32x product = term.times(sum.high, sum.low);
    return canonical_nan(
        term.quotient(SoftmaxTerm<T>::kScale == 0 ? product : product * 0x1p-64f, sum.sum));
  }

 private:
  f32x far_, end_;
  u32x exponent_;
};

// The terms e^x, with kScale = N = 0: the same results for elements from -kLargest to kLargest.
// kDominated: a term may equal the rounded sum, unlike in groups of several elements from -kNear to
// kNear, where each other term is at least e^-16 of it.
template <class T, bool kDominated = true>
struct PlainGroupTerms {
  static constexpr float kLargest = 22, kNear = 8;

  DMLOPS_INLINE SoftmaxTerm<T> operator()(f32x x) const { return SoftmaxTerm<T>(x, u32x{}); }
  DMLOPS_INLINE f32x term(f32x x, LargestAbs& seen) const {
    seen += x;
    return (*this)(x).rounded();
  }
  DMLOPS_INLINE static f32x result(const SoftmaxTerm<T>& term, const TermSum& sum) {
    const f32x product = term.times(sum.high, sum.low);
    return kDominated ? term.quotient(product, sum.sum) : product;
  }
};

// Calls finish(terms) with terms for groups of `count` elements up to `largest`, and returns true,
// if PlainGroupTerms has the same results for them.
template <class T, class Finish>
DMLOPS_INLINE bool finish_plain(float largest, std::int64_t count, const Finish& finish) {
  using Terms = PlainGroupTerms<T>;
  if (!(largest <= Terms::kLargest)) return false;
  if constexpr (std::is_same_v<T, float>) {
    if (largest > Terms::kNear || count == 1) {
      finish(Terms());
      return true;
    }
  }
  finish(PlainGroupTerms<T, false>());
  return true;
}

// Sums of groups, rounded, and their reciprocals; see TermSum.
template <class T, int kCapacity>
struct TermSums {
  using Sum = typename LaneSums<T>::Lane;

  alignas(kVectorBytes) Sum sum[kCapacity];
  alignas(kVectorBytes) float rounded[kCapacity];
  alignas(kVectorBytes) float high[kCapacity];
  alignas(kVectorBytes) float low[kCapacity];

  // Sets the lanes past the last group, which are computed with; the sums follow.
  DMLOPS_INLINE void clear_past(std::int64_t count) {
    std::memset(sum + (count - 1) / kFloatLanes * kFloatLanes, 0, kFloatLanes * sizeof(Sum));
  }

  // Computes the reciprocals times 2^kScale if the terms are scaled. Returns true if no sum is NaN.
  bool compute(std::int64_t count, bool is_scaled) {
    const Sum numerator = is_scaled && SoftmaxTerm<T>::kScale != 0 ? Sum{0x1p64f} : Sum{1};
    i32x unordered = {};
    for (std::int64_t i = 0; i < count; i += kFloatLanes) {
#pragma GCC unroll 16
      for (std::int64_t j = i; j < i + kFloatLanes; j += kLanes<Vec<Sum>>) {
        const Vec<Sum> sums = load<Vec<Sum>>(sum + j), exact = numerator / sums;
        if constexpr (std::is_same_v<T, float>) {
          store(rounded + j, to_float(sums));
          store(high + j, to_float(exact));
          store(low + j, to_float(exact - to_double(high + j)));
        } else {
          store(high + j, exact);
        }
      }
      const f32x reciprocals = load<f32x>(high + i);
      unordered |=
          (reciprocals != reciprocals) & (lane_indices() < static_cast<std::int32_t>(count - i));
    }
    return !any_lane(unordered);
  }

  // Returns the sum of group k in every lane, or of the vector of groups from c on.
  DMLOPS_INLINE TermSum of_group(std::int64_t k) const {
    return {splat<f32x>(rounded[k]), splat<f32x>(high[k]), splat<f32x>(low[k])};
  }
  DMLOPS_INLINE TermSum of_vector(std::int64_t c) const {
    return {load<f32x>(rounded + c), load<f32x>(high + c), load<f32x>(low + c)};
  }
};

}  // namespace dmlops::DMLOPS_TARGET
