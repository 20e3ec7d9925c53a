// The activations as functors on float32 lanes, for standalone and fused use.
//
// `alpha` and `beta` are the first and the second parameter, which DirectML may name otherwise.
//
// A NaN element gives a NaN of any payload, which kernels replace by the canonical one. With a
// parameter of 0 or NaN, results are those of the formula in IEEE arithmetic; with an infinite
// parameter in an exponential or tanh, results may be NaN. Comments note exceptions.
#pragma once

#include "dmlops/activation.hpp"
#include "kernels/activation_list.hpp"
#include "kernels/elementwise/swish.hpp"
#include "kernels/simd/exp_extended.hpp"
#include "kernels/simd/product.hpp"

namespace dmlops::DMLOPS_TARGET {

// x >= 0 ? x : alpha (e^x - 1)
struct Elu {
  f32x alpha;
  explicit Elu(const ActivationParameters& p) : alpha(splat<f32x>(p.alpha)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const {
    return x >= 0.0f ? x : alpha * expm1_nonpositive(x);
  }
};

// max(0, x) + min(0, alpha (e^(x / alpha) - 1)): x for x >= 0, for every alpha. For alpha = 0,
// results for x < 0 are -0, the limit.
//
// Avoids the division by alpha, whose rounding error would show: the range reduction is x = k step
// + r for step = alpha ln(2) / 8, followed by expm1_nonpositive scaled by alpha. A small alpha and
// x are scaled by a power of two. For alpha < 0 the exponential grows, up to 2^277: it is computed
// in units below 1, for large results smaller by 2^80.
struct Celu {
  f32x inverse_scale, alpha, half_inverse, log2, step, step_low, step_residual;
  f32x shift, unit, factor, deep_bound, bound, limit;

  explicit Celu(const ActivationParameters& p) {
    const double original = static_cast<double>(p.alpha);
    const bool grows = original < 0;
    double scale = original * original < 1 ? __builtin_fabs(Decomposed(original).power) : 1;
    if (grows && scale < 0x1p-125) scale = 0x1p-125;
    const double a = scale > 0 ? original / scale : original, eighth = a * 0x1.62e42fefa39efp-4;
    const double one = !grows ? 1 : scale < 0x1p-72 ? 0x1p-73 : scale / 2;
    const auto constant = [](double value) { return splat<f32x>(static_cast<float>(value)); };
    inverse_scale = constant(1 / scale);
    alpha = constant(a);
    half_inverse = constant(0.5 / a);
    log2 = constant(0x1.71547652b82fep3 / a);
    step = constant(eighth);
    // The residual of `step` is added to the small terms, which keeps r exact, or to r where k may
    // be large.
    const double residual = eighth - static_cast<double>(static_cast<float>(eighth));
    step_low = constant(grows ? residual : 0);
    step_residual = constant(grows ? 0 : residual);
    shift = splat<f32x>(kEighthUnit + static_cast<float>(8 * binary_exponent(one)));
    unit = constant(one);
    factor = constant(grows ? scale / one : scale);
    deep_bound = constant(grows ? 137 * a : -__builtin_inf());  // e^137 is below 2^198
    const double overflow = log1p(splat<f64x>(-0x1p128 / original))[0] * (1 + 0x1p-20);
    bound = constant(grows ? overflow * a : -18 * a);
    limit = constant(grows ? -__builtin_inf() : -original);
  }

