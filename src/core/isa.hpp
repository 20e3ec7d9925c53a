// The kernels selected for this processor.
#pragma once

#include <cstddef>

#include "kernels/kernel.hpp"

namespace dmlops {

// Returns the selected kernels, by one atomic load after the first call. Throws Error if DMLOPS_ISA
// is unknown or unsupported.
const KernelTable& kernels();

// Returns the kernel that copies elements of 1, 2, 4 or 8 bytes.
inline RowKernel copy_kernel(std::size_t element_size) {
  int index = 0;
  while ((std::size_t{1} << index) < element_size) ++index;
  return kernels().copy[index];
}

}  // namespace dmlops
