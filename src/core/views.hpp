// Tensor views in the types of loop nests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dmlops/tensor.hpp"

namespace dmlops {

// The rank, in the type of indices of sizes and strides.
template <class Pointer>
std::size_t rank_of(const BasicTensorView<Pointer>& view) {
  return static_cast<std::size_t>(view.rank);
}

// Returns element_size() in the type of strides.
inline std::int64_t element_bytes(DataType type) {
  return static_cast<std::int64_t>(element_size(type));
}

// Inputs and outputs have one type in loop nests, whose kernels write outputs alone.
template <class Pointer>
char* data_of(const BasicTensorView<Pointer>& view) {
  return static_cast<char*>(const_cast<void*>(view.data));
}
inline TensorView writable(const ConstTensorView& view) {
  return {data_of(view), view.type, view.rank, view.sizes, view.strides};
}

}  // namespace dmlops
