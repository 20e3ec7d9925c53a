// The activations, each as a functor on float32 lanes: the one place of its formula, alone and fused.
//
// `alpha` and `beta` are the first and second of ActivationParameters, whatever their names. A NaN comes out as some NaN; the
// kernels make it the canonical one. Singular parameters (0, infinity, NaN) give what the formula as written gives in IEEE
// arithmetic, where the comment does not say otherwise.
#pragma once

#include "dmlops/activation.hpp"
#include "simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

// A number as power * fraction: a power of two within float32 with its sign, and 1 <= fraction < 2 where that is possible.
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

// A constant to 46 bits, as power * (high + low). A product overflows or underflows where its result does, but not before.
struct Factor {
  f32x power, high, low;

  // `low` is not 0 and has the sign of `high`, so that the product with an infinity is one.
  explicit Factor(double value) {
    const Decomposed decomposed(value);
    const double fraction = decomposed.fraction;
    const double truncated = bit_cast<double>(bit_cast<std::uint64_t>(fraction) & ~std::uint64_t{0} << 29);
    power = splat<f32x>(static_cast<float>(decomposed.power));
    high = splat<f32x>(static_cast<float>(truncated));
    low = splat<f32x>(static_cast<float>(fraction - truncated + fraction * 0x1p-60));
  }

  DMLOPS_INLINE f32x operator*(f32x x) const {
    const f32x scaled = x * power;
    return fma(scaled, high, scaled * low);
  }
};

// x >= 0 ? x : alpha (e^x - 1)
struct Elu {
  f32x alpha;
  explicit Elu(const ActivationParameters& p) : alpha(splat<f32x>(p.alpha)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const {
    return x >= 0.0f ? x : alpha * expm1_nonpositive(x);
  }
};

// max(0, x) + min(0, alpha (e^(x / alpha) - 1)): x for x >= 0, whatever alpha is. For alpha = 0 it is -0 below, the limit.
//
// Nothing is divided by alpha, as the rounding of the quotient would show: x = n alpha ln(2) + r, and alpha (e^(r / alpha) - 1)
// is a polynomial that begins with r. A small alpha is scaled by a power of two; the exponential is computed in halves, since
// for alpha < 0 it grows to 2^128.
struct Celu {
  f32x inverse_power, twice_power, alpha, inverse_alpha, log2, ln2, ln2_low, bound, limit;

  explicit Celu(const ActivationParameters& p) {
    const double original = static_cast<double>(p.alpha);
    const double power = original * original < 1 ? __builtin_fabs(Decomposed(original).power) : 1;
    const double a = power > 0 ? original / power : original, unit = a * 0x1.62e42fefa39efp-1;
    const auto constant = [](double value) { return splat<f32x>(static_cast<float>(value)); };
    inverse_power = constant(1 / power);
    twice_power = constant(2 * power);
    alpha = constant(a);
    inverse_alpha = constant(1 / a);
    log2 = constant(0x1.71547652b82fep0 / a);
    ln2 = constant(unit);
    ln2_low = constant(unit - static_cast<double>(static_cast<float>(unit)));
    bound = constant((original > 0 ? -18 : 89) * original);
    limit = constant(original >= 0 ? -original : -__builtin_inf());
  }

  DMLOPS_INLINE f32x operator()(f32x x) const {
    const f32x scaled = x * inverse_power;
    const Power power = nearest_power<-1>(scaled, log2);
    const f32x r = fma(-power.n, ln2_low, fma(-power.n, ln2, scaled)), t = r * inverse_alpha;
    const f32x m = fma(exp_tail(t, 1.0f), r * t, r);
    const f32x below = fma(m, power.value, alpha * (power.value - 0.5f)) * twice_power;
    return x >= 0.0f ? x : x <= bound ? limit : below;
  }
};

// max(0, min(alpha x + beta, 1)), with one rounding
struct HardSigmoid {
  f32x alpha, beta;
  explicit HardSigmoid(const ActivationParameters& p)
      : alpha(splat<f32x>(p.alpha)), beta(splat<f32x>(p.beta)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const {
    return at_least(at_most(fma(alpha, x, beta), splat<f32x>(1.0f)), splat<f32x>(0.0f));
  }
};

// x
struct Identity {
  explicit Identity(const ActivationParameters&) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return x; }
};

// x >= 0 ? x : alpha x
struct LeakyRelu {
  f32x alpha;
  explicit LeakyRelu(const ActivationParameters& p) : alpha(splat<f32x>(p.alpha)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return x >= 0.0f ? x : alpha * x; }
};

// alpha x + beta, with one rounding
struct Linear {
  f32x alpha, beta;
  explicit Linear(const ActivationParameters& p)
      : alpha(splat<f32x>(p.alpha)), beta(splat<f32x>(p.beta)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return fma(alpha, x, beta); }
};

// e^-|z| for z = factor x, where a rounding of z would cost |z| times as much: its product with log2(e) is not rounded before
// its integer part is gone. The result is power * (1 + delta) / 2^127, and 0 below 2^-254.
class ExpOfProduct {
 public:
  struct Result {
    f32x power, delta;
    i32x positive;  // z > 0
  };

