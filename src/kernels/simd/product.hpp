// Products with a constant of more than float32's precision.
#pragma once

#include "kernels/simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

// A number as power * fraction: a signed power of two within float32's range, and 1 <= fraction < 2
// if possible.
struct Decomposed {
  double power, fraction;

  explicit Decomposed(double value) : power(value), fraction(1.0) {
    if (value == 0 || value - value != 0) return;  // 0, infinity, NaN
    const double abs_value = __builtin_fabs(value);
    power = bit_cast<double>(bit_cast<std::uint64_t>(abs_value) & ~std::uint64_t{0} << 52);
    power = power < 0x1p-126 ? 0x1p-126 : power > 0x1p126 ? 0x1p126 : power;
    fraction = abs_value / power;
    power = __builtin_copysign(power, value);
  }
};

// The exponent of a power of two.
DMLOPS_INLINE int binary_exponent(double power) {
  return static_cast<int>(bit_cast<std::uint64_t>(power) >> 52) - 1023;
}

// A constant as an unevaluated sum high + low of 46 bits. `low` is not 0 and has the sign of
// `high`, so that both products with an infinity are the same infinity.
struct SplitConstant {
  f32x high, low;

  explicit SplitConstant(double value) {
    const double truncated =
        bit_cast<double>(bit_cast<std::uint64_t>(value) & ~std::uint64_t{0} << 29);
    high = splat<f32x>(static_cast<float>(truncated));
    low = splat<f32x>(static_cast<float>(value - truncated + value * 0x1p-60));
  }
};

// A constant as a factor. Intermediates overflow or underflow only if the result does, and
// subnormal results are rounded once, by the last operation: powers of two are applied first for a
// large factor, last for a small one.
class Factor {
 public:
  explicit Factor(double value) : Factor(Decomposed(value)) {}

  DMLOPS_INLINE f32x operator*(f32x x) const {
    const f32x scaled = x * first_;
    return fma(scaled, fraction_.high, scaled * fraction_.low) * last_;
  }

 private:
  // The fraction of a product of two float32 may need a further power of two. For a small factor it
  // is kept below 1, so that no finite x overflows in an intermediate.
  explicit Factor(const Decomposed& whole) : Factor(whole, Decomposed(whole.fraction)) {}
  Factor(const Decomposed& whole, const Decomposed& rest)
      : Factor(__builtin_fabs(whole.power) < 1, whole.power, rest) {}
  Factor(bool small, double power, const Decomposed& rest)
      : first_(splat<f32x>(static_cast<float>(small ? rest.power : power))),
        last_(splat<f32x>(static_cast<float>(small ? 2 * power : rest.power))),
        fraction_(small ? rest.fraction / 2 : rest.fraction) {}

  f32x first_, last_;
  SplitConstant fraction_;
};

// e^-|z| for z = factor x. A rounding error of z would be amplified by |z|, so the product with
// log2(e) is rounded only after its integer part is subtracted. The result is power * (1 + delta) /
// 2^scale, and 0 below 2^-278, whose product with any float32 is at most half of the smallest
// float32. `scale` is 126 or 127.
class ExpOfProduct {
 public:
  struct Result {
    f32x power, delta;
    i32x positive;  // z > 0
  };

  ExpOfProduct(double factor, int scale)
      : ExpOfProduct(Decomposed(factor * 0x1.71547652b82fep0), scale) {}

  DMLOPS_INLINE Result operator()(f32x x) const {
    const f32x scaled = x * power_, below = max(minus_abs(scaled), bound_);
    // The range of n exceeds float32's exponents, so the smallest powers are scaled by 2^26 in
    // intermediates.
    const i32x deep = below < deep_bound_;
    // The power is 0 at the bound.
    const Power power = nearest_power(below, log2_.high, deep ? shift_ + 26.0f : shift_);
    const f32x fraction = fma(below, log2_.high, -power.n);
    return {power.value * (deep ? splat<f32x>(0x1p-26f) : splat<f32x>(1.0f)),
            expm1_of_remainder(fma(fraction, splat<f32x>(kLn2), below * low_)), scaled > 0.0f};
  }

 private:
  ExpOfProduct(const Decomposed& log2, int scale)
      : shift_(splat<f32x>(kPowerShift + static_cast<float>(scale))),
        power_(splat<f32x>(static_cast<float>(log2.power))),
        log2_(log2.fraction),
        low_(log2_.low * kLn2),
        deep_bound_(splat<f32x>(-250.0f) / log2_.high),
        bound_(splat<f32x>(-279.0f) / log2_.high) {}

  f32x shift_, power_;
  SplitConstant log2_;  // factor * log2(e) / power
  f32x low_, deep_bound_, bound_;
};

}  // namespace dmlops::DMLOPS_TARGET
