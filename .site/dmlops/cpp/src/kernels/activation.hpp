// The activations, each as a functor on float32 lanes: the one place of its formula, alone and
// fused.
//
// `alpha` and `beta` are the first and second of ActivationParameters, whatever their names.
//
// A NaN element comes out as some NaN; the kernels make it the canonical one. A parameter of 0
// gives what the formula as written gives in IEEE arithmetic, and so does a NaN; where an infinite
// one meets the exponential or tanh, the result may be NaN. Exceptions are in the comments.
#pragma once

#include "dmlops/activation.hpp"
#include "simd/product.hpp"

namespace dmlops::DMLOPS_TARGET {

// x >= 0 ? x : alpha (e^x - 1)
struct Elu {
  f32x alpha;
  explicit Elu(const ActivationParameters& p) : alpha(splat<f32x>(p.alpha)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const {
    return x >= 0.0f ? x : alpha * expm1_nonpositive(x);
  }
};

// max(0, x) + min(0, alpha (e^(x / alpha) - 1)): x for x >= 0, whatever alpha is. For alpha = 0 it
// is -0 below, the limit.
//
// Nothing is divided by alpha, as the rounding of the quotient would show: x = n alpha ln(2) + r,
// and alpha (e^(r / alpha) - 1) is a polynomial that begins with r. A small alpha is scaled by a
// power of two. The exponential is computed in halves, and times that power where it grows, for
// alpha < 0: up to 2^128 / |alpha|, but for an alpha below 2^-125.
struct Celu {
  f32x inverse_power, alpha, inverse_alpha, log2, ln2, ln2_low, shift, half, twice, bound, limit;

  explicit Celu(const ActivationParameters& p) {
    const double original = static_cast<double>(p.alpha);
    double power = original * original < 1 ? __builtin_fabs(Decomposed(original).power) : 1;
    if (original < 0 && power < 0x1p-125) power = 0x1p-125;
    const double a = power > 0 ? original / power : original, unit = a * 0x1.62e42fefa39efp-1;
    const double lowering = original < 0 ? power : 1;
    const double exponent = original < 0 ? binary_exponent(power) : 0;
    const auto constant = [](double value) { return splat<f32x>(static_cast<float>(value)); };
    inverse_power = constant(1 / power);
    alpha = constant(a);
    inverse_alpha = constant(1 / a);
    log2 = constant(0x1.71547652b82fep0 / a);
    ln2 = constant(unit);
    ln2_low = constant(unit - static_cast<double>(static_cast<float>(unit)));
    shift = splat<f32x>(kPowerShift - 1 + static_cast<float>(exponent));
    half = constant(lowering / 2);
    twice = constant(2 * power / lowering);
    bound = constant((original > 0 ? -18 : (128.25 - exponent) * 0x1.62e42fefa39efp-1) * original);
    limit = constant(original >= 0 ? -original : -__builtin_inf());
  }

