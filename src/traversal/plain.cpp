// Fast paths for small dense calls, the most frequent ones.
#include "traversal/plain.hpp"

#include <algorithm>

#include "core/float_environment.hpp"
#include "core/stack.hpp"
#include "core/views.hpp"
#include "traversal/policy.hpp"

namespace dmlops {

std::int64_t plain_elements(const ConstTensorView& input, const TensorView& output,
                            std::int64_t work) {
  const int rank = input.rank;
  if (output.type != input.type || output.rank != rank || rank < 0 || rank > kMaxRank) return 0;
  if (input.data == nullptr || output.data == nullptr) return 0;
  const std::int64_t size = element_bytes(input.type);
  const std::int64_t threshold = split_threshold();
  std::int64_t length = 1;
  for (std::size_t d = rank_of(input); d-- > 0;) {
    const std::int64_t count = input.sizes[d];
    if (output.sizes[d] != count) return 0;
    if (count == 1) continue;
    if (input.strides[d] != length * size || output.strides[d] != length * size) return 0;
    if (count <= 0 || count >= threshold) return 0;
    length *= count;
    if (length * work >= threshold) return 0;
  }
  const auto from = reinterpret_cast<std::uintptr_t>(input.data);
  const auto to = reinterpret_cast<std::uintptr_t>(output.data);
  const auto bytes = static_cast<std::uintptr_t>(length * size);
  return from == to || (to - from >= bytes && from - to >= bytes) ? length : 0;
}

bool run_if_plain(const ConstTensorView& input, const TensorView& output, RowKernel kernel,
                  const void* parameters, std::int64_t work) {
  const std::int64_t size = element_bytes(input.type);
  const std::int64_t length = plain_elements(input, output, std::max(2 * size, work));
  if (length == 0) return false;
  kernel(dense_row(data_of(output), data_of(input), length), parameters);
  return true;
}

bool reduce_if_rows(const ConstTensorView& input, unsigned int reduced, const TensorView& output,
                    std::int64_t elements, const ReductionTraits& traits, ReductionKernel kernel) {
  std::int64_t length = 1;
  bool are_rows = true;
  for (std::size_t d = rank_of(input); d-- > 0;) {
    const std::int64_t count = input.sizes[d];
    if (count == 1) continue;
    if (!has_bit(reduced, d)) {
      are_rows = false;
    } else if (!are_rows) {
      return false;
    } else {
      length *= count;
    }
  }
  const std::int64_t size = element_bytes(input.type);
  const std::int64_t groups = elements / length;
  if (length == 1 || streams(2 * size * elements, false, output.data == input.data) ||
      shard_count(groups * group_work(length, traits)) > 1)
    return false;
  require_stack(traits.stack);
  ReductionNest group, kept;
  group.rank = 1;
  group.sizes[0] = length;
  kept.rank = groups > 1 ? 1 : 0;
  kept.sizes[0] = groups;
  for (int k = 0; k < kReductionOperands; ++k) {
    group.strides[k][0] = k < 2 ? size : 0;
    kept.strides[k][0] = k < 2 ? length * size : 0;
  }
  Reduction reduction{group, kept};
  reduction.data[0] = data_of(output);
  reduction.data[1] = data_of(input);
  reduction.end = groups;
  const FloatEnvironment environment;
  kernel(reduction, nullptr);
  return true;
}

}  // namespace dmlops
