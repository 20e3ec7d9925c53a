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
  FloatPair(const HalfPair& lower, const HalfPair& upper)
      : high(join<f32x>(lower.high, upper.high)), low(join<f32x>(lower.low, upper.low)) {}
  explicit FloatPair(Doubles value) : FloatPair(HalfPair(value.lower), HalfPair(value.upper)) {}
  FloatPair(float of_high, float of_low) : high(splat<f32x>(of_high)), low(splat<f32x>(of_low)) {}
  explicit FloatPair(double value) : high(splat<f32x>(static_cast<float>(value))) {
    const double error = value - static_cast<double>(high[0]);
    low = splat<f32x>(static_cast<float>(error == error ? error : 0));
  }
};

}  // namespace dmlops::DMLOPS_TARGET
