// The activations on their own, hard_sigmoid among them.
#include "isa.hpp"
#include "operators/check.hpp"
#include "operators/prepared.hpp"

namespace dmlops {

PreparedOperator prepare_activation(Activation type, const ConstTensorView& input,
                                    const ActivationParameters& parameters,
                                    const TensorView& output) {
  const auto& by_type = kernels().activation[static_cast<std::size_t>(type)];
  return {make_plan(output, &input, 1), by_type[float_index(input.type)], parameters};
}

void activation(Activation type, const ConstTensorView& input,
                const ActivationParameters& parameters, const TensorView& output) {
  const char* const op = info(type).name;
  require_floating_point(op, "input", input);
  require_output(op, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable(input, output);
  prepare_activation(type, readable.view(), parameters, output).run();
}

void hard_sigmoid(const ConstTensorView& input, float alpha, float beta, const TensorView& output) {
  activation(Activation::hard_sigmoid, input, {alpha, beta}, output);
}

}  // namespace dmlops
