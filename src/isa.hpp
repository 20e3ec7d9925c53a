// Selects the kernels for the processor at hand.
#pragma once

#include <vector>

#include "kernels/kernel.hpp"

namespace dmlops {

// The selected kernels: one atomic load after the first call. std::invalid_argument if DMLOPS_ISA
// cannot be had.
const KernelTable& kernels();

// Those that run on this processor, the fastest first; and the choice of one of them from now on,
// for programs that compare instruction sets.
std::vector<const KernelTable*> available_kernels();
void use_kernels(const KernelTable& table);

}  // namespace dmlops
