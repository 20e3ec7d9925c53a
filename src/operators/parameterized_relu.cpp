// parameterized_relu: the rules, then the kernel.
#include "core/isa.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/overlap.hpp"
#include "operators/plan.hpp"

namespace dmlops {

OperatorPlan plan_parameterized_relu(const ConstTensorView& input, const ConstTensorView& slope,
                                     const TensorView& output) {
  ConstTensorView inputs[] = {input, slope};
  return plan_elementwise(inputs,
                          kernels().parameterized_relu[static_cast<std::size_t>(input.type)],
                          ClipGradParameters{}, output);
}

void parameterized_relu(const ConstTensorView& input, const ConstTensorView& slope,
                        const TensorView& output) {
  constexpr const char* op = "parameterized_relu";
  require_type(op, input.type, kSigned32);
  require_input(op, input);
  require_broadcastable(op, "slope", slope, input);
  require_output(op, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable[] = {{input, output}, {slope, output}};
  plan_parameterized_relu(readable[0].view(), readable[1].view(), output).run();
}

}  // namespace dmlops
