// softmax, log_softmax and hardmax: the rules, then the plan of the reduction.
#include "core/float_environment.hpp"
#include "core/isa.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/plan.hpp"

namespace dmlops {
namespace {

constexpr int kExponentials = 4;  // the weight of formulas with an exponential per element

OperatorPlan plan(const ReductionKernel (&kernels)[kFloatTypes], int weight, ConstTensorView input,
                  unsigned int reduced, TensorView output) {
  OperatorPlan plan;
  plan.copies = remove_repetition(output, &input, 1, reduced);
  const ConstTensorView target = output;
  plan.nest.element_size = static_cast<std::int64_t>(element_size(input.type));
  plan.nest.data[0] = static_cast<char*>(output.data);
  plan.nest.data[1] = const_cast<char*>(static_cast<const char*>(input.data));
  plan.parameters = ReductionParameters{
      kernels[float_index(input.type)], weight, {}, make_reduction({&target, &input}, reduced)};
  return plan;
}

// Checks the arguments, plans and runs.
template <class Plan>
void reduce(const char* op, const ConstTensorView& input, const std::int64_t* axes,
            std::size_t axis_count, const TensorView& output, const Plan& plan) {
  require_floating_point(op, "input", input);
  require_input(op, input);
  const unsigned int reduced = reduced_axes(op, input, axes, axis_count);
  require_axes(op, reduced);
  require_output(op, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable(input, output);
  plan(readable.view(), reduced, output).run();
}

}  // namespace

OperatorPlan plan_softmax(const ConstTensorView& input, unsigned int reduced,
                          const TensorView& output) {
  return plan(kernels().softmax, kExponentials, input, reduced, output);
}

OperatorPlan plan_log_softmax(const ConstTensorView& input, unsigned int reduced,
                              const TensorView& output) {
  bool single = true;
  for (int d = 0; d < input.rank; ++d)
    single = single && ((reduced >> d & 1u) == 0 || input.sizes[static_cast<std::size_t>(d)] == 1);
  // A single element gives 0, or NaN if it is not finite, as 0 x + 0 does.
  if (single) return plan_activation(Activation::linear, input, {0, 0}, output);
  return plan(kernels().log_softmax, kExponentials, input, reduced, output);
}

OperatorPlan plan_hardmax(const ConstTensorView& input, unsigned int reduced,
                          const TensorView& output) {
  return plan(kernels().hardmax, 1, input, reduced, output);
}

void softmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
             const TensorView& output) {
  const FloatEnvironment environment;
  reduce("softmax", input, axes, axis_count, output, plan_softmax);
}

void log_softmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
                 const TensorView& output) {
  const FloatEnvironment environment;
  reduce("log_softmax", input, axes, axis_count, output, plan_log_softmax);
}

void hardmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
             const TensorView& output) {
  const FloatEnvironment environment;
  reduce("hardmax", input, axes, axis_count, output, plan_hardmax);
}

}  // namespace dmlops
