// Copies of results along dimensions that no input varies along.
#include "operators/repetition.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/isa.hpp"
#include "core/views.hpp"

namespace dmlops {
namespace {

// True if the results along a dimension are runs that are contiguous if the first result is written
// again, to itself. Short runs are then filled together, without non-temporal stores.
bool fills_runs(const TensorView& output, std::size_t axis) {
  constexpr std::int64_t kFewest = 4, kLongestFilled = 1024;  // elements, bytes
  const std::int64_t size = element_bytes(output.type);
  return output.strides[axis] == size && output.sizes[axis] >= kFewest &&
         output.sizes[axis] * size <= kLongestFilled;
}

}  // namespace

ResultCopy::ResultCopy(const TensorView& output, std::size_t axis) {
  const bool fills = fills_runs(output, axis);
  ConstTensorView first = output;
  first.sizes[axis] = 1;
  TensorView written = output;
  if (!fills) --written.sizes[axis];
  nest_ = make_nest(written, &first, 1);
  kernel_ = copy_kernel(element_size(output.type));
  offset_ = fills ? 0 : output.strides[axis];
}

void ResultCopy::run(char* output, const char* planned) const {
  char* const data[] = {output + (nest_.data[0] - planned) + offset_,
                        output + (nest_.data[1] - planned)};
  dmlops::run(nest_, data, kernel_, nullptr);
}

std::vector<ResultCopy> remove_repetition(TensorView& output, ConstTensorView* inputs,
                                          int input_count, unsigned int reduced) {
  std::size_t axes[kMaxRank];
  int count = 0;
  for (std::size_t d = 0; d < rank_of(output); ++d) {
    const bool varies = std::any_of(inputs, inputs + input_count, [d](const auto& input) {
      return input.sizes[d] != 1 && input.strides[d] != 0;
    });
    if (output.sizes[d] > 1 && !varies && !has_bit(reduced, d)) axes[count++] = d;
  }
  std::vector<ResultCopy> copies;
  if (count == 0) return copies;
  // The last copy, which writes most, is along the largest stride.
  const auto distance = [&output](std::size_t d) { return std::llabs(output.strides[d]); };
  std::sort(axes, axes + count,
            [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
  const TensorView whole = output;
  for (int i = 0; i < count; ++i) {
    output.sizes[axes[i]] = 1;
    for (int k = 0; k < input_count; ++k) inputs[k].sizes[axes[i]] = 1;
  }
  TensorView copied = output;
  for (int i = 0; i < count; ++i) {
    copied.sizes[axes[i]] = whole.sizes[axes[i]];
    copies.emplace_back(copied, axes[i]);
  }
  return copies;
}

}  // namespace dmlops
