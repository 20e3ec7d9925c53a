// The activations in double, and their error bounds.
#pragma once

#include <algorithm>
#include <cmath>

#include "dmlops/activation.hpp"

namespace dmlops {

// ln(1 + e^z)
inline double softplus_formula(double z) {
  return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
}

// The formula of an activation in double, with the parameters a and b.
inline double activation_formula(Activation type, double a, double b, double x) {
  switch (type) {
    case Activation::elu:
      return x >= 0 ? x : a * std::expm1(x);
    case Activation::celu:
      return x >= 0 ? x : std::min(0.0, a * std::expm1(x / a));
    case Activation::hard_sigmoid:
      return std::max(std::min(a * x + b, 1.0), 0.0);  // NaN is passed through
    case Activation::identity:
      return x;
    case Activation::leaky_relu:
      return x >= 0 ? x : a * x;
    case Activation::linear:
      return std::fma(a, x, b);
    case Activation::parametric_softplus:
      return a * softplus_formula(b * x);
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::scaled_elu:
      return x > 0 ? b * x : b * a * (std::expm1(x) + 0.0);
    case Activation::scaled_tanh:
      return a * std::tanh(b * x);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::softplus:
      return softplus_formula(a * x) / a;
    case Activation::softsign:
      return std::isinf(x) ? std::copysign(1, x) : x / (1 + std::abs(x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::thresholded_relu:
      return x > a ? x : 0;
    case Activation::shrink:
      return x > b ? x - a : x < -b ? x + a : 0;
    case Activation::hard_swish:
      return x * std::max(std::min(a * x + b, 1.0), 0.0);
    case Activation::swish:
      return x / (1 + std::exp(-a * x));
    case Activation::gelu:
      return x == -HUGE_VAL ? -0.0 : 0.5 * x * std::erfc(-x * 0.70710678118654752440);
  }
  return 0;
}

// The promised bounds, or tighter ones: 1/2 for piecewise linear formulas, plus the reference's
// error, and 0.52 for formulas in extended precision that are rounded once. A product with their
// result is rounded again, and can double the first rounding error.
inline double activation_bound(Activation type, double a) {
  switch (type) {
    case Activation::hard_sigmoid:
    case Activation::identity:
    case Activation::leaky_relu:
    case Activation::linear:
    case Activation::relu:
    case Activation::thresholded_relu:
    case Activation::shrink:
      return 0.5001;
    case Activation::tanh:
      return 0.52;
    case Activation::celu:
      return a == 1 ? 0.52 : 2;
    case Activation::elu:
      return a == 1 ? 0.52 : 1.54;
    case Activation::scaled_elu:
      return 1.54;
    case Activation::hard_swish:
      return 1.5001;
    default:
      return 2;
  }
}

}  // namespace dmlops