  DMLOPS_INLINE f32x operator()(f32x x) const {
    const f32x scaled = x * inverse_scale;
    const i32x deep = scaled < deep_bound;
    const f32x from = deep ? shift - 640.0f : shift;
    const f32x shifted = fma(scaled, log2, from), k = shifted - from;
    const i32x index = bit_cast<i32x>(shifted);
    const f32x power = power_of_eighth(index);
    const f32x r =
        fma(k, -step_low, fma(lookup(kEighthShift, index), -alpha, fma(k, -step, scaled)));
    const auto [square, rest] = exp_terms(r, r * half_inverse, k, step_residual);
    const f32x before = power - unit, lost = power - (before + unit), product = alpha * before;
    const f32x product_low = fma(alpha, lost, fma(alpha, before, -product));
    const f32x high = fma(power, r, product), low = fma(power, r, product - high);
    const f32x small = fma(power, square, fma(power, rest, product_low));
    // Avoids a sum of zeros, which would lose the sign.
    const f32x below = minus_abs((high + (low + small)) * (deep ? factor * 0x1p80f : factor));
    return x >= 0.0f ? x : scaled <= bound ? limit : below;
  }
};

// max(0, min(alpha x + beta, 1)), with one rounding
struct HardSigmoid {
  f32x alpha, beta;
  explicit HardSigmoid(const ActivationParameters& p)
      : alpha(splat<f32x>(p.alpha)), beta(splat<f32x>(p.beta)) {}
  DMLOPS_INLINE NotNegative operator()(f32x x) const {
    return {min(fma(alpha, x, beta), splat<f32x>(1.0f))};
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

// ln(1 + e^z) = max(z, 0) + ln(1 + w) for z = factor x and w = e^-|z|. The logarithm is the
// unevaluated sum large + small: q + q^3 p(q^2) for q = w / (1 + w / 2) = 2 tanh(ln(1 + w) / 2),
// with a relative error of 4.5e-9. If `lifted`, the logarithm is scaled by 2^127 against underflow,
// and the caller's factor is scaled by 2^-127. No factor is subnormal, which is slow on some
// processors.
class SoftplusTail {
 public:
  struct Result {
    f32x large, small;
    i32x positive;  // z > 0
  };

  static constexpr double scale(bool lifted) { return lifted ? 0x1p127 : 1.0; }

  SoftplusTail(double factor, bool lifted)
      : exp_(factor, lifted ? 127 : 126),
        to_result_(splat<f32x>(lifted ? 1.0f : 0x1p-126f)),
        to_two_(splat<f32x>(lifted ? 0x1p-126f : 2.0f)) {}

  DMLOPS_INLINE Result operator()(f32x x) const {
    const auto [exp_power, delta, positive] = exp_(x);
    const f32x power = exp_power * to_result_, rest = power * delta;
    const f32x w = power + rest, w_low = (power - w) + rest;
    const f32x twice = w * to_two_, half = twice * 0.25f, half_low = w_low * to_two_ * 0.25f;
    const f32x sum = 1.0f + half, sum_low = ((1.0f - sum) + half) + half_low;
    const f32x inverse = 1.0f / sum, q = w * inverse, twice_q = twice * inverse;
    const f32x remainder = fma(-q, sum, w) + fma(-q, sum_low, w_low);
    const f32x square = twice_q * twice_q;  // the polynomial is one in 4 q^2
    const f32x p =
        polynomial(square, 0x1.555502p-6f, 0x1.99d1ccp-11f, 0x1.1ec03ep-15f, 0x1.1eca32p-19f);
    return {q, fma(q * square, p, remainder * inverse), positive};
  }

 private:
  ExpOfProduct exp_;
  f32x to_result_, to_two_;
};

// alpha ln(1 + e^(beta x))
struct ParametricSoftplus {
  SoftplusTail tail;
  f32x alpha;
  Factor product;

  explicit ParametricSoftplus(const ActivationParameters& p)
      : ParametricSoftplus(p, p.alpha * p.alpha > 4) {}

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
  DMLOPS_INLINE NotNegative operator()(f32x x) const { return {x}; }
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

// alpha tanh(z) for z = beta x. Near 0, tanh(z) = z + z^3 p(z^2), with a relative error of 6.8e-9.
// From 0.65 on it is 1 - 2 e / (1 + e) for e = e^-2|z| with the sign of z, where rounding errors
// are small.
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
        exp(2 * static_cast<double>(p.beta), 126) {}

  DMLOPS_INLINE f32x operator()(f32x x) const {
    const f32x z = beta * x, square = z * z, linear = product * x;
    const f32x p = polynomial(square, -0x1.555524p-2f, 0x1.1103fp-3f, -0x1.b7cfb2p-5f,
                              0x1.4f5d36p-6f, -0x1.6968fap-8f);
    const f32x near_zero = fma(linear, square * p, linear);
    const auto [power, delta, positive] = exp(x);
    const f32x e = fma(power, delta, power);  // times 2^126
    const f32x away_from_zero =
        fma(alpha, e / fma(e, splat<f32x>(-0.5f), splat<f32x>(-0x1p125f)), alpha);
    return copysign(abs(z) < 0.65f ? near_zero : away_from_zero,
                    bit_cast<f32x>(bit_cast<i32x>(z) ^ sign));
  }
};

// 1 / (1 + e^-x)
struct Sigmoid {
  explicit Sigmoid(const ActivationParameters&) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return sigmoid(x); }
};

// ln(1 + e^(steepness x)) / steepness. An infinite steepness gives relu, the limit, except at 0.
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
  // Above 8 every finite x overflows; the limit prevents inf - inf in intermediates.
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
    const f32x finite = max(min(x, largest), -largest);
    return finite / (1.0f + abs(finite));
  }
};

// tanh(x)
struct Tanh {
  explicit Tanh(const ActivationParameters&) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return tanh(x); }
};

