// Converts parameters between float16 and double, and detects overflow; the kernels have vectorized
// conversions.
#pragma once

#include <cmath>

#include "dmlops/tensor.hpp"

namespace dmlops {

// Rounds once, to nearest even.
float16 to_float16(double value);

// Exact.
double to_double(float16 value);

// True if rounding made a finite number infinite.
inline bool is_overflow(float rounded, double number) {
  return std::isinf(rounded) && !std::isinf(number);
}

}  // namespace dmlops
