// float16 from double, for parameters; the kernels have conversions of their own.
#pragma once

#include "dmlops/tensor.hpp"

namespace dmlops {

// Rounded once, to nearest even.
float16 to_float16(double value);

}  // namespace dmlops
