// Normalization by the input's own moments, and the gradients of batch normalization: the rules,
// then the reduction.
#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "core/float_environment.hpp"
#include "core/isa.hpp"
#include "core/views.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/distances.hpp"
#include "operators/overlap.hpp"
#include "operators/plan.hpp"
#include "traversal/policy.hpp"

namespace dmlops {
namespace {

constexpr ReductionTraits kTraits = {4, kMaxPartSums* kMomentLanes, 16, true, kMomentsStack};

enum Number { kZero, kOne, kNan };

// A number that is broadcast to the sizes of `like`.
ConstTensorView constant(const ConstTensorView& like, Number number) {
  static constexpr float kSingles[] = {0, 1, std::numeric_limits<float>::quiet_NaN()};
  static constexpr std::uint16_t kHalves[] = {0, 0x3c00, 0x7e00};
  ConstTensorView view = like;
  view.data = like.type == DataType::float16 ? static_cast<const void*>(&kHalves[number])
                                             : &kSingles[number];
  for (std::size_t d = 0; d < rank_of(like); ++d) {
    view.sizes[d] = 1;
    view.strides[d] = 0;
  }
  return view;
}

// Sets all elements, for the statistics of empty groups.
void fill(std::initializer_list<TensorView> outputs, Number number) {
  require_valid_environment();
  const FloatEnvironment environment;
  for (const TensorView& output : outputs) {
    if (is_empty(output)) continue;
    const ConstTensorView value = constant(output, number);
    const Nest nest = make_nest(output, &value, 1);
    run(nest, nest.data, copy_kernel(element_size(output.type)), nullptr);
  }
}

// Returns the axes along which a parameter has size 1, as bits.
unsigned int axes_without(const ConstTensorView& parameter) {
  unsigned int reduced = 0;
  for (std::size_t d = 0; d < rank_of(parameter); ++d) {
    if (parameter.sizes[d] == 1) reduced |= 1u << d;
  }
  return reduced;
}

// True if a parameter has sizes above 1 along the reduced axes, perhaps with strides of 0.
bool has_reduced_sizes(const ConstTensorView& parameter, unsigned int reduced) {
  const unsigned int constant = axes_without(parameter);
  return (reduced & ~constant) != 0;
}

void set_activation(const std::optional<FusedActivation>& activation,
                    StatisticsParameters& parameters) {
  if (!activation || activation->type == Activation::identity) return;
  parameters.activation = kernels().activation[static_cast<std::size_t>(activation->type)][0];
  parameters.activation_parameters = activation->parameters;
}

// True if reducing the output in place would split groups into columns of at least a block of a
// sum, along a dimension in which the input is not contiguous.
bool is_split_in_output_alone(const ReductionOperands& operands, unsigned int reduced) {
  if (!is_contiguous_in_output_alone(*operands[1], *operands[0], reduced)) return false;
  ReductionOperands in_place;
  std::copy(std::begin(operands), std::end(operands), in_place);
  in_place[1] = operands[0];
  return PlannedReduction(in_place, reduced).split >= kSumBlock;
}

// True if it is faster to copy the input to the output, by the traversal of elementwise operators,
// and to reduce the output in place, which the other operands must have the order of. Otherwise, an
// input of another order is packed in each sweep.
bool copies_first(const ReductionOperands& operands, unsigned int reduced) {
  constexpr std::int64_t kColumns = 32, kRows = 512, kLongGroup = 1024, kRun = 144;  // elements
  constexpr std::int64_t kVector = 16, kManyColumns = 100;                           // groups
  const ConstTensorView& input = *operands[1];
  const ConstTensorView* const output = operands[0];
  if (output == nullptr) return false;
  const Distances in_output(*output, reduced);
  std::int64_t groups = 1;  // between two elements of a group in the output
  for (std::size_t d = 0; d < rank_of(input); ++d) {
    if (!has_bit(reduced, d) && output->sizes[d] > 1 &&
        std::llabs(output->strides[d]) < in_output.elements)
      groups *= input.sizes[d];
  }
  const auto has_every_element = [&](const ConstTensorView* operand) {
    return operand != nullptr && axes_without(*operand) == axes_without(input);
  };
  const bool reads_one =
      std::none_of(operands + 2, operands + kFirstGroupOperand, has_every_element);
  const std::int64_t size = element_bytes(input.type);
  const Distances in_input(input, reduced);
  const bool side_by_side = in_output.are_side_by_side();
  // Groups side by side that do not fill a cache line are not worth a copy.
  if (side_by_side && groups * size < kLineBytes) return false;
  if (side_by_side != in_input.are_side_by_side()) {
    if (in_input.count <= kLongGroup) return false;  // tiles of long groups have few groups
    // A group that is one run is read in place. So are several runs, where the copy would be packed
    // since columns do not fill vectors.
    const bool few = groups <= kVector || (groups % kVector != 0 && groups < kManyColumns);
    if (reads_one && in_input.run >= (few ? kRun : in_input.count)) return false;
  } else if (side_by_side) {
    if (in_input.count <= kColumns || !is_contiguous_in_output_alone(input, *output, ~reduced))
      return false;
  } else if (!is_split_in_output_alone(operands, reduced) &&
             (in_input.count <= kRows || !in_input.has_shorter_runs_than(in_output))) {
    return false;
  }
  return std::all_of(operands + 2, operands + kFirstGroupOperand, [&](const auto* operand) {
    if (!has_every_element(operand)) return true;
    return Distances(*operand, reduced).are_side_by_side() == side_by_side &&
           (operand->data == nullptr || operand->data != output->data);
  });
}

template <class Parameters>
OperatorPlan plan(const ReductionKernel (&kernels)[kFloatTypes], const ReductionOperands& operands,
                  unsigned int reduced, const Parameters& parameters,
                  std::vector<ResultCopy> copies = {}) {
  return plan_reduction(kernels, kTraits, operands, reduced, parameters,
                        copies_first(operands, reduced) ? Preparation::copy : Preparation::none,
                        std::move(copies));
}

void differentiate(const char* op, bool training, const BatchNormalizationGradientInputs& inputs,
                   float epsilon, const BatchNormalizationGradients& outputs) {
  const ConstTensorView& input = inputs.input;
  require_type(op, input.type, kFloats);
  require_input(op, input);
  require_like(op, "input_gradient", inputs.input_gradient, input, "input");
  require_broadcastable(op, "mean", inputs.mean, input, 0, true);
  require_like(op, "variance", inputs.variance, inputs.mean, "mean");
  require_like(op, "scale", inputs.scale, inputs.mean, "mean");
  const auto& names = kBatchNormalizationGradOutputs;
  require_output(op, names[0], outputs.gradient, input, "input");
  require_output(op, names[1], outputs.scale_gradient, inputs.mean, "mean");
  require_output(op, names[2], outputs.bias_gradient, inputs.mean, "mean");
  require_disjoint(op, {{names[0], outputs.gradient},
                        {names[1], outputs.scale_gradient},
                        {names[2], outputs.bias_gradient}});
  if (is_empty(input)) return fill({outputs.scale_gradient, outputs.bias_gradient}, kZero);
  ReadableInputs readable = {outputs.gradient, outputs.scale_gradient, outputs.bias_gradient};
  const ConstTensorView target = outputs.gradient, of_scale = outputs.scale_gradient,
                        of_bias = outputs.bias_gradient;
  plan_batch_normalization_grad(
      {&target, readable.add(input), readable.add(inputs.input_gradient), nullptr, nullptr,
       readable.add(inputs.mean), readable.add(inputs.variance), readable.add(inputs.scale),
       &of_scale, &of_bias},
      training, epsilon)
      .run();
}

}  // namespace

OperatorPlan plan_mean_variance_normalization(const ReductionOperands& operands,
                                              unsigned int reduced,
                                              const MeanVarianceNormalizationOptions& options) {
  StatisticsParameters parameters;
  parameters.epsilon = options.epsilon;
  parameters.use_mean = options.use_mean;
  parameters.use_variance = options.use_variance;
  set_activation(options.fused_activation, parameters);
  const ConstTensorView one = constant(*operands[1], kOne), zero = constant(*operands[1], kZero);
  const ConstTensorView* const scale = operands[kStatisticsScale];
  const ConstTensorView* const bias = operands[kStatisticsBias];
  for (const ConstTensorView* const parameter : {scale, bias}) {
    if (parameter != nullptr && has_reduced_sizes(*parameter, reduced))
      parameters.per_group = false;
  }
  ConstTensorView inputs[] = {*operands[1], scale != nullptr ? *scale : one,
                              bias != nullptr ? *bias : zero};
  ReductionOperands all;
  std::copy(std::begin(operands), std::end(operands), all);
  for (std::size_t k = 0; k < std::size(inputs); ++k) all[k + 1] = &inputs[k];
  // Stages have further operands, each with an element for each group.
  const bool has_others = std::any_of(operands + kStatisticsAdded, std::end(operands),
                                      [](const auto* operand) { return operand != nullptr; });
  if (operands[0] == nullptr || has_others)
    return plan(kernels().statistics, all, reduced, parameters);
  TensorView output = writable(*operands[0]);
  std::vector<ResultCopy> copies = remove_repetition(output, inputs, 3, reduced);
  const ConstTensorView target = output;
  all[0] = &target;
  return plan(kernels().statistics, all, reduced, parameters, std::move(copies));
}

OperatorPlan plan_batch_normalization_training(const ReductionOperands& operands, float epsilon,
                                               const std::optional<FusedActivation>& activation) {
  StatisticsParameters parameters;
  parameters.epsilon = epsilon;
  set_activation(activation, parameters);
  return plan(kernels().statistics, operands, axes_without(*operands[kStatisticsScale]),
              parameters);
}

OperatorPlan plan_batch_normalization_grad(const ReductionOperands& operands, bool training,
                                           float epsilon) {
  return plan(kernels().gradients, operands, axes_without(*operands[kGradientMean]),
              GradientParameters{epsilon, training});
}

void mean_variance_normalization(const ConstTensorView& input,
                                 const std::optional<ConstTensorView>& scale,
                                 const std::optional<ConstTensorView>& bias,
                                 const std::int64_t* axes, std::size_t axis_count,
                                 const MeanVarianceNormalizationOptions& options,
                                 const TensorView& output) {
  constexpr const char* op = "mean_variance_normalization";
  require_type(op, input.type, kFloats);
  require_input(op, input);
  const unsigned int reduced = reduced_axes(op, input, axes, axis_count);
  if (scale) require_broadcastable(op, "scale", *scale, input, reduced);
  if (bias) require_broadcastable(op, "bias", *bias, input, reduced);
  require_fusable(op, options.fused_activation);
  require_output(op, output, input);
  if (is_empty(input)) return;
  ReadableInputs readable = {output};
  const ConstTensorView target = output;
  plan_mean_variance_normalization(
      {&target, readable.add(input), scale ? readable.add(*scale) : nullptr,
       bias ? readable.add(*bias) : nullptr},
      reduced, options)
      .run();
}

void batch_normalization_training(const BatchNormalizationTrainingInputs& inputs, float epsilon,
                                  const std::optional<FusedActivation>& fused_activation,
                                  const BatchNormalizationTrainingOutputs& outputs) {
  constexpr const char* op = "batch_normalization_training";
  const ConstTensorView& input = inputs.input;
  require_type(op, input.type, kFloats);
  require_input(op, input);
  require_broadcastable(op, "scale", inputs.scale, input, 0, true);
  require_like(op, "bias", inputs.bias, inputs.scale, "scale");
  if (inputs.fused_add) require_like(op, "fused_add", *inputs.fused_add, input, "input");
  require_fusable(op, fused_activation);
  const auto& names = kBatchNormalizationTrainingOutputs;
  require_output(op, names[0], outputs.output, input, "input");
  require_output(op, names[1], outputs.mean, inputs.scale, "scale");
  require_output(op, names[2], outputs.variance, inputs.scale, "scale");
  require_disjoint(
      op, {{names[0], outputs.output}, {names[1], outputs.mean}, {names[2], outputs.variance}});
  if (is_empty(input)) return fill({outputs.mean, outputs.variance}, kNan);
  ReadableInputs readable = {outputs.output, outputs.mean, outputs.variance};
  const ConstTensorView target = outputs.output, mean = outputs.mean, variance = outputs.variance;
  plan_batch_normalization_training(
      {&target, readable.add(input), readable.add(inputs.scale), readable.add(inputs.bias),
       inputs.fused_add ? readable.add(*inputs.fused_add) : nullptr, &mean, &variance},
      epsilon, fused_activation)
      .run();
}

void batch_normalization_grad(const BatchNormalizationGradientInputs& inputs, float epsilon,
                              const BatchNormalizationGradients& outputs) {
  differentiate("batch_normalization_grad", false, inputs, epsilon, outputs);
}

void batch_normalization_training_grad(const BatchNormalizationGradientInputs& inputs,
                                       float epsilon, const BatchNormalizationGradients& outputs) {
  differentiate("batch_normalization_training_grad", true, inputs, epsilon, outputs);
}

}  // namespace dmlops
