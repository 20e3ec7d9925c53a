// parameterized_relu: x >= 0 ? x : slope x. Products of integers saturate.
#pragma once

#include "kernels/blocks/transform_pairs.hpp"

namespace dmlops::DMLOPS_TARGET {

// The integer type of the exact product of two elements.
template <class T>
using WideProduct = std::conditional_t<sizeof(T) == 4, std::int64_t, std::int32_t>;

template <class T>
void parameterized_relu(const Rows& rows, const void*) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, float16>) {
    map_pairs<T, f32x>(rows, [](f32x x, f32x slope) DMLOPS_LAMBDA_INLINE {
      return canonical_nan(x >= 0.0f ? x : slope * x);
    });
  } else {
    map_pairs_of_elements<T>(rows, [](T x, T slope) DMLOPS_LAMBDA_INLINE {
      constexpr auto max = static_cast<WideProduct<T>>(static_cast<Bits<T>>(~Bits<T>(0)) >> 1);
      const WideProduct<T> product = WideProduct<T>{x} * slope;
      const WideProduct<T> below = product > max ? max : product < -max - 1 ? -max - 1 : product;
      return x >= 0 ? x : static_cast<T>(below);
    });
  }
}

}  // namespace dmlops::DMLOPS_TARGET
