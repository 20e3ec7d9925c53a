// Runs kernels over loop nests on the thread pool.
#pragma once

#include "traversal/nest.hpp"

namespace dmlops {

// Splits the nest into shards if there is enough work, and calls the kernel. `data` points to the
// operands' first elements. The caller must be in the default floating-point state unless the
// kernel only copies elements.
void run(const Nest& nest, char* const* data, RowKernel kernel, const void* parameters);

}  // namespace dmlops
