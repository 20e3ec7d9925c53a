// batch_normalization: checks that the parameters broadcast to the input, and runs the kernel with
// the fused activation.
#include <string>

#include "core/isa.hpp"
#include "core/text.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/plan.hpp"

namespace dmlops {
namespace {

constexpr const char* kBatchNormalization = "batch_normalization";
constexpr int kInputs = 5;

}  // namespace

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
  const ConstTensorView& input = inputs.input;
  require_type(kBatchNormalization, input, kFloats);
  require_input(kBatchNormalization, input);
  require_broadcastable(kBatchNormalization, "mean", inputs.mean, input);
  require_broadcastable(kBatchNormalization, "variance", inputs.variance, input);
  require_broadcastable(kBatchNormalization, "scale", inputs.scale, input);
  require_broadcastable(kBatchNormalization, "bias", inputs.bias, input);
  require_fusable(kBatchNormalization, fused_activation);
  require_output(kBatchNormalization, output, input);
  if (is_empty(input)) return;

  const ReadableInput readable[kInputs] = {{input, output},
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
