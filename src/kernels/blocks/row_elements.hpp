// Vectors of a row's elements, of which the first and the last may be partial.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/simd/partial.hpp"

namespace dmlops::DMLOPS_TARGET {

// Loads the vector of a row's elements from i on, of which [first, used) exist; the other lanes are
// 0.
template <class T>
DMLOPS_INLINE f32x load_elements(const T* row, std::int64_t i, std::int64_t used,
                                 std::int64_t first = 0) {
  if (used - first == kFloatLanes) return load<f32x>(row + i);
  return load_between<f32x>(row + i, first, used);
}
template <class T>
DMLOPS_INLINE void store_elements(T* row, std::int64_t i, std::int64_t used, f32x v) {
  if (used == kFloatLanes) {
    store(row + i, v);
  } else {
    store_partial(row + i, v, used);
  }
}

// Calls visit(i, used) for each vector of a row.
template <class Visit>
DMLOPS_INLINE void for_each_vector_of_row(std::int64_t length, const Visit& visit) {
  std::int64_t i = 0;
  for (; i + kFloatLanes <= length; i += kFloatLanes) visit(i, kFloatLanes);
  if (i < length) visit(i, length - i);
}

}  // namespace dmlops::DMLOPS_TARGET
