// log_softmax: separates the reduced dimensions from the kept ones.
#include <algorithm>
#include <cstdlib>

#include "core/float_environment.hpp"
#include "core/insertion_sort.hpp"
#include "core/isa.hpp"
#include "core/text.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/plan.hpp"

namespace dmlops {
namespace {

constexpr const char* kLogSoftmax = "log_softmax";
constexpr int kWeight = 4;  // time per element, relative to an elementwise operator

// Adds an outer dimension to the nest, merged with the previous one if both are contiguous.
void append(InputOutputNest& nest, std::int64_t size, std::int64_t input_stride,
            std::int64_t output_stride) {
  if (nest.rank > 0) {
    const int last = nest.rank - 1;
    if (input_stride == nest.input_strides[last] * nest.sizes[last] &&
        output_stride == nest.output_strides[last] * nest.sizes[last]) {
      nest.sizes[last] *= size;
      return;
    }
  }
  const int d = nest.rank++;
  nest.sizes[d] = size;
  nest.input_strides[d] = input_stride;
  nest.output_strides[d] = output_stride;
}

// Returns the reduced dimensions in the tensor's order, which fixes the order of the sum.
InputOutputNest reduced_nest(const ConstTensorView& input, const ConstTensorView& output,
                             unsigned int reduced) {
  InputOutputNest inner_first;
  for (int d = input.rank - 1; d >= 0; --d) {
    const auto axis = static_cast<std::size_t>(d);
    if ((reduced >> d & 1u) == 0 || input.sizes[axis] == 1) continue;
    append(inner_first, input.sizes[axis], input.strides[axis], output.strides[axis]);
  }
  const auto size = static_cast<std::int64_t>(element_size(input.type));
  if (inner_first.rank == 0) append(inner_first, 1, size, size);
  InputOutputNest nest;
  nest.rank = inner_first.rank;
  for (int d = 0; d < nest.rank; ++d) {
    const int from = nest.rank - 1 - d;
    nest.sizes[d] = inner_first.sizes[from];
    nest.input_strides[d] = inner_first.input_strides[from];
    nest.output_strides[d] = inner_first.output_strides[from];
  }
  return nest;
}

// Returns the other dimensions in the order that uses whole cache lines: of the input, which is
// read more than once, unless the elements of a group are contiguous; then of the output.
InputOutputNest kept_nest(const ConstTensorView& input, const ConstTensorView& output,
                          unsigned int reduced, bool by_output) {
  struct Dimension {
    std::int64_t size, input_stride, output_stride;
  };
  Dimension dimensions[kMaxRank];
  int rank = 0;
  for (int d = input.rank - 1; d >= 0; --d) {
    const auto axis = static_cast<std::size_t>(d);
    if ((reduced >> d & 1u) != 0 || input.sizes[axis] == 1) continue;
    dimensions[rank++] = {input.sizes[axis], input.strides[axis], output.strides[axis]};
  }
  // A broadcast dimension is outermost, since it touches no further cache line.
  const auto distance = [by_output](const Dimension& d) {
    if (by_output) return std::llabs(d.output_stride);
    return d.input_stride == 0 ? INT64_MAX : std::llabs(d.input_stride);
  };
  insertion_sort(dimensions, rank,
                 [&](const Dimension& a, const Dimension& b) { return distance(a) < distance(b); });
  InputOutputNest nest;
  for (int d = 0; d < rank; ++d)
    append(nest, dimensions[d].size, dimensions[d].input_stride, dimensions[d].output_stride);
  return nest;
}

}  // namespace

OperatorPlan plan_log_softmax(const ConstTensorView& input, unsigned int reduced,
                              const TensorView& output) {
  const InputOutputNest elements = reduced_nest(input, output, reduced);
  // A single element gives 0, or NaN if it is not finite, as 0 x + 0 does.
  if (elements.rank == 1 && elements.sizes[0] == 1)
    return plan_activation(Activation::linear, input, {0, 0}, output);
  OperatorPlan plan;
  plan.nest.operands = 2;
  plan.nest.element_size = static_cast<std::int64_t>(element_size(input.type));
  plan.nest.data[0] = static_cast<char*>(output.data);
  plan.nest.data[1] = const_cast<char*>(static_cast<const char*>(input.data));
  GroupParameters parameters{kernels().log_softmax[float_index(input.type)], {}, kWeight};
  Groups& groups = parameters.groups;
  groups.elements = elements;
  const int last = groups.elements.rank - 1;
  const bool contiguous = std::llabs(groups.elements.input_strides[last]) <= 16;
  groups.kept = kept_nest(input, output, reduced, contiguous);
  groups.end = 1;
  for (int d = 0; d < groups.kept.rank; ++d) groups.end *= groups.kept.sizes[d];
  plan.parameters = parameters;
  return plan;
}

void log_softmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
                 const TensorView& output) {
  const FloatEnvironment environment;
  require_floating_point(kLogSoftmax, "input", input);
  require_input(kLogSoftmax, input);
  const unsigned int reduced = reduced_axes(kLogSoftmax, input, axes, axis_count);
  require_axes(kLogSoftmax, reduced);
  require_output(kLogSoftmax, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable(input, output);
  plan_log_softmax(readable.view(), reduced, output).run();
}

}  // namespace dmlops