  DMLOPS_INLINE f32x operator()(f32x x) const {
    const f32x scaled = x * inverse_power;
    const Power power = nearest_power(scaled, log2, shift);
    const f32x r = fma(-power.n, ln2_low, fma(-power.n, ln2, scaled)), t = r * inverse_alpha;
    const f32x m = fma(exp_tail(t, 1.0f), r * t, r);
    const f32x below = fma(m, power.value, alpha * (power.value - half)) * twice;
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

// ln(1 + e^z) = max(z, 0) + ln(1 + e^-|z|) for z = factor x. The logarithm is large + small, not
// rounded to one float32. It comes out times 2^126 if `lifted`, for a use that brings it back from
// below float32's range.
class SoftplusTail {
 public:
  struct Result {
    f32x large, small;
    i32x positive;  // z > 0
  };

  static constexpr double scale(bool lifted) { return lifted ? 0x1p126 : 1.0; }

  SoftplusTail(double factor, bool lifted)
      : exp_(factor),
        to_result_(splat<f32x>(lifted ? 1.0f : 0x1p-126f)),
        to_one_(splat<f32x>(lifted ? 0x1p-126f : 1.0f)) {}

  DMLOPS_INLINE Result operator()(f32x x) const {
    const auto [exp_power, delta, positive] = exp_(x);
    const f32x power = exp_power * to_result_, rest = power * delta;
    const f32x e = power + rest, m = e * to_one_;
    // ln(1 + m) = m - m^2 / 2 + m^3 p(m) for 0 <= m <= 1, with an error of 1.2e-9 of it.
    const f32x p = polynomial(m, 0x1.5554b4p-2f, -0x1.ffdcfp-3f, 0x1.981756p-3f, -0x1.4c5ad8p-3f,
                              0x1.03aafap-3f, -0x1.5fe1d8p-4f, 0x1.6ace1ep-5f, -0x1.e0e888p-7f,
                              0x1.2a2f36p-9f);
    return {power, fma(e * -0.5f, m, fma(e * m, m * p, rest)), positive};
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

  explicit ParametricSoftplus(const ActivationParameters& p)
      : ParametricSoftplus(p, p.alpha * p.alpha > 1) {}

  DMLOPS_INLINE f32x operator()(f32x x) const {
    const auto [large, small, positive] = tail(x);
    return fma(alpha, large, fma(alpha, small, positive ? product * x : splat<f32x>(0.0f)));
  }

 private:
  ParametricSoftplus(const ActivationParameters& p, bool lifted)
      : tail(static_cast<double>(p.beta), lifted),
        alpha(splat<f32x>(
            static_cast<float>(static_cast<double>(p.alpha) / SoftplusTail::scale(lifted)))),
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
      : gamma(splat<f32x>(p.beta)),
        product(static_cast<double>(p.alpha) * static_cast<double>(p.beta)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const {
    return x > 0.0f ? gamma * x : product * expm1_nonpositive(x);
  }
};

// alpha tanh(z) for z = beta x. Near 0, tanh(z) = z + z^3 p(z^2), with an error of 6.8e-9 of it.
// From 0.65 on it is 1 - 2 e / (1 + e) for e = e^-2|z| with the sign of z, in which roundings count
// little.
struct ScaledTanh {
  f32x alpha, beta;
  i32x sign;  // of alpha
  Factor product;
  ExpOfProduct exp;

  explicit ScaledTanh(const ActivationParameters& p)
      : alpha(abs(splat<f32x>(p.alpha))),
        beta(splat<f32x>(p.beta)),
        sign(bit_cast<i32x>(splat<f32x>(p.alpha)) & INT32_MIN),
        product(static_cast<double>(p.alpha) * static_cast<double>(p.beta)),
        exp(2 * static_cast<double>(p.beta)) {}

  DMLOPS_INLINE f32x operator()(f32x x) const {
    const f32x z = beta * x, square = z * z, linear = product * x;
    const f32x p = polynomial(square, -0x1.555524p-2f, 0x1.1103fp-3f, -0x1.b7cfb2p-5f,
                              0x1.4f5d36p-6f, -0x1.6968fap-8f);
    const f32x near = fma(linear, square * p, linear);
    const auto [power, delta, positive] = exp(x);
    const f32x e = fma(power, delta, power);  // times 2^126
    const f32x far = fma(alpha, e / fma(e, splat<f32x>(-0.5f), splat<f32x>(-0x1p125f)), alpha);
    return copysign(abs(z) < 0.65f ? near : far, bit_cast<f32x>(bit_cast<i32x>(z) ^ sign));
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
    return fma(large, inverse, fma(small, inverse, fma(large, inverse_low, linear)));
  }

 private:
  // Where it would be above 8, every finite x overflows anyhow, and inf - inf must not come up on
  // the way.
  Softplus(const ActivationParameters& p, bool lifted)
      : tail(static_cast<double>(p.alpha), lifted) {
    const double exact = 1 / (static_cast<double>(p.alpha) * SoftplusTail::scale(lifted));
    const double limited = exact > 8 ? 8 : exact < -8 ? -8 : exact;
    inverse = splat<f32x>(static_cast<float>(limited));
    inverse_low =
        splat<f32x>(static_cast<float>(limited - static_cast<double>(static_cast<float>(limited))));
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
using Activations =
    List<Elu, Celu, HardSigmoid, Identity, LeakyRelu, Linear, ParametricSoftplus, Relu, ScaledElu,
         ScaledTanh, Sigmoid, Softplus, Softsign, Tanh, ThresholdedRelu, Shrink, Gelu>;

}  // namespace dmlops::DMLOPS_TARGET
