// The largest error of the elementary functions and activations over all 2^32 float32, a minute
// or more for each, or over each step-th: exhaustive_math [step] [names]. Without names, all.
//
// The results are the same on every processor. The errors of activations, and where they are, stand
// in the rows of python/dmlops/_table/activations.py; that of log1p is 1.269 ulp, at 0.49999997.
//
// Fails if an error exceeds the bound.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "math_cases.hpp"

int main(int count, char** names) {
  const int given = count > 1 ? std::atoi(names[1]) : 0;
  const auto step = static_cast<std::uint32_t>(std::max(given, 1));
  const int first = given > 0 ? 2 : 1;
  const dmlops::MathFunctions& functions = *dmlops::available_math_functions()[0];
  bool passed = true;
  for (const dmlops::MathCase& math_case : dmlops::math_cases()) {
    const bool chosen = std::find(names + first, names + count, math_case.name) != names + count;
    if (count > first && !chosen) continue;
    const dmlops::MathError worst = dmlops::largest_error(math_case, functions, 0, step);
    std::printf("%-40s %.4f ulp at %a (%.9g)\n", math_case.name.c_str(), worst.ulp,
                static_cast<double>(worst.x), static_cast<double>(worst.x));
    std::fflush(stdout);
    passed = passed && worst.ulp <= math_case.bound;
  }
  return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
