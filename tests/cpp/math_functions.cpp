// Compiled once for each instruction set, with its flags and its name as DMLOPS_TARGET.
#include "math_functions.hpp"

#include "kernels/blocks/transform.hpp"
#include "kernels/elementwise/activation.hpp"
#include "kernels/normalization/group_moments.hpp"
#include "kernels/simd/log1p_pair.hpp"

#define DMLOPS_STRING_(name) #name
#define DMLOPS_STRING(name) DMLOPS_STRING_(name)

namespace dmlops::DMLOPS_TARGET {
namespace {

template <class Formula>
DMLOPS_INLINE void apply(float* y, const float* x, std::int64_t count, const Formula& formula) {
  transform_row<f32x, 1>(y, x, count, [&](f32x v, std::int64_t) DMLOPS_LAMBDA_INLINE {
    return canonical_nan(formula(v));
  });
}

template <class Act>
void activation(float* y, const float* x, std::int64_t count, const ActivationParameters& p) {
  apply(y, x, count, Act(p));
}

template <class... Acts>
constexpr void set_activations(MathFunctions& functions, List<Acts...>) {
  std::size_t i = 0;
  ((functions.activations[i++] = &activation<Acts>), ...);
}

void fused(float* y, const float* a, const float* b, const float* c, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kLanes<f32x>) {
    store(y + i, fma(load<f32x>(a + i), load<f32x>(b + i), load<f32x>(c + i)));
  }
}

constexpr MathFunctions make_functions() {
  MathFunctions functions = {};
  functions.isa = DMLOPS_STRING(DMLOPS_TARGET);
  functions.fma = fused;
  functions.log1p = [](float* y, const float* x, std::int64_t count, const ActivationParameters&) {
    apply(y, x, count, [](f32x v) DMLOPS_LAMBDA_INLINE { return log1p(v); });
  };
  functions.double_log1p = [](double x) { return log1p(splat<f64x>(x))[0]; };
  functions.pair_log1p = [](const float(&x)[2], float(&y)[2]) {
    const FloatPair result = log1p(FloatPair{splat<f32x>(x[0]), splat<f32x>(x[1])});
    y[0] = result.high[0];
    y[1] = result.low[0];
  };
  functions.quotient = [](double x, std::int64_t n) { return (splat<f64x>(x) / Divisor(n))[0]; };
  set_activations(functions, Activations());
  return functions;
}

}  // namespace

extern const MathFunctions kMathFunctions;
constexpr MathFunctions kMathFunctions = make_functions();

}  // namespace dmlops::DMLOPS_TARGET
