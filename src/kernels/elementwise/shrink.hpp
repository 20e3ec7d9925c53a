// shrink of integers in double: x - bias above the threshold, x + bias below its negative, else 0.
#pragma once

#include "kernels/elementwise/integer.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
void shrink_integer(const Rows& rows, const void* parameters) {
  const auto& p = *static_cast<const ActivationParameters*>(parameters);
  const double bias = static_cast<double>(p.alpha), threshold = static_cast<double>(p.beta);
  map_integers<T>(rows, [bias, threshold](T element) DMLOPS_LAMBDA_INLINE {
    const double x = static_cast<double>(element);
    return truncate<T>(x > threshold ? x - bias : x < -threshold ? x + bias : 0.0);
  });
}

}  // namespace dmlops::DMLOPS_TARGET
