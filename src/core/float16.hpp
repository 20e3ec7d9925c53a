// Converts parameters between float16 and double; the kernels have vectorized conversions.
#pragma once

#include "dmlops/tensor.hpp"

namespace dmlops {

// Rounds once, to nearest even.
float16 to_float16(double value);

// Exact.
double to_double(float16 value);

}  // namespace dmlops
