// batch_normalization: checks that the parameters broadcast to the input, and runs the kernel with
// the fused activation.
#include <string>

#include "core/isa.hpp"
#include "core/text.hpp"
#include "operators/check.hpp"
#include "operators/in_environment.hpp"
#include "operators/plan.hpp"

namespace dmlops {
namespace {

constexpr const char* kBatchNormalization = "batch_normalization";
constexpr int kInputs = 5;

// Returns the shape that makes a vector broadcast along the axis whose size it has, preferably the
// channels: "(1, 3, 1, 1)".
std::string reshape_advice(const char* argument, const ConstTensorView& parameter,
                           const ConstTensorView& input) {
  if (parameter.rank != 1 || input.rank < 2) return "";
  const std::int64_t length = parameter.sizes[0];
  int axis = 1;  // DirectML's channel axis first
  if (input.sizes[1] != length) {
    for (axis = 0; axis < input.rank && input.sizes[static_cast<std::size_t>(axis)] != length;)
      ++axis;
    if (axis == input.rank) return "";
  }
  ConstTensorView reshaped = input;
  for (int d = 0; d < input.rank; ++d)
    reshaped.sizes[static_cast<std::size_t>(d)] = d == axis ? length : 1;
  return "; for one value per index of axis " + std::to_string(axis) + ", use " + argument +
         ".reshape" + shape_text(reshaped);
}

void require_broadcastable(const char* argument, const ConstTensorView& parameter,
                           const ConstTensorView& input) {
  require_same_type(kBatchNormalization, argument, parameter, input);
  require_addressable(kBatchNormalization, argument, parameter);
  const auto both_shapes = [&] {
    return std::string(kBatchNormalization) + ": " + argument + " has shape " +
           shape_text(parameter) + ", but input has shape " + shape_text(input);
  };
  if (parameter.rank != input.rank) {
    throw Error(both_shapes() + "; " + argument + " must have " + counted(input.rank, "dimension") +
                ", each of size 1 or the input's" + reshape_advice(argument, parameter, input));
  }
  for (int d = 0; d < input.rank; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    if (parameter.sizes[axis] == 1 || parameter.sizes[axis] == input.sizes[axis]) continue;
    throw Error(both_shapes() + "; on axis " + std::to_string(d) + " its size must be 1 or " +
                std::to_string(input.sizes[axis]) + ", not " +
                std::to_string(parameter.sizes[axis]));
  }
}

}  // namespace

void check_batch_normalization(const BatchNormalizationInputs& inputs) {
  const ConstTensorView& input = inputs.input;
  require_floating_point(kBatchNormalization, "input", input);
  require_addressable(kBatchNormalization, "input", input);
  require_broadcastable("mean", inputs.mean, input);
  require_broadcastable("variance", inputs.variance, input);
  require_broadcastable("scale", inputs.scale, input);
  require_broadcastable("bias", inputs.bias, input);
}

OperatorPlan plan_batch_normalization(const ConstTensorView (&inputs)[5], float epsilon,
                                      const std::optional<FusedActivation>& fused_activation,
                                      const TensorView& output) {
  const FusedActivation activation = fused_activation.value_or(FusedActivation{});
  const auto& by_type = kernels().batch_normalization[static_cast<std::size_t>(activation.type)];
  return {make_nest(output, inputs, kInputs, work_of(activation.type)),
          by_type[float_index(output.type)],
          BatchNormalizationParameters{epsilon, activation.parameters}};
}

void batch_normalization(const BatchNormalizationInputs& inputs, float epsilon,
                         const std::optional<FusedActivation>& fused_activation,
                         const TensorView& output) {
  batch_normalization(FloatEnvironment(), inputs, epsilon, fused_activation, output);
}

void batch_normalization(const FloatEnvironment&, const BatchNormalizationInputs& inputs,
                         float epsilon, const std::optional<FusedActivation>& fused_activation,
                         const TensorView& output) {
  check_batch_normalization(inputs);
  const ConstTensorView& input = inputs.input;
  require_data(kBatchNormalization, "input", input);
  require_data(kBatchNormalization, "mean", inputs.mean);
  require_data(kBatchNormalization, "variance", inputs.variance);
  require_data(kBatchNormalization, "scale", inputs.scale);
  require_data(kBatchNormalization, "bias", inputs.bias);
  if (fused_activation) {
    require_fusable("batch_normalization: fused_activation.", fused_activation->type);
  }
  require_output(kBatchNormalization, output, input);
  if (is_empty(input)) return;

  const ReadableInput readable[kInputs] = {{input, output},
                                           {inputs.mean, output},
                                           {inputs.variance, output},
                                           {inputs.scale, output},
                                           {inputs.bias, output}};
  const ConstTensorView views[kInputs] = {readable[0].view(), readable[1].view(),
                                          readable[2].view(), readable[3].view(),
                                          readable[4].view()};
  plan_batch_normalization(views, epsilon, fused_activation, output).run();
}

}  // namespace dmlops
