// Runs kernels over loop nests on the thread pool.
#pragma once

#include "traversal/nest.hpp"

namespace dmlops {

// Splits the nest into shards if there is enough work, and calls the kernel. `data` points to the
// operands' first elements. The caller must be in the default floating-point state unless the
// kernel only copies elements.
void run(const Nest& nest, char* const* data, RowKernel kernel, const void* parameters);

// Fast path for small dense calls, the most frequent ones. If both tensors have the same type and
// sizes, are dense in row-major order, and are either disjoint or the same memory, every rule about
// them holds and they form a single row: runs the kernel and returns true. Otherwise returns false.
// `work` is that of make_nest. Non-temporal stores are never used.
bool run_if_plain(const ConstTensorView& input, const TensorView& output, RowKernel kernel,
                  const void* parameters, std::int64_t work = 0);

}  // namespace dmlops
