// The numbers of groups in normalizations, such as mean and variance: a vector lane for each group.
#pragma once

#include "kernels/simd/float_pair.hpp"

namespace dmlops::DMLOPS_TARGET {

using Mask = decltype(f64x{} < f64x{});

// Divides by a number of elements, below 2^51. The corrected product with the reciprocal is the
// rounded quotient: before it is rounded, its error is at most 1.5 * 2^-53 ulp, but a quotient by n
// is at least 1 / (2 n) ulp from the middle between two numbers. Divisions take three times as
// long.
class Divisor {
 public:
  explicit Divisor(std::int64_t number)
      : number_(splat<f64x>(static_cast<double>(number))), reciprocal_(1.0 / number_) {}

  bool is_one() const { return number_[0] == 1.0; }
  DMLOPS_INLINE friend f64x operator/(f64x x, const Divisor& divisor) {
#if defined(DMLOPS_HAS_DOUBLE_FMA)
    const f64x product = x * divisor.reciprocal_;
    const f64x rest = fma(-product, divisor.number_, x);
    // Neither signed zeros nor infinities need a correction.
    return ((rest < 0.0) | (rest > 0.0)) ? fma(rest, divisor.reciprocal_, product) : product;
#else
    return x / divisor.number_;
#endif
  }

 private:
  f64x number_;
  [[maybe_unused]] f64x reciprocal_;
};

// A group's numbers in a lane of a struct of vectors.
template <class Vectors>
class LaneOf {
 public:
  LaneOf(const Vectors* vectors, std::int64_t k)
      : vectors_(vectors[k / kLanes<f64x>]), lane_(k % kLanes<f64x>) {}

  DMLOPS_INLINE double operator()(f64x Vectors::*member) const { return (vectors_.*member)[lane_]; }
  DMLOPS_INLINE FloatPair operator()(HalfPair Vectors::*member) const {
    const HalfPair& pair = vectors_.*member;
    return {pair.high[lane_], pair.low[lane_]};
  }
  DMLOPS_INLINE f32x operator()(f32half Vectors::*member) const {
    return splat<f32x>((vectors_.*member)[lane_]);
  }
  DMLOPS_INLINE bool operator()(Mask Vectors::*member) const {
    return (vectors_.*member)[lane_] != 0;
  }

 private:
  const Vectors& vectors_;
  std::int64_t lane_;
};

// The numbers of the groups in two structs of vectors.
template <class Vectors>
struct BothOf {
  const Vectors &lower, &upper;

  DMLOPS_INLINE Doubles operator()(f64x Vectors::*member) const {
    return {lower.*member, upper.*member};
  }
  DMLOPS_INLINE FloatPair operator()(HalfPair Vectors::*member) const {
    return {lower.*member, upper.*member};
  }
  DMLOPS_INLINE f32x operator()(f32half Vectors::*member) const {
    return join<f32x>(lower.*member, upper.*member);
  }
};

// The groups of a vector whose results are linear.
struct LinearGroups {
  i32x mask;
  bool all, any;

  LinearGroups() = default;
  LinearGroups(Mask lower, Mask upper) {
    const f64x one = f64x{} + 1.0;
    mask = rounded(Doubles{lower ? one : f64x{}, upper ? one : f64x{}}) > 0.0f;
    all = !any_lane(~mask);
    any = any_lane(mask);
  }
};

// The numbers of up to kCapacity groups. Functions of several groups begin at multiples of
// kLanes<f64x>, and compute whole vectors.
template <class Formula, std::int64_t kCapacity>
class GroupMoments {
 public:
  using Numbers = typename Formula::Numbers;

  // Begins `count` groups from `first` on; load(operand, c) returns the numbers of the vector of
  // groups at first + c in an operand.
  template <class Load>
  void begin(const Formula& formula, std::int64_t first, std::int64_t count, const Load& load) {
    for (std::int64_t c = 0; c < count; c += kHere)
      formula.begin(numbers_[(first + c) / kHere], [&](int operand) { return load(operand, c); });
  }

  // Sets group k to group `from` of other moments.
  template <std::int64_t kOther>
  void set(std::int64_t k, const GroupMoments<Formula, kOther>& others, std::int64_t from) {
    const auto lane = [](std::int64_t group) {
      return group / kHere * std::int64_t{sizeof(Numbers)} +
             group % kHere * std::int64_t{sizeof(double)};
    };
    char* const to = reinterpret_cast<char*>(numbers_) + lane(k);
    const char* const source = reinterpret_cast<const char*>(others.vectors()) + lane(from);
    for (std::size_t i = 0; i < sizeof(Numbers); i += sizeof(f64x))
      std::memcpy(to + i, source + i, sizeof(double));
  }

  // True if group k needs sweep s.
  bool needs(int s, std::int64_t k) const {
    return LaneOf<Numbers>(numbers_, k)(&Numbers::near_zero) == (s == 0);
  }
  // True if a group of the vector of float32 lanes at c needs sweep s.
  DMLOPS_INLINE bool needs_vector(int s, std::int64_t c) const {
    const Numbers* const both = numbers_ + c / kHere;
    return any_lane(needs(s, both[0]) | needs(s, both[1]));
  }

  // Ends sweep s of `count` groups from `first` on that need it; total(i, c) returns sum i of the
  // vector of groups at first + c.
  template <class Total>
  void end(const Formula& formula, int s, std::int64_t first, std::int64_t count,
           std::int64_t elements, const Total& total) {
    const Divisor divisor(elements);
    for (std::int64_t c = 0; c < count; c += kHere) {
      Numbers& groups = numbers_[(first + c) / kHere];
      const Mask needed = needs(s, groups);
      if (!any_lane(needed)) continue;
      f64x totals[Formula::kSums];
#pragma GCC unroll 16
      for (int i = 0; i < Formula::kSums; ++i) totals[i] = total(i, c);
      Numbers result = groups;
      formula.end(s, result, totals, divisor);
      assign(needed, result, groups);
    }
  }

  // Returns the vectors of groups, of which group k is in vector k / kLanes<f64x>.
  DMLOPS_INLINE const Numbers* vectors() const { return numbers_; }
  DMLOPS_INLINE double number(std::int64_t k, f64x Numbers::*member) const {
    return LaneOf<Numbers>(numbers_, k)(member);
  }
  // The numbers of the vector of float32 lanes at c.
  DMLOPS_INLINE Doubles numbers(std::int64_t c, f64x Numbers::*member) const {
    const Numbers* const both = numbers_ + c / kHere;
    return BothOf<Numbers>{both[0], both[1]}(member);
  }

 private:
  static constexpr std::int64_t kHere = kLanes<f64x>;

  DMLOPS_INLINE static Mask needs(int s, const Numbers& groups) {
    return s == 0 ? groups.near_zero : ~groups.near_zero;
  }
  // Sets the masked groups of `to`, vector by vector: compilers copy whole structs by narrower
  // stores, for which loads of vectors wait.
  DMLOPS_INLINE static void assign(Mask mask, const Numbers& from, Numbers& to) {
    constexpr std::size_t size = sizeof(f64x);
    char* const target = reinterpret_cast<char*>(&to);
    const char* const source = reinterpret_cast<const char*>(&from);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < sizeof(Numbers); i += size) {
      f64x number, other;
      std::memcpy(&number, source + i, size);
      std::memcpy(&other, target + i, size);
      number = mask ? number : other;
      std::memcpy(target + i, &number, size);
    }
  }

  alignas(kVectorBytes) Numbers numbers_[kCapacity / kHere];
};

}  // namespace dmlops::DMLOPS_TARGET
