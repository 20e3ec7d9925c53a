// Splits loop nests and groups into shards for the threads.
#include "traversal/run.hpp"

#include <algorithm>

#include "core/float_environment.hpp"
#include "core/pool.hpp"
#include "traversal/layout.hpp"
#include "traversal/policy.hpp"

namespace dmlops {

void run(const Nest& nest, char* const* data, RowKernel kernel, const void* parameters) {
  const LoopLayout layout(nest, data, streams(nest, data));
  layout.run(shard_count(nest.bytes_per_element * element_count(nest)), kernel, parameters);
}

void run(const Groups& groups, std::int64_t element_size, int weight, GroupKernel kernel) {
  const InputOutputNest& elements = groups.elements;
  std::int64_t bytes = 2 * element_size;
  for (int d = 0; d < elements.rank; ++d) bytes *= elements.sizes[d];
  const std::int64_t count = groups.end;
  Groups whole = groups;
  // Packing does not overlap with the reads that regular stores cause.
  whole.streaming = groups.input != groups.output && count * bytes >= non_temporal_threshold() / 2;
  const std::int64_t wanted = shard_count(count * bytes * weight);
  // With enough groups, shards do not share cache lines.
  const std::int64_t unit = count >= 64 * wanted ? 64 : 1;
  const auto shards = std::min(wanted, (count + unit - 1) / unit);
  if (shards <= 1) return kernel(whole);
  parallel_for(static_cast<int>(shards), [&](int i) {
    const FloatEnvironment environment;
    Groups shard = whole;
    shard.first = shard_begin(count, shards, i, unit);
    shard.end = shard_begin(count, shards, i + 1, unit);
    kernel(shard);
  });
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
