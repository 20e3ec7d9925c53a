// Expected values of the elementary functions and activations, and the errors of results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "math_functions.hpp"

namespace dmlops {

struct MathCase {
  std::string name;
  double bound;  // units in the last place
  std::function<double(double)> reference;
  std::function<VectorFunction(const MathFunctions&)> function;
  ActivationParameters parameters = {};
};

// The elementary functions, then every activation with several parameters.
std::vector<MathCase> math_cases();

// The functions of each instruction set that this processor supports.
std::vector<const MathFunctions*> available_math_functions();

// |actual - expected| in units of the last place of expected. Infinite where one is NaN and the
// other is not, or where both are zero but of different signs. 2^128 and infinity are the same.
double error_in_ulp(float actual, double expected);

struct MathError {
  double ulp = 0;
  float x = 0;
};

// The largest error over the float32 whose bits are first, first + step, and so on. A NaN element
// must give NaN.
MathError largest_error(const MathCase& math_case, const MathFunctions& functions,
                        std::uint32_t first = 0, std::uint32_t step = 1);

// The `count` results for the bits first, first + step, and so on.
std::vector<float> results(const MathCase& math_case, const MathFunctions& functions,
                           std::uint64_t first, std::uint64_t step, std::size_t count);

}  // namespace dmlops
