// An operator whose arguments have been checked and whose work has been planned: all that is left
// is to run it.
#pragma once

#include <optional>
#include <variant>

#include "core/float_environment.hpp"
#include "dmlops/operators.hpp"
#include "traversal/run.hpp"

namespace dmlops {

// A reduction in place of a row kernel.
struct GroupParameters {
  GroupKernel kernel = nullptr;
  Groups groups;  // without their place
  int weight = 1;
};

struct OperatorPlan {
  Nest nest;
  RowKernel kernel = nullptr;
  std::variant<ClipParameters, ActivationParameters, BatchNormalizationParameters, GroupParameters>
      parameters;

  void run() const { run(nest.data); }
  // On other memory of the same layout. `data`: where the operands begin.
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

// Bounds in the tensor's type, and the scale. Error for a bound that the type
// cannot have.
ClipParameters clip_parameters(DataType type, const Scalar& min, const Scalar& max,
                               const std::optional<ScaleBias>& scale_bias);

// Of an activation's formula, as make_nest takes it, or less: long ones take 0.6 to 1.5 ns where
// the 8 bytes of float32 take 0.16 ns.
constexpr std::int64_t work_of(Activation type) { return is_long(type) ? 32 : 0; }

// Each: no checks; inputs and output are apart or the same. Data pointers may be null, to be added
// later.
OperatorPlan plan_clip(const ConstTensorView& input, const ClipParameters& parameters,
                       const TensorView& output);
OperatorPlan plan_activation(Activation type, const ConstTensorView& input,
                             const ActivationParameters& parameters, const TensorView& output);
OperatorPlan plan_batch_normalization(const ConstTensorView (&inputs)[5], float epsilon,
                                      const std::optional<FusedActivation>& activation,
                                      const TensorView& output);
// `reduced`: the axes as a set of bits.
OperatorPlan plan_log_softmax(const ConstTensorView& input, unsigned int reduced,
                              const TensorView& output);

}  // namespace dmlops
