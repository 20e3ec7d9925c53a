// Operators with checked arguments and a planned loop nest, ready to run.
#pragma once

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/float_environment.hpp"
#include "core/stack.hpp"
#include "dmlops/operators.hpp"
#include "operators/repetition.hpp"
#include "traversal/policy.hpp"
#include "traversal/reduction.hpp"
#include "traversal/run.hpp"

namespace dmlops {

// The contents of the output when the kernel of a reduction runs.
enum class Preparation : std::uint8_t {
  none,   // arbitrary
  copy,   // of the input: the output is reduced in place
  zeros,  // the kernel gets the output as operand kZeroedOutput
};

struct ReductionParameters {
  using Own = std::variant<std::monostate, StatisticsParameters, GradientParameters>;

  ReductionParameters(ReductionKernel kernel_, const ReductionTraits& traits_,
                      Preparation preparation_, const Own& own_, const ReductionOperands& operands,
                      unsigned int reduced)
      : kernel(kernel_),
        traits(traits_),
        preparation(preparation_),
        own(own_),
        reduction(operands, reduced) {}

  ReductionKernel kernel;
  ReductionTraits traits;
  Preparation preparation;
  Own own;
  PlannedReduction reduction;
};

struct OperatorPlan {
  Nest nest;
  RowKernel kernel = nullptr;  // of a reduction: of its preparation, if any
  std::variant<ClipParameters, ClipGradParameters, ActivationParameters,
               BatchNormalizationParameters, ReductionParameters>
      parameters;
  std::vector<ResultCopy> copies = {};  // run after the kernel

  void run() const { run(planned()); }
  // Runs the plan on other memory of the same layout; `data` points to the operands' first
  // elements. Where `data` is null, a reduction keeps the pointer of the plan.
  void run(char* const* data) const {
    require_valid_environment();
    const FloatEnvironment environment;
    std::visit([&](const auto& p) { run(data, p); }, parameters);
    for (const ResultCopy& copy : copies) copy.run(data[0], planned()[0]);
  }

 private:
  char* const* planned() const {
    const auto* const reduction = std::get_if<ReductionParameters>(&parameters);
    return reduction == nullptr ? nest.data : reduction->reduction.data;
  }

  template <class Parameters>
  void run(char* const* data, const Parameters& p) const {
    dmlops::run(nest, data, kernel, &p);
  }
  void run(char* const* data, const ReductionParameters& p) const {
    require_stack(p.traits.stack);  // before the preparation writes
    char* operands[kReductionOperands];
    for (int k = 0; k < kReductionOperands; ++k)
      operands[k] = data[k] != nullptr ? data[k] : p.reduction.data[k];
    if (p.preparation != Preparation::none) {
      char* prepared[] = {operands[0] + (nest.data[0] - p.reduction.data[0]), nest.data[1]};
      const bool copies_input = p.preparation == Preparation::copy;
      if (copies_input) prepared[1] = operands[1] + (nest.data[1] - p.reduction.data[1]);
      dmlops::run(nest, prepared, kernel, nullptr);
      if (copies_input) {
        operands[1] = operands[0];
      } else {
        operands[kZeroedOutput] = std::exchange(operands[0], nullptr);
      }
    }
    std::visit(
        [&](const auto& own) {
          dmlops::run(p.reduction, operands, nest.element_size, p.traits, p.kernel, &own);
        },
        p.own);
  }
};

// Converts the bounds to the tensor's type. Bounds beyond an integer type's range saturate. Throws
// Error for a fraction as a bound of integers.
ClipParameters clip_parameters(DataType type, const Scalar& min, const Scalar& max,
                               const std::optional<ScaleBias>& scale_bias);

// Converts the bounds of clip_grad to the open interval between them. Throws as above.
ClipGradParameters clip_grad_parameters(DataType type, const Scalar& min, const Scalar& max);
// Returns the interval of relu_grad: the numbers above 0.
ClipGradParameters relu_grad_parameters(DataType type);

// The `work` of make_nest() for a floating-point activation. Long formulas take 0.6 to 1.5 ns per
// element, against 0.16 ns for the 8 bytes of traffic in float32, so 32 bytes is a lower bound.
// float16 elements, which are computed in float32, take as long as float32 ones.
constexpr std::int64_t work_of(Activation type) { return is_long(type) ? 32 : 8; }

using OperatorParameters = decltype(OperatorPlan::parameters);

// Plans a kernel of several inputs; sets the sizes of dimensions along which results repeat. `work`
// is that of make_nest().
template <std::size_t kInputs>
OperatorPlan plan_elementwise(ConstTensorView (&inputs)[kInputs], RowKernel kernel,
                              const OperatorParameters& parameters, TensorView output,
                              std::int64_t work = 0) {
  std::vector<ResultCopy> copies = remove_repetition(output, inputs, kInputs);
  return {make_nest(output, inputs, kInputs, work), kernel, parameters, std::move(copies)};
}

// Plans a reduction by the kernel for the input's type, and the preparation of the output. The
// copies run after it.
OperatorPlan plan_reduction(const ReductionKernel (&kernels)[kFloatTypes],
                            const ReductionTraits& traits, const ReductionOperands& operands,
                            unsigned int reduced, const ReductionParameters::Own& own,
                            Preparation preparation, std::vector<ResultCopy> copies);

// The plan_ functions check nothing. Inputs and output must be disjoint or identical. Data pointers
// may be null, if run() is given the memory.
OperatorPlan plan_clip(const ConstTensorView& input, const ClipParameters& parameters,
                       const TensorView& output);
OperatorPlan plan_clip_grad(const ConstTensorView& input, const ConstTensorView& gradient,
                            const ClipGradParameters& parameters, const TensorView& output);
OperatorPlan plan_parameterized_relu(const ConstTensorView& input, const ConstTensorView& slope,
                                     const TensorView& output);
OperatorPlan plan_activation(Activation type, const ConstTensorView& input,
                             const ActivationParameters& parameters, const TensorView& output);
OperatorPlan plan_batch_normalization(ConstTensorView (&&inputs)[5], float epsilon,
                                      const std::optional<FusedActivation>& activation,
                                      const TensorView& output);
// `reduced` is the set of axes as bits.
OperatorPlan plan_log_softmax(const ConstTensorView& input, unsigned int reduced,
                              const TensorView& output);
OperatorPlan plan_softmax(const ConstTensorView& input, unsigned int reduced,
                          const TensorView& output);
OperatorPlan plan_hardmax(const ConstTensorView& input, unsigned int reduced,
                          const TensorView& output);

// Scale and bias of mean-variance normalization are 1 and 0 if absent.
OperatorPlan plan_mean_variance_normalization(const ReductionOperands& operands,
                                              unsigned int reduced,
                                              const MeanVarianceNormalizationOptions& options);
OperatorPlan plan_batch_normalization_training(const ReductionOperands& operands, float epsilon,
                                               const std::optional<FusedActivation>& activation);
// `training`: mean and variance depend on the input.
OperatorPlan plan_batch_normalization_grad(const ReductionOperands& operands, bool training,
                                           float epsilon);

}  // namespace dmlops
