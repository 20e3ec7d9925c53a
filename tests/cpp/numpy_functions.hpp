// The functions that the formulas of activations call: NumPy's, and those of exact.py.
#pragma once

#include <algorithm>
#include <cmath>

namespace dmlops {
namespace np {

using std::abs;
using std::exp;
using std::expm1;
using std::isinf;
using std::log1p;
using std::sqrt;
using std::tanh;

inline double where(bool condition, double yes, double no) { return condition ? yes : no; }
inline double maximum(double a, double b) { return a > b || std::isnan(a) ? a : b; }
inline double minimum(double a, double b) { return a < b || std::isnan(a) ? a : b; }
inline bool isneginf(double x) { return std::isinf(x) && x < 0; }
inline double sign(double x) { return (x > 0) - (x < 0); }  // of a number

}  // namespace np

using std::erfc;

inline double log_of_one_plus_exp(double z) {
  return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
}

}  // namespace dmlops
