// The largest error of the elementary functions and activations over all 2^32 float32, a minute
// or more for each, or over each step-th: exhaustive_math [step] [names]. Without names, all.
//
// The results are the same on every processor; the errors found, and where:
//
//   exp      0.910   5.19979858      gelu                           1.918   -2.2012229
//   expm1    1.479   0.390726298     elu(1), celu(1)                0.518   -0.0456761308
//   log      0.929   0.374390721     softplus(1)                    1.181   0.493501753
//   log1p    1.269   0.49999997      scaled_elu(1.673263, 1.050701) 1.392   -0.0354952514
//   erf      1.295   0.805134892     scaled_tanh(1, 0.5)            1.431   1.31147277
//   tanh     0.503   0.0224130899    softsign                       1.500   2047.37488
//   sigmoid  1.647   -1.09932613     hard_sigmoid(0.2, 0.5)         0.500   2
//                                    hard_swish(0.166667, 0.5)      1.492   0.00194531679
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
  for (const dmlops::MathCase& math_case : dmlops::math_cases()) {
    const bool chosen = std::find(names + first, names + count, math_case.name) != names + count;
    if (count > first && !chosen) continue;
    const dmlops::MathError worst = dmlops::largest_error(math_case, functions, 0, step);
    std::printf("%-40s %.4f ulp at %a (%.9g)\n", math_case.name.c_str(), worst.ulp,
                static_cast<double>(worst.x), static_cast<double>(worst.x));
    std::fflush(stdout);
  }
}
