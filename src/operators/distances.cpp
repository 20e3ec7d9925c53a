// Distances in memory between the elements of a reduction's groups, and between groups.
#include "operators/distances.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/views.hpp"

namespace dmlops {

Distances::Distances(const ConstTensorView& operand, unsigned int reduced) {
  for (std::size_t d = 0; d < rank_of(operand); ++d) {
    if (operand.sizes[d] == 1 || operand.strides[d] == 0) continue;
    std::int64_t& nearest = has_bit(reduced, d) ? elements : groups;
    nearest = std::min<std::int64_t>(nearest, std::llabs(operand.strides[d]));
  }
  const std::int64_t size = element_bytes(operand.type);
  std::int64_t step = 0;  // of the first of these dimensions
  for (std::size_t d = rank_of(operand); d-- > 0;) {
    if (!has_bit(reduced, d) || operand.sizes[d] == 1) continue;
    if (count == 1) step = operand.strides[d];
    has_one_step = has_one_step && operand.strides[d] == count * step;
    count *= operand.sizes[d];
    if (has_one_step && step == size) run = count;
  }
}

bool is_contiguous_in_output_alone(const ConstTensorView& input, const ConstTensorView& output,
                                   unsigned int axes) {
  const std::int64_t size = element_bytes(output.type);
  for (std::size_t d = 0; d < rank_of(output); ++d) {
    if (!has_bit(axes, d) || output.sizes[d] == 1 || output.strides[d] != size) continue;
    return input.strides[d] != 0 && std::llabs(input.strides[d]) != size;
  }
  return false;
}

}  // namespace dmlops
