// The activations over dense blocks.
#pragma once

#include "kernels/blocks/transform.hpp"
#include "kernels/elementwise/activation.hpp"

namespace dmlops::DMLOPS_TARGET {

// A formula that applies an activation's functor and makes NaN canonical.
template <class Act>
struct Activate {
  Act act;

  explicit Activate(const ActivationParameters& parameters) : act(parameters) {}
  DMLOPS_INLINE_SMALL f32x operator()(f32x x) const { return canonical_nan(act(x)); }
};

// Vectors that a loop computes at a time. The compiler interleaves those of long formulas, since
// processors do not look far enough ahead; GCC needs options to do so (CMakeLists.txt).
template <class Act>
constexpr int kUnrolled = kIsLong<Act> && !kForSize ? 4 : 1;

// The kernel of an activation, with the functor that batch normalization fuses.
template <class T, class Act>
void activation(const Rows& rows, const void* parameters) {
  const Activate<Act> formula(*static_cast<const ActivationParameters*>(parameters));
  map<T, f32x, kUnrolled<Act>, kIsLong<Act>>(rows, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
