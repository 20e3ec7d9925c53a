// Runs kernels over loop nests, on the threads.
#pragma once

#include "traversal/nest.hpp"

namespace dmlops {

// Splits the nest into shards where there is enough work, and calls the kernel. `data`: where the
// operands begin. The caller holds the default floating-point state; other threads enter it
// themselves.
void run(const Nest& nest, char* const* data, RowKernel kernel, const void* parameters);

// The same for groups. `weight`: the time of an element in units of an elementwise operator's.
void run(const Groups& groups, std::int64_t element_size, int weight, GroupKernel kernel);

// Most calls are small, on dense tensors. Where both have the same type and sizes, are dense in
// row-major order, and are apart or the same memory, every rule about them holds, and they are one
// row: runs the kernel and returns true. Otherwise does nothing. `work` as in make_nest.
bool run_if_plain(const ConstTensorView& input, const TensorView& output, RowKernel kernel,
                  const void* parameters, std::int64_t work = 0);

}  // namespace dmlops
