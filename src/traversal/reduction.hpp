// The loop nest of a reduction: dimensions of the groups' elements, and dimensions that count
// groups.
#pragma once

#include "core/stack.hpp"
#include "kernels/kernel.hpp"

namespace dmlops {

// Operands as `Reduction` numbers them; absent ones are null.
using ReductionOperands = const ConstTensorView* [kReductionOperands];

// The loop nest of a reduction, and the memory of its operands; see `Reduction`.
struct PlannedReduction {
  // An operand's dimensions of size 1 are broadcast. `reduced`: the axes as a set of bits. No size
  // may be 0.
  PlannedReduction(const ReductionOperands& operands, unsigned int reduced);

  ReductionNest elements, kept;
  std::int64_t groups = 1;
  std::int64_t split = 0;  // the rows of the columns into which groups are split, or 0
  char* data[kReductionOperands] = {};
  // Bytes from the first element of each operand to that of the first group: dimensions that count
  // groups are reversed if most strides are negative.
  std::int64_t offsets[kReductionOperands] = {};
  int stage = Reduction::kAllStages;
  std::int64_t group_elements = 0;
};

struct ReductionTraits {
  int weight = 1;                  // the time of an element, in units of an elementwise operator's
  int part_lanes = 0;              // of the sums of a block, of groups in parts
  std::int64_t shortest_part = 1;  // in blocks of the sums
  // Groups side by side can be computed in parts by lanes, and are read in place if their elements
  // have a common step. Otherwise only dense rows can be computed in parts.
  bool has_lanes = false;
  std::size_t stack = kSoftmaxStack;  // bytes, of the kernels
};

// The time of an element at weight 1, in bytes of an elementwise operator's traffic: float16
// elements take as long as float32 ones.
constexpr std::int64_t kReducedBytes = 8;

// Returns the time of a group, in bytes of an elementwise operator's traffic.
std::int64_t group_work(std::int64_t elements, const ReductionTraits& traits);

// Runs the kernel on operands that begin at `data`. Splits the groups into shards where there is
// enough work.
void run(const PlannedReduction& planned, char* const* data, std::int64_t element_size,
         const ReductionTraits& traits, ReductionKernel kernel, const void* parameters);

}  // namespace dmlops
