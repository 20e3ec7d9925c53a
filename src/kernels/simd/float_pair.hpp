// float64 numbers as unevaluated sums of two float32.
#pragma once

#include "kernels/simd/doubles.hpp"

namespace dmlops::DMLOPS_TARGET {

// A vector of float64.
struct HalfPair {
  f32half high, low;

  HalfPair() = default;
  explicit HalfPair(f64x value) : high(to_float(value)) {
    alignas(kVectorBytes) float stored[kLanes<f64x>];  // see to_double()
    store(stored, high);
    const f64x error = value - to_double(stored);
    low = to_float(error == error ? error : f64x{});  // 0, not NaN, for infinity
  }
};
// Two vectors of float64, or a number in every lane.
struct FloatPair {
  f32x high, low;

  FloatPair() = default;
  FloatPair(f32x of_high, f32x of_low) : high(of_high), low(of_low) {}
  FloatPair(const HalfPair& lower, const HalfPair& upper)
      : high(join<f32x>(lower.high, upper.high)), low(join<f32x>(lower.low, upper.low)) {}
  explicit FloatPair(Doubles value) : FloatPair(HalfPair(value.lower), HalfPair(value.upper)) {}
  FloatPair(float of_high, float of_low) : high(splat<f32x>(of_high)), low(splat<f32x>(of_low)) {}
  explicit FloatPair(double value) : high(splat<f32x>(static_cast<float>(value))) {
    const double error = value - static_cast<double>(high[0]);
    low = splat<f32x>(static_cast<float>(error == error ? error : 0));
  }
};

// x * factor + addend, as an unevaluated sum.
DMLOPS_INLINE FloatPair fma(f32x x, const FloatPair& factor, const FloatPair& addend) {
  FloatPair sum;
  sum.high = fma(x, factor.high, addend.high);
  sum.low = fma(x, factor.low, addend.low);
  return sum;
}
DMLOPS_INLINE FloatPair operator+(FloatPair sum, f32x addend) {
  sum.low = sum.low + addend;
  return sum;
}

// The value of an unevaluated sum or of a single number, and of its product with a factor plus an
// addend.
DMLOPS_INLINE f32x value_of(const FloatPair& sum) { return sum.high + sum.low; }
DMLOPS_INLINE f32x value_of(f32x sum) { return sum; }
DMLOPS_INLINE f32x times_plus(const FloatPair& sum, f32x factor, f32x addend) {
  return fma(sum.high, factor, fma(sum.low, factor, addend));
}
DMLOPS_INLINE f32x times_plus(f32x sum, f32x factor, f32x addend) {
  return fma(sum, factor, addend);
}

}  // namespace dmlops::DMLOPS_TARGET
