#include "math_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "activation_reference.hpp"
#include "core/build.hpp"
#include "dmlops/runtime.hpp"

namespace dmlops {

namespace baseline {
extern const MathFunctions kMathFunctions;
}
#if defined(DMLOPS_HAS_AVX2)
namespace avx2 {
extern const MathFunctions kMathFunctions;
}
#endif
#if defined(DMLOPS_HAS_AVX512)
namespace avx512 {
extern const MathFunctions kMathFunctions;
}
#endif

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

float float_of(std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  float value;
  std::memcpy(&value, &low, sizeof value);
  return value;
}

MathCase activation(Activation type, ActivationParameters p) {
  const double a = static_cast<double>(p.alpha), b = static_cast<double>(p.beta);
  const std::string parameters[] = {"", "(" + std::to_string(a) + ")",
                                    "(" + std::to_string(a) + ", " + std::to_string(b) + ")"};
  const ActivationRow& row = kActivationRows[static_cast<std::size_t>(type)];
  const bool are_defaults = p.alpha == row.defaults.alpha && p.beta == row.defaults.beta;
  return {info(type).name + parameters[row.parameter_count],
          are_defaults ? row.default_ulps : row.ulps,
          [=](double x) { return activation_formula(type, a, b, x); },
          [=](const MathFunctions& f) { return f.activations[static_cast<std::size_t>(type)]; }, p};
}

}  // namespace

std::vector<MathCase> math_cases() {
  std::vector<MathCase> cases = {
      {"log1p", 2, [](double x) { return std::log1p(x); },
       [](const MathFunctions& f) { return f.log1p; }},
  };
  for (std::size_t i = 0; i < kActivationCount; ++i) {
    const auto type = static_cast<Activation>(i);
    cases.push_back(activation(type, kActivationRows[i].defaults));
  }
  const struct {
    Activation type;
    std::vector<ActivationParameters> parameters;
  } more[] = {
      {Activation::elu, {{0.3f}, {1.6f}, {-2.0f}, {100.0f}, {1e-39f}}},
      {Activation::celu, {{0.3f}, {1.6f}, {-2.0f}, {100.0f}, {1e-39f}, {3e38f}}},
      {Activation::hard_sigmoid, {{1 / 6.0f, 0.5f}, {-3.0f, 0.25f}, {0.0f, 0.7f}}},
      {Activation::leaky_relu, {{-0.3f}, {0.0f}, {1e-30f}}},
      {Activation::linear, {{1.7f, -0.3f}, {-1e30f, 1e30f}}},
      {Activation::parametric_softplus,
       {{0.3f, 0.7f}, {3, -0.1f}, {1e-30f, 1e30f}, {1e30f, 1e-30f}}},
      {Activation::scaled_elu, {{1.9f, 1.3f}, {-1, 2}, {1e30f, 1e30f}, {1e-30f, 1e-10f}}},
      {Activation::scaled_tanh, {{1.7159f, 2 / 3.0f}, {-2, 3}, {1.99f, 1.99f}, {1e-30f, 1e30f}}},
      {Activation::softplus, {{2}, {1.7f}, {0.3f}, {1e-20f}, {1e-38f}, {1e20f}, {3e38f}}},
      {Activation::thresholded_relu, {{0.0f}, {-2.5f}}},
      {Activation::shrink, {{0.3f, 1.5f}, {-0.1f, -1.0f}}},
  };
  for (const auto& [type, list] : more) {
    for (const ActivationParameters& p : list) cases.push_back(activation(type, p));
  }
  return cases;
}

std::vector<const MathFunctions*> available_math_functions() {
  const MathFunctions* const all[] = {
#if defined(DMLOPS_HAS_AVX512)
    &avx512::kMathFunctions,
#endif
#if defined(DMLOPS_HAS_AVX2)
    &avx2::kMathFunctions,
#endif
    &baseline::kMathFunctions
  };
  std::vector<const MathFunctions*> result;
  for (const std::string& isa : available_isas()) {
    for (const MathFunctions* functions : all) {
      if (isa == functions->isa) result.push_back(functions);
    }
  }
  return result;
}

double error_in_ulp(float actual, double expected) {
  constexpr double above = 0x1p128;
  if (std::isnan(expected) || std::isnan(actual)) {
    return std::isnan(expected) && std::isnan(actual) ? 0 : kInfinity;
  }
  if (expected == 0 && actual == 0) {
    return std::signbit(expected) == std::signbit(actual) ? 0 : kInfinity;
  }
  const double value = std::min(std::max(static_cast<double>(actual), -above), above);
  expected = std::min(std::max(expected, -above), above);
  int exponent;
  std::frexp(expected, &exponent);
  return std::ldexp(std::abs(value - expected), 24 - std::min(std::max(exponent, -125), 128));
}

std::vector<float> results(const MathCase& math_case, const MathFunctions& functions,
                           std::uint64_t first, std::uint64_t step, std::size_t count) {
  std::vector<float> x(count), y(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = float_of(first + i * step);
  const auto length = static_cast<std::int64_t>(count);
  math_case.function(functions)(y.data(), x.data(), length, math_case.parameters);
  return y;
}

MathError largest_error(const MathCase& math_case, const MathFunctions& functions,
                        std::uint32_t first, std::uint32_t step) {
  constexpr std::uint64_t end = std::uint64_t{1} << 32;
  constexpr std::uint64_t part = 4096;
  MathError worst;
  for (std::uint64_t bits = first; bits < end; bits += part * step) {
    const auto count = static_cast<std::size_t>(std::min(part, (end - bits + step - 1) / step));
    const std::vector<float> y = results(math_case, functions, bits, step, count);
    for (std::size_t i = 0; i < count; ++i) {
      const float x = float_of(bits + i * step);
      const double expected = std::isnan(x) ? NAN : math_case.reference(static_cast<double>(x));
      const double ulp = error_in_ulp(y[i], expected);
      if (ulp > worst.ulp) worst = {ulp, x};
    }
  }
  return worst;
}

}  // namespace dmlops
