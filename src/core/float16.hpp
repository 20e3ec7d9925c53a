// float16 from double and back, for parameters; the kernels have conversions of their own.
#pragma once

#include "dmlops/tensor.hpp"

namespace dmlops {

// Rounded once, to nearest even.
float16 to_float16(double value);

// Exact.
double to_double(float16 value);

}  // namespace dmlops
