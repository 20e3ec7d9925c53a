// Selects the kernels for the processor at hand.
#pragma once

#include "kernels/kernel.hpp"

namespace dmlops {

// The selected kernels: one atomic load after the first call. Error if DMLOPS_ISA
// cannot be had.
const KernelTable& kernels();

// Copies elements of so many bytes: 1, 2, 4 or 8.
inline RowKernel copy_kernel(std::int64_t element_size) {
  int index = 0;
  while ((std::int64_t{1} << index) < element_size) ++index;
  return kernels().copy[index];
}

}  // namespace dmlops
