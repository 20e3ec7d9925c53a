// Checks the stack of the calling thread.
#pragma once

#include <cstddef>

namespace dmlops {

// The bytes that kernels keep on the stack, with the calls that lead to them.
constexpr std::size_t kElementwiseStack = 176 * 1024, kSoftmaxStack = 240 * 1024,
                      kMomentsStack = 480 * 1024;

// Throws Error if the stack has fewer bytes left. Stacks that are not the thread's own, such as
// those of coroutines, are not checked.
void require_stack(std::size_t bytes);

}  // namespace dmlops