  explicit ExpOfProduct(double factor)
      : log2_(factor * 0x1.71547652b82fep0), bound_(splat<f32x>(-254.0f) / log2_.high) {}

  DMLOPS_INLINE Result operator()(f32x x) const {
    const f32x scaled = x * log2_.power, below = at_least(-abs(scaled), bound_);
    const Power power = nearest_power<127>(below, log2_.high);  // its bits are 0 at the bound
    const f32x fraction = fma(below, log2_.low, fma(below, log2_.high, -power.n));
    return {power.value, expm1_of_remainder(fraction * kLn2), scaled > 0.0f};
  }

 private:
  Factor log2_;  // factor * log2(e)
  f32x bound_;
};

// ln(1 + e^z) = max(z, 0) + ln(1 + e^-|z|) for z = factor x. The logarithm is large + small, not rounded to one float32. It comes
// out times 2^127 if `lifted`, for a use that brings it back from below float32's range.
class SoftplusTail {
 public:
  struct Result {
    f32x large, small;
    i32x positive;  // z > 0
  };

  static constexpr double scale(bool lifted) { return lifted ? 0x1p127 : 1.0; }

  SoftplusTail(double factor, bool lifted)
      : exp_(factor), to_result_(splat<f32x>(lifted ? 1.0f : 0x1p-127f)), to_one_(splat<f32x>(lifted ? 0x1p-127f : 1.0f)) {}

  DMLOPS_INLINE Result operator()(f32x x) const {
    const auto [exp_power, delta, positive] = exp_(x);
    const f32x power = exp_power * to_result_, rest = power * delta;
    const f32x e = power + rest, m = e * to_one_;
    return {power, fma(e * m, log1p_tail(m), rest), positive};
  }

 private:
  ExpOfProduct exp_;
  f32x to_result_, to_one_;
};

// alpha ln(1 + e^(beta x))
struct ParametricSoftplus {
  SoftplusTail tail;
  f32x alpha;
  Factor product;

  explicit ParametricSoftplus(const ActivationParameters& p) : ParametricSoftplus(p, p.alpha * p.alpha >= 4) {}

  DMLOPS_INLINE f32x operator()(f32x x) const {
    const auto [large, small, positive] = tail(x);
    return fma(alpha, large, fma(alpha, small, positive ? product * x : splat<f32x>(0.0f)));
  }

 private:
  ParametricSoftplus(const ActivationParameters& p, bool lifted)
      : tail(static_cast<double>(p.beta), lifted),
        alpha(splat<f32x>(static_cast<float>(static_cast<double>(p.alpha) / SoftplusTail::scale(lifted)))),
        product(static_cast<double>(p.alpha) * static_cast<double>(p.beta)) {}
};

// x < 0 ? 0 : x
struct Relu {
  explicit Relu(const ActivationParameters&) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return at_least(x, splat<f32x>(0.0f)); }
};

// x > 0 ? gamma x : gamma (alpha e^x - alpha)
struct ScaledElu {
  f32x gamma;
  Factor product;
  explicit ScaledElu(const ActivationParameters& p)
      : gamma(splat<f32x>(p.beta)), product(static_cast<double>(p.alpha) * static_cast<double>(p.beta)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return x > 0.0f ? gamma * x : product * expm1_nonpositive(x); }
};

// alpha tanh(z) for z = beta x. Near 0, tanh(z) = z + z^3 p(z^2), with an error of 1.2e-9 of it. From 0.55 on it is
// 1 - 2 e / (1 + e) for e = e^-2|z| with the sign of z, in which roundings count little.
struct ScaledTanh {
  f32x alpha, beta;
  Factor product;
  ExpOfProduct exp;

