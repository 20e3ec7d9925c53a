// Fast paths for small dense calls, the most frequent ones.
//
// Tensors are plain if they have the same type and sizes, are dense in row-major order, and are
// either disjoint or the same memory: every rule about them holds, and they form a single row.
// Plain calls are below the threshold for threads.
#pragma once

#include "kernels/kernel.hpp"
#include "traversal/reduction.hpp"

namespace dmlops {

// Returns the number of elements if the tensors are plain, have elements, and are below the
// threshold for threads; otherwise 0. `work` is the time of an element, in bytes of traffic.
std::int64_t plain_elements(const ConstTensorView& input, const TensorView& output,
                            std::int64_t work);

// Runs the kernel and returns true if the call is plain; otherwise returns false. `work` is that of
// make_nest. Non-temporal stores are never used.
bool run_if_plain(const ConstTensorView& input, const TensorView& output, RowKernel kernel,
                  const void* parameters, std::int64_t work = 0);

// Reduces `elements` elements of plain tensors, and returns true, if the groups are rows of several
// elements, and too few for threads and non-temporal stores; otherwise returns false. `reduced`:
// the axes as a set of bits. Enters the default floating-point state.
bool reduce_if_rows(const ConstTensorView& input, unsigned int reduced, const TensorView& output,
                    std::int64_t elements, const ReductionTraits& traits, ReductionKernel kernel);

}  // namespace dmlops
