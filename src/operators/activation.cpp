// The activations as operators.
#include "core/float_environment.hpp"
#include "core/isa.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/overlap.hpp"
#include "operators/plan.hpp"
#include "traversal/plain.hpp"

namespace dmlops {

namespace {

RowKernel float_kernel(Activation type, DataType data) {
  return kernels().activation[static_cast<std::size_t>(type)][float_index(data)];
}

}  // namespace

OperatorPlan plan_activation(Activation type, const ConstTensorView& input,
                             const ActivationParameters& parameters, const TensorView& output) {
  if (!is_floating_point(input.type)) {
    if (type == Activation::relu) {
      const Scalar zero(std::int64_t{0});
      return plan_clip(input, clip_parameters(input.type, zero, {}, std::nullopt), output);
    }
    const RowKernel shrink = kernels().shrink_integer[static_cast<std::size_t>(input.type)];
    return {make_nest(output, &input, 1), shrink, parameters};
  }
  return {make_nest(output, &input, 1, work_of(type)), float_kernel(type, input.type), parameters};
}

void activation(Activation type, const ConstTensorView& input,
                const ActivationParameters& parameters, const TensorView& output) {
  const FloatEnvironment environment;
  require_known("activation: ", type);
  if (is_floating_point(input.type) &&
      run_if_plain(input, output, float_kernel(type, input.type), &parameters, work_of(type))) {
    return;
  }
  const char* const op = info(type).name;
  require_type(op, input.type, accepted_types(type));
  require_input(op, input);
  require_output(op, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable(input, output);
  plan_activation(type, readable.view(), parameters, output).run();
}

}  // namespace dmlops
