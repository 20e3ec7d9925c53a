// batch_normalization: checks that the parameters broadcast to the input, and runs the kernel with
// the fused activation.
#include "core/isa.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/overlap.hpp"
#include "operators/plan.hpp"

namespace dmlops {

OperatorPlan plan_batch_normalization(ConstTensorView (&&inputs)[5], float epsilon,
                                      const std::optional<FusedActivation>& fused_activation,
                                      const TensorView& output) {
  const FusedActivation activation = fused_activation.value_or(FusedActivation{});
  const auto& by_type = kernels().batch_normalization[static_cast<std::size_t>(activation.type)];
  return plan_elementwise(inputs, by_type[float_index(output.type)],
                          BatchNormalizationParameters{epsilon, activation.parameters}, output,
                          work_of(activation.type));
}

void batch_normalization(const BatchNormalizationInputs& inputs, float epsilon,
                         const std::optional<FusedActivation>& fused_activation,
                         const TensorView& output) {
  constexpr const char* op = "batch_normalization";
  const ConstTensorView& input = inputs.input;
  require_type(op, input.type, kFloats);
  require_input(op, input);
  require_broadcastable(op, "mean", inputs.mean, input);
  require_broadcastable(op, "variance", inputs.variance, input);
  require_broadcastable(op, "scale", inputs.scale, input);
  require_broadcastable(op, "bias", inputs.bias, input);
  require_fusable(op, fused_activation);
  require_output(op, output, input);
  if (is_empty(input)) return;

  const ReadableInput readable[] = {{input, output},
                                    {inputs.mean, output},
                                    {inputs.variance, output},
                                    {inputs.scale, output},
                                    {inputs.bias, output}};
  plan_batch_normalization({readable[0].view(), readable[1].view(), readable[2].view(),
                            readable[3].view(), readable[4].view()},
                           epsilon, fused_activation, output)
      .run();
}

}  // namespace dmlops
