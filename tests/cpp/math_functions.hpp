// The functions of simd/math.hpp and the activations as one instruction set compiles them.
#pragma once

#include <cstdint>

#include "dmlops/activation.hpp"

namespace dmlops {

// y[i] = f(x[i])
using VectorFunction = void (*)(float* y, const float* x, std::int64_t count,
                                const ActivationParameters& parameters);

struct MathFunctions {
  const char* isa;
  // y[i] = a[i] * b[i] + c[i], rounded once; `count` is a multiple of 16.
  void (*fma)(float* y, const float* a, const float* b, const float* c, std::int64_t count);
  VectorFunction log1p;
  double (*double_log1p)(double x);
  void (*pair_log1p)(const float (&x)[2], float (&y)[2]);  // high and low
  double (*quotient)(double, std::int64_t);                // by Divisor
  VectorFunction activations[kActivationCount];
};

}  // namespace dmlops
