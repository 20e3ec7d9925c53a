// Copies of results along dimensions that no input varies along.
#include "operators/repetition.hpp"

#include <algorithm>
#include <cstdlib>

namespace dmlops {
namespace {

ConstTensorView first_along(const TensorView& output, std::size_t axis) {
  ConstTensorView first = output;
  first.sizes[axis] = 1;
  return first;
}

// Returns the results that are to be written: the others, or of short runs all, so that the runs
// are contiguous.
TensorView copied_along(const TensorView& output, std::size_t axis) {
  constexpr std::int64_t kShortRun = 1024;  // bytes
  const auto size = static_cast<std::int64_t>(element_size(output.type));
  const bool is_short = output.sizes[axis] > 3 && output.sizes[axis] * size <= kShortRun;
  if (output.strides[axis] == size && is_short) return output;
  TensorView others = output;
  char* const first = static_cast<char*>(output.data);
  others.data = first + output.strides[axis];
  others.sizes[axis] -= 1;
  return others;
}

}  // namespace

ResultCopy::ResultCopy(const TensorView& output, int dimension) {
  const auto axis = static_cast<std::size_t>(dimension);
  const ConstTensorView first = first_along(output, axis);
  nest_ = make_nest(copied_along(output, axis), &first, 1);
  kernel_ = copy_kernel(element_size(output.type));
}

void ResultCopy::run(char* output, const char* planned) const {
  char* const data[] = {output + (nest_.data[0] - planned), output + (nest_.data[1] - planned)};
  dmlops::run(nest_, data, kernel_, nullptr);
}

std::vector<ResultCopy> remove_repetition(TensorView& output, ConstTensorView* inputs,
                                          int input_count, unsigned int reduced) {
  int dimensions[kMaxRank], count = 0;
  for (int d = 0; d < output.rank; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    const bool varies = std::any_of(inputs, inputs + input_count, [axis](const auto& input) {
      return input.sizes[axis] != 1 && input.strides[axis] != 0;
    });
    if (output.sizes[axis] > 1 && !varies && (reduced >> d & 1u) == 0) dimensions[count++] = d;
  }
  std::vector<ResultCopy> copies;
  if (count == 0) return copies;
  // The last copy, which writes most, is along the largest stride.
  const auto distance = [&output](int d) {
    return std::llabs(output.strides[static_cast<std::size_t>(d)]);
  };
  std::sort(dimensions, dimensions + count,
            [&](int a, int b) { return distance(a) < distance(b); });
  const TensorView whole = output;
  for (int i = 0; i < count; ++i) {
    const auto axis = static_cast<std::size_t>(dimensions[i]);
    output.sizes[axis] = 1;
    for (int k = 0; k < input_count; ++k) inputs[k].sizes[axis] = 1;
  }
  TensorView copied = output;
  for (int i = 0; i < count; ++i) {
    const auto axis = static_cast<std::size_t>(dimensions[i]);
    copied.sizes[axis] = whole.sizes[axis];
    copies.emplace_back(copied, dimensions[i]);
  }
  return copies;
}

}  // namespace dmlops
