// The largest error of the elementary functions and activations over all 2^32 float32, a minute
// or more for each: exhaustive_math [names]. Without names, all of them.
//
// The results are the same on every processor; the errors found, and where:
//
//   exp            0.91   5.1998        tanh             1.95   0.51932
//   expm1          1.48   0.39073       sigmoid          1.65   -1.0993
//   log            0.93   0.37439       gelu             1.92   -2.2012
//   log1p          1.27   0.5           elu(1)           0.95   -0.38524
//   erf            1.29   0.80513       softplus(1)      1.68   0.0033360
#include <algorithm>
#include <cstdio>
#include <string>

#include "math_cases.hpp"

int main(int count, char** names) {
  const dmlops::MathFunctions& functions = *dmlops::available_math_functions()[0];
  for (const dmlops::MathCase& math_case : dmlops::math_cases()) {
    const bool chosen = std::find(names + 1, names + count, math_case.name) != names + count;
    if (count > 1 && !chosen) continue;
    const dmlops::MathError worst = dmlops::largest_error(math_case, functions);
    std::printf("%-40s %.4f ulp at %a (%.9g)\n", math_case.name.c_str(), worst.ulp,
                static_cast<double>(worst.x), static_cast<double>(worst.x));
    std::fflush(stdout);
  }
}
