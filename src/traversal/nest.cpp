// Builds canonical loop nests.
#include "traversal/nest.hpp"

#include <algorithm>

#include "core/insertion_sort.hpp"
#include "core/views.hpp"
#include "traversal/dimension.hpp"

namespace dmlops {
namespace {

// Returns the bytes of memory traffic per element. Broadcast parameters are cached, and do not
// count as traffic.
std::int64_t traffic(const Nest& nest) {
  std::int64_t bytes = 2 * nest.element_size;
  for (int k = 2; k < nest.operands; ++k) {
    if (distinct_elements(nest, k) == element_count(nest)) bytes += nest.element_size;
  }
  return bytes;
}

}  // namespace

Nest make_nest(const TensorView& output, const ConstTensorView* inputs, int input_count,
               std::int64_t work) {
  Nest nest;
  nest.operands = input_count + 1;
  nest.element_size = element_bytes(output.type);
  nest.data[0] = data_of(output);
  for (int k = 0; k < input_count; ++k) nest.data[k + 1] = data_of(inputs[k]);

  Dimension<kMaxOperands> dimensions[kMaxRank];
  int rank = 0;
  for (std::size_t axis = rank_of(output); axis-- > 0;) {
    const std::int64_t size = output.sizes[axis];
    if (size == 1) continue;
    auto& dimension = dimensions[rank++];
    dimension.size = size;
    dimension.strides[0] = output.strides[axis];
    for (int k = 0; k < input_count; ++k) {
      dimension.strides[k + 1] = inputs[k].sizes[axis] == 1 ? 0 : inputs[k].strides[axis];
    }
    if (dimension.strides[0] < 0) {  // a negative stride is reversed
      for (int k = 0; k < nest.operands; ++k) {
        nest.data[k] += dimension.strides[k] * (size - 1);
        dimension.strides[k] = -dimension.strides[k];
      }
    }
  }
  insertion_sort(dimensions, rank,
                 [](const auto& a, const auto& b) { return a.strides[0] < b.strides[0]; });
  int merged = 0;
  for (int d = 0; d < rank; ++d) append(dimensions, merged, dimensions[d], nest.operands);

  nest.rank = std::max(merged, 1);
  nest.sizes[0] = 1;
  for (int k = 0; k < nest.operands; ++k) nest.strides[k][0] = nest.element_size;
  for (int d = 0; d < merged; ++d) set_dimension(nest, d, dimensions[d], nest.operands);
  nest.bytes_per_element = std::max(traffic(nest), work);
  return nest;
}

std::int64_t element_count(const Nest& nest) {
  std::int64_t count = 1;
  for (int d = 0; d < nest.rank; ++d) count *= nest.sizes[d];
  return count;
}

std::int64_t distinct_elements(const Nest& nest, int operand) {
  std::int64_t count = 1;
  for (int d = 0; d < nest.rank; ++d) count *= nest.strides[operand][d] == 0 ? 1 : nest.sizes[d];
  return count;
}

}  // namespace dmlops
