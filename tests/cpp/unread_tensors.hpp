// Tensors whose elements no test reads or writes, since only their layout and address matter.
#pragma once

#include "dmlops/tensor.hpp"

namespace dmlops {

inline char* unread_memory() {
  alignas(64) static char memory[64];
  return memory;
}

inline TensorView packed_tensor(const IntegerList& sizes, DataType type = DataType::float32) {
  return {unread_memory(), type, sizes};
}

inline TensorView strided_tensor(const IntegerList& sizes, const ByteStrides& strides,
                                 DataType type = DataType::float32) {
  return {unread_memory(), type, sizes, strides};
}

}  // namespace dmlops