// x > alpha ? x : 0. A NaN alpha exceeds every x.
struct ThresholdedRelu {
  f32x alpha;
  explicit ThresholdedRelu(const ActivationParameters& p)
      : alpha(splat<f32x>(p.alpha == p.alpha ? p.alpha : kInfinity)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const {
    keep_in_register(x);
    return x <= alpha ? splat<f32x>(0.0f) : x;
  }
};

// x > threshold ? x - bias : x < -threshold ? x + bias : 0. A NaN threshold gives 0.
struct Shrink {
  f32x bias, threshold;
  explicit Shrink(const ActivationParameters& p)
      : bias(splat<f32x>(p.alpha)), threshold(splat<f32x>(p.beta == p.beta ? p.beta : kInfinity)) {}
  DMLOPS_INLINE f32x operator()(f32x x) const {
    const f32x below = x >= -threshold ? splat<f32x>(0.0f) : x + bias;  // taken if x is NaN
    return x > threshold ? x - bias : below;
  }
};

// x (1 + erf(x / sqrt(2))) / 2
struct Gelu {
  explicit Gelu(const ActivationParameters&) {}
  DMLOPS_INLINE f32x operator()(f32x x) const { return gelu(x); }
};

// x max(0, min(alpha x + beta, 1)), with one rounding of the factor. A factor whose parameters are
// tiny is subnormal where the result is not: it is scaled by 2^50, and x by the inverse.
struct HardSwish {
  f32x alpha, beta, one, inverse;
  explicit HardSwish(const ActivationParameters& p)
      : HardSwish(p, __builtin_fabsf(p.alpha) < 0x1p-100f && __builtin_fabsf(p.beta) < 0x1p-100f
                         ? 0x1p50f
                         : 1.0f) {}
  DMLOPS_INLINE f32x operator()(f32x x) const {
    keep_in_register(x);
    const f32x factor = fma(alpha, x, beta);
    return (x * inverse) * (factor <= 0.0f ? splat<f32x>(0.0f) : min(factor, one));
  }

 private:
  HardSwish(const ActivationParameters& p, float scale)
      : alpha(splat<f32x>(p.alpha * scale)),
        beta(splat<f32x>(p.beta * scale)),
        one(splat<f32x>(scale)),
        inverse(splat<f32x>(1 / scale)) {}
};

template <class...>
struct List {};

using Activations = List<DMLOPS_ACTIVATION_FUNCTORS>;
using FusableActivations = List<DMLOPS_FUSABLE_FUNCTORS>;

template <class... Acts>
constexpr std::size_t count_of(List<Acts...>) {
  return sizeof...(Acts);
}
static_assert(count_of(Activations()) == kActivationCount,
              "one functor for each Activation, in its order");

template <class Act, class... Acts>
constexpr Activation type_of(List<Acts...>) {
  constexpr bool is_it[] = {std::is_same_v<Act, Acts>...};
  std::uint32_t i = 0;
  while (!is_it[i]) ++i;
  return static_cast<Activation>(i);
}
template <class Act>
inline constexpr bool kIsLong = is_long(type_of<Act>(Activations()));

}  // namespace dmlops::DMLOPS_TARGET
