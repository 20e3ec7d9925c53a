// softmax and hardmax: the rules, then the reduction.
#include "core/isa.hpp"
#include "operators/check.hpp"
#include "operators/in_environment.hpp"
#include "traversal/reduction.hpp"

namespace dmlops {
namespace {

void reduce(const char* op, const ConstTensorView& input, const std::int64_t* axes,
            std::size_t axis_count, const TensorView& output,
            const ReductionKernel (&kernel)[kFloatTypes], int weight) {
  require_floating_point(op, "input", input);
  require_input(op, input);
  const unsigned int reduced = reduced_axes(op, input, axes, axis_count);
  require_axes(op, reduced);
  require_output(op, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable(input, output);
  const ConstTensorView target = output;
  run(make_reduction({&target, &readable.view()}, reduced),
      static_cast<std::int64_t>(element_size(input.type)), weight, kernel[float_index(input.type)],
      nullptr);
}

}  // namespace

void softmax(const FloatEnvironment&, const ConstTensorView& input, const std::int64_t* axes,
             std::size_t axis_count, const TensorView& output) {
  reduce("softmax", input, axes, axis_count, output, kernels().softmax, 4);
}
void softmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
             const TensorView& output) {
  softmax(FloatEnvironment(), input, axes, axis_count, output);
}

void hardmax(const FloatEnvironment&, const ConstTensorView& input, const std::int64_t* axes,
             std::size_t axis_count, const TensorView& output) {
  reduce("hardmax", input, axes, axis_count, output, kernels().hardmax, 1);
}
void hardmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
             const TensorView& output) {
  hardmax(FloatEnvironment(), input, axes, axis_count, output);
}

}  // namespace dmlops
