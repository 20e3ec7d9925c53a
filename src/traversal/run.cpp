// Splits loop nests into shards for the threads.
#include "traversal/run.hpp"

#include <algorithm>

#include "traversal/layout.hpp"
#include "traversal/policy.hpp"

namespace dmlops {

void run(const Nest& nest, char* const* data, RowKernel kernel, const void* parameters) {
  LoopLayout layout(nest, data, streams(nest, data));
  const std::int64_t work = nest.bytes_per_element + layout.packing_work();
  layout.run(shard_count(work * element_count(nest)), kernel, parameters);
}

bool run_if_plain(const ConstTensorView& input, const TensorView& output, RowKernel kernel,
                  const void* parameters, std::int64_t work) {
  const int rank = input.rank;
  if (output.type != input.type || output.rank != rank || rank < 0 || rank > kMaxRank) return false;
  if (input.data == nullptr || output.data == nullptr) return false;
  const auto size = static_cast<std::int64_t>(element_size(input.type));
  const std::int64_t bytes_per_element = std::max(2 * size, work);
  const std::int64_t threshold = split_threshold();
  std::int64_t length = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const auto axis = static_cast<std::size_t>(d);
    const std::int64_t count = input.sizes[axis];
    if (output.sizes[axis] != count) return false;
    if (count == 1) continue;
    if (input.strides[axis] != length * size || output.strides[axis] != length * size) return false;
    if (count <= 0 || count >= threshold) return false;
    length *= count;
    if (length * bytes_per_element >= threshold) return false;
  }
  const auto from = reinterpret_cast<std::uintptr_t>(input.data);
  const auto to = reinterpret_cast<std::uintptr_t>(output.data);
  const auto bytes = static_cast<std::uintptr_t>(length * size);
  if (from != to && (to - from < bytes || from - to < bytes)) return false;

  Rows rows;
  rows.length = length;
  rows.count = 1;
  rows.data[0] = static_cast<char*>(output.data);
  rows.data[1] =
      const_cast<char*>(static_cast<const char*>(input.data));  // kernels do not write their input
  rows.layout[0] = rows.layout[1] = Layout::in_place;
  kernel(rows, parameters);
  return true;
}

}  // namespace dmlops
