// Operators with checked arguments and a planned loop nest, ready to run.
#pragma once

#include <optional>
#include <variant>

#include "core/float_environment.hpp"
#include "dmlops/operators.hpp"
#include "traversal/run.hpp"

namespace dmlops {

// The parameters of a reduction.
struct GroupParameters {
  GroupKernel kernel = nullptr;
  Groups groups;  // without data pointers
  int weight = 1;
};

struct OperatorPlan {
  Nest nest;
  RowKernel kernel = nullptr;
  std::variant<ClipParameters, ActivationParameters, BatchNormalizationParameters, GroupParameters>
      parameters;

  void run() const { run(nest.data); }
  // Runs the plan on other memory of the same layout; `data` points to the operands' first
  // elements.
  void run(char* const* data) const {
    if (const auto* const reduction = std::get_if<GroupParameters>(&parameters)) {
      Groups groups = reduction->groups;
      groups.output = data[0];
      groups.input = data[1];
      return dmlops::run(groups, nest.element_size, reduction->weight, reduction->kernel);
    }
    std::visit([&](const auto& p) { dmlops::run(nest, data, kernel, &p); }, parameters);
  }
};

// Converts the bounds to the tensor's type. Throws Error for a bound that does not fit the type.
ClipParameters clip_parameters(DataType type, const Scalar& min, const Scalar& max,
                               const std::optional<ScaleBias>& scale_bias);

// The `work` of make_nest() for an activation. Long formulas take 0.6 to 1.5 ns per element,
// against 0.16 ns for the 8 bytes of traffic in float32, so 32 bytes is a lower bound.
constexpr std::int64_t work_of(Activation type) { return is_long(type) ? 32 : 0; }

// The plan_ functions check nothing. Inputs and output must be disjoint or identical. Data pointers
// may be null, and are then given to run().
OperatorPlan plan_clip(const ConstTensorView& input, const ClipParameters& parameters,
                       const TensorView& output);
OperatorPlan plan_activation(Activation type, const ConstTensorView& input,
                             const ActivationParameters& parameters, const TensorView& output);
OperatorPlan plan_batch_normalization(const ConstTensorView (&inputs)[5], float epsilon,
                                      const std::optional<FusedActivation>& activation,
                                      const TensorView& output);
// `reduced` is the set of axes as bits.
OperatorPlan plan_log_softmax(const ConstTensorView& input, unsigned int reduced,
                              const TensorView& output);

}  // namespace dmlops
