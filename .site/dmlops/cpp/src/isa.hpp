// Selects the kernels for the processor at hand.
#pragma once

#include "kernels/kernel.hpp"

namespace dmlops {

// The selected kernels: one atomic load after the first call. std::invalid_argument if DMLOPS_ISA
// cannot be had.
const KernelTable& kernels();

}  // namespace dmlops