  explicit ScaledTanh(const ActivationParameters& p)
      : alpha(abs(splat<f32x>(p.alpha))),
        beta(splat<f32x>(p.beta)),
        product(static_cast<double>(p.alpha) * static_cast<double>(p.beta)),
        exp(2 * static_cast<double>(p.beta)) {}

  DMLOPS_INLINE f32x operator()(f32x x) const {
    const f32x z = beta * x, square = z * z, linear = product * x;
    const f32x p = polynomial(square, -0x1.55554ap-2f, 0x1.110ceep-3f, -0x1.b91e7ep-5f, 0x1.58e518p-6f, -0x1.9921a2p-8f);
    const f32x near = fma(linear, square * p, linear);
    const auto [power, delta, positive] = exp(x);
    const f32x e = fma(power, delta, power);  // times 2^127
    const f32x far = fma(alpha, e / fma(e, splat<f32x>(-0.5f), splat<f32x>(-0x1p126f)), alpha);
    return copysign(abs(z) < 0.55f ? near : far, linear);
  }
};

// 1 / (1 + e^-x)
struct Sigmoid {
  explicit Sigmoid(const ActivationParameters&) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return sigmoid(x); }
};

// ln(1 + e^(steepness x)) / steepness. An infinite steepness is relu, the limit, but for 0.
struct Softplus {
  SoftplusTail tail;
  f32x inverse, inverse_low;

  explicit Softplus(const ActivationParameters& p) : Softplus(p, p.alpha * p.alpha < 0.25f) {}

  DMLOPS_INLINE f32x operator()(f32x x) const {
    const auto [large, small, positive] = tail(x);
    const f32x linear = positive ? x : splat<f32x>(0.0f);
    return fma(large, inverse, fma(large, inverse_low, fma(small, inverse, linear)));
  }

 private:
  // Where it would be above 4, every finite x overflows anyhow, and inf - inf must not come up on the way.
  Softplus(const ActivationParameters& p, bool lifted) : tail(static_cast<double>(p.alpha), lifted) {
    const double exact = 1 / (static_cast<double>(p.alpha) * SoftplusTail::scale(lifted));
    const double limited = exact > 4 ? 4 : exact < -4 ? -4 : exact;
    inverse = splat<f32x>(static_cast<float>(limited));
    inverse_low = splat<f32x>(static_cast<float>(limited - static_cast<double>(static_cast<float>(limited))));
  }
};

// x / (1 + |x|). The largest float32 stands in for infinity.
struct Softsign {
  explicit Softsign(const ActivationParameters&) {}
  DMLOPS_INLINE f32x operator()(f32x x) const {
    const f32x largest = splat<f32x>(0x1.fffffep127f);
    const f32x finite = at_least(at_most(x, largest), -largest);
    return finite / (1.0f + abs(finite));
  }
};

// tanh(x)
struct Tanh {
  explicit Tanh(const ActivationParameters&) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return tanh(x); }
};

// x > alpha ? x : 0. A NaN in alpha is above every x.
struct ThresholdedRelu {
  f32x alpha;
  explicit ThresholdedRelu(const ActivationParameters& p)
      : alpha(splat<f32x>(p.alpha == p.alpha ? p.alpha : kInfinity)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return x <= alpha ? splat<f32x>(0.0f) : x; }
};

// x > threshold ? x - bias : x < -threshold ? x + bias : 0. With a NaN as threshold it is 0.
struct Shrink {
  f32x bias, threshold;
  explicit Shrink(const ActivationParameters& p)
      : bias(splat<f32x>(p.alpha)), threshold(splat<f32x>(p.beta == p.beta ? p.beta : kInfinity)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const {
    const f32x below = x >= -threshold ? splat<f32x>(0.0f) : x + bias;  // a NaN in x goes this way
    return x > threshold ? x - bias : below;
  }
};

// x (1 + erf(x / sqrt(2))) / 2
struct Gelu {
  explicit Gelu(const ActivationParameters&) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return gelu(x); }
};

template <class...>
struct List {};

// In the order of Activation.
using Activations = List<Elu, Celu, HardSigmoid, Identity, LeakyRelu, Linear, ParametricSoftplus, Relu, ScaledElu,
                         ScaledTanh, Sigmoid, Softplus, Softsign, Tanh, ThresholdedRelu, Shrink, Gelu>;

}  // namespace dmlops::DMLOPS_TARGET
