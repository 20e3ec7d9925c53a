// Products with a constant that is known beyond float32.
#pragma once

#include "simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

// A number as power * fraction: a power of two within float32 with its sign, and 1 <= fraction < 2
// where that is possible.
struct Decomposed {
  double power, fraction;

  explicit Decomposed(double value) : power(value), fraction(1.0) {
    if (value == 0 || value - value != 0) return;  // 0, infinity, NaN
    const double magnitude = __builtin_fabs(value);
    power = bit_cast<double>(bit_cast<std::uint64_t>(magnitude) & ~std::uint64_t{0} << 52);
    power = power < 0x1p-126 ? 0x1p-126 : power > 0x1p126 ? 0x1p126 : power;
    fraction = magnitude / power;
    power = __builtin_copysign(power, value);
  }
};

// A constant to 46 bits, as power * (high + low). A product overflows or underflows where its
// result does, but not before.
struct Factor {
  f32x power, high, low;

  // `low` is not 0 and has the sign of `high`, so that the product with an infinity is one.
  explicit Factor(double value) {
    const Decomposed decomposed(value);
    const double fraction = decomposed.fraction;
    const double truncated =
        bit_cast<double>(bit_cast<std::uint64_t>(fraction) & ~std::uint64_t{0} << 29);
    power = splat<f32x>(static_cast<float>(decomposed.power));
    high = splat<f32x>(static_cast<float>(truncated));
    low = splat<f32x>(static_cast<float>(fraction - truncated + fraction * 0x1p-60));
  }

  DMLOPS_INLINE f32x operator*(f32x x) const {
    const f32x scaled = x * power;
    return fma(scaled, high, scaled * low);
  }
};

// e^-|z| for z = factor x, where a rounding of z would cost |z| times as much: its product with
// log2(e) is not rounded before its integer part is gone. The result is power * (1 + delta) /
// 2^126, and 0 below 2^-253.
class ExpOfProduct {
 public:
  struct Result {
    f32x power, delta;
    i32x positive;  // z > 0
  };

  explicit ExpOfProduct(double factor)
      : log2_(factor * 0x1.71547652b82fep0),
        low_(log2_.low * kLn2),
        bound_(splat<f32x>(-253.0f) / log2_.high) {}

  DMLOPS_INLINE Result operator()(f32x x) const {
    const f32x scaled = x * log2_.power, below = at_least(-abs(scaled), bound_);
    const Power power = nearest_power<126>(below, log2_.high);  // 0 at the bound
    const f32x fraction = fma(below, log2_.high, -power.n);
    return {power.value, expm1_of_remainder(fma(fraction, splat<f32x>(kLn2), below * low_)),
            scaled > 0.0f};
  }

 private:
  Factor log2_;  // factor * log2(e)
  f32x low_, bound_;
};

}  // namespace dmlops::DMLOPS_TARGET
