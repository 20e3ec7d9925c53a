// Distances in memory between the elements of a reduction's groups, and between groups.
#include "operators/distances.hpp"

#include <algorithm>
#include <cstdlib>

namespace dmlops {

Distances::Distances(const ConstTensorView& operand, unsigned int reduced) {
  for (int d = 0; d < operand.rank; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    if (operand.sizes[axis] == 1 || operand.strides[axis] == 0) continue;
    std::int64_t& nearest = (reduced >> d & 1u) != 0 ? elements : groups;
    nearest = std::min<std::int64_t>(nearest, std::llabs(operand.strides[axis]));
  }
  const auto size = static_cast<std::int64_t>(element_size(operand.type));
  std::int64_t step = 0;  // of the first of these dimensions
  for (int d = operand.rank - 1; d >= 0; --d) {
    const auto axis = static_cast<std::size_t>(d);
    if ((reduced >> d & 1u) == 0 || operand.sizes[axis] == 1) continue;
    if (count == 1) step = operand.strides[axis];
    has_one_step = has_one_step && operand.strides[axis] == count * step;
    count *= operand.sizes[axis];
    if (has_one_step && step == size) run = count;
  }
}

bool is_contiguous_in_output_alone(const ConstTensorView& input, const ConstTensorView& output,
                                   unsigned int axes) {
  const auto size = static_cast<std::int64_t>(element_size(output.type));
  for (int d = 0; d < output.rank; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    if ((axes >> d & 1u) == 0 || output.sizes[axis] == 1 || output.strides[axis] != size) continue;
    return input.strides[axis] != 0 && std::llabs(input.strides[axis]) != size;
  }
  return false;
}

}  // namespace dmlops
