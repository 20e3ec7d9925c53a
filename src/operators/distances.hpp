// Distances in memory between the elements of a reduction's groups, and between groups.
#pragma once

#include "dmlops/tensor.hpp"

namespace dmlops {

// The smallest distances in an operand, in bytes. `reduced` is the set of axes as bits.
struct Distances {
  std::int64_t elements = INT64_MAX, groups = INT64_MAX;

  Distances(const ConstTensorView& operand, unsigned int reduced);

  bool are_side_by_side() const { return groups < elements; }  // the groups
};

// True if the output is contiguous along one of the axes, given as bits, and the input is not, in
// either order, nor broadcast.
bool is_contiguous_in_output_alone(const ConstTensorView& input, const ConstTensorView& output,
                                   unsigned int axes);

}  // namespace dmlops
