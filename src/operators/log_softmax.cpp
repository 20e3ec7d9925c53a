// log_softmax: separates the reduced axes from the kept ones. The kept ones are traversed like any
// tensor's.
#include <string>

#include "dmlops/runtime.hpp"
#include "isa.hpp"
#include "operators/check.hpp"
#include "operators/in_environment.hpp"
#include "operators/prepared.hpp"

namespace dmlops {
namespace {

constexpr const char* kLogSoftmax = "log_softmax";
constexpr int kWeight = 4;  // time for an element, in units of what an elementwise operator needs

// Which axes are reduced, as a set of bits.
unsigned int reduced_axes(const ConstTensorView& input, const std::int64_t* axes,
                          std::size_t axis_count) {
  if (axis_count == 0)
    throw std::invalid_argument(std::string(kLogSoftmax) +
                                ": axes is empty; it needs at least one axis");
  unsigned int reduced = 0;
  for (std::size_t i = 0; i < axis_count; ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + input.rank : axes[i];
    if (axis < 0 || axis >= input.rank) {
      throw std::invalid_argument(std::string(kLogSoftmax) + ": axis " + std::to_string(axes[i]) +
                                  " is out of range for input with " + std::to_string(input.rank) +
                                  " dimensions, shape " + shape_text(input));
    }
    const unsigned int bit = 1u << axis;
    if ((reduced & bit) != 0) {
      throw std::invalid_argument(std::string(kLogSoftmax) + ": axes names axis " +
                                  std::to_string(axis) + " twice");
    }
    reduced |= bit;
  }
  return reduced;
}

// The reduced dimensions in their order, which fixes the order of the sum; neighbours that continue
// each other are merged.
void set_reduced(Groups& groups, const ConstTensorView& input, const ConstTensorView& output,
                 unsigned int reduced) {
  for (int d = 0; d < input.rank; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    const std::int64_t size = input.sizes[axis];
    if ((reduced >> d & 1u) == 0 || size == 1) continue;
    const int last = groups.rank - 1;
    const bool continues = groups.rank > 0 &&
                           groups.input_strides[last] == input.strides[axis] * size &&
                           groups.output_strides[last] == output.strides[axis] * size;
    const int k = continues ? last : groups.rank++;
    groups.sizes[k] = continues ? groups.sizes[k] * size : size;
    groups.input_strides[k] = input.strides[axis];
    groups.output_strides[k] = output.strides[axis];
  }
  if (groups.rank == 0) groups.sizes[groups.rank++] = 1;
}

template <class View>
View kept(const View& view, unsigned int reduced) {
  View result(view.data, view.type, 0);
  for (int d = 0; d < view.rank; ++d) {
    if ((reduced >> d & 1u) != 0) continue;
    const auto from = static_cast<std::size_t>(d), to = static_cast<std::size_t>(result.rank++);
    result.sizes[to] = view.sizes[from];
    result.strides[to] = view.strides[from];
  }
  return result;
}

void reduce_rows(const Rows& rows, const void* parameters) {
  const auto& p = *static_cast<const GroupParameters*>(parameters);
  Groups groups = p.groups;
  groups.count = rows.length;
  groups.output_step = rows.step[0];
  groups.input_step = rows.step[1];
  for (std::int64_t row = 0; row < rows.count; ++row) {
    groups.output = rows.data[0] + row * rows.pitch[0];
    groups.input = rows.data[1] + row * rows.pitch[1];
    p.kernel(groups);
  }
}

}  // namespace

PreparedOperator prepare_log_softmax(const ConstTensorView& input, unsigned int reduced,
                                     const TensorView& output) {
  GroupParameters parameters{kernels().log_softmax[float_index(input.type)], {}};
  set_reduced(parameters.groups, input, output, reduced);
  const ConstTensorView groups = kept(input, reduced);
  Plan plan = make_plan(kept(output, reduced), &groups, 1);
  for (int d = 0; d < parameters.groups.rank; ++d)
    plan.bytes_per_element *= parameters.groups.sizes[d];
  const std::int64_t bytes = plan.bytes_per_element * element_count(plan);
  // Elements are packed first, as where a plan takes half of the threshold.
  parameters.groups.non_temporal =
      bytes >= non_temporal_threshold() / 2 && input.data != output.data;
  plan.bytes_per_element *= kWeight;
  if (plan.strides[0][0] != plan.element_size) plan.split_unit = 1;
  plan.element_size = 0;
  return {plan, reduce_rows, parameters};
}

void log_softmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
                 const TensorView& output) {
  log_softmax(FloatEnvironment(), input, axes, axis_count, output);
}

void log_softmax(const FloatEnvironment& environment, const ConstTensorView& input,
                 const std::int64_t* axes, std::size_t axis_count, const TensorView& output) {
  require_floating_point(kLogSoftmax, "input", input);
  require_addressable(kLogSoftmax, "input", input);
  const unsigned int reduced = reduced_axes(input, axes, axis_count);
  require_output(kLogSoftmax, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable(input, output);
  prepare_log_softmax(readable.view(), reduced, output).run(environment);
}

}  // namespace dmlops
