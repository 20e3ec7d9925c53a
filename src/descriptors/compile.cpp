// Device::compile: compiles a descriptor to a kernel, its parameters and its loop nest.
#include "descriptors/compile.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/float16.hpp"
#include "core/float_environment.hpp"
#include "core/text.hpp"
#include "descriptors/names.hpp"
#include "descriptors/tensor.hpp"
#include "operators/check.hpp"
#include "operators/scalars.hpp"

namespace dmlops {
namespace {

// DirectML's minimum alignment of buffer bindings, in addition to the tensor's own guarantee.
constexpr std::uint64_t kMinimumBufferAlignment = 16;

template <class T>
T from_bits(ScalarUnion scalar) {
  T value;
  std::memcpy(&value, &scalar.bits, sizeof value);
  return value;
}

// Reads a bound of CLIP1 from its union.
Scalar scalar_of(DataType type, ScalarUnion scalar) {
  if (type == DataType::float32) return Scalar(from_bits<float>(scalar));
  if (type == DataType::float16) return Scalar(from_bits<float16>(scalar));
  return visit_integer(type,
                       [&](auto integer) { return Scalar(from_bits<decltype(integer)>(scalar)); });
}

// Converts a FLOAT bound of CLIP: truncates toward zero for integers, which are saturated later.
Scalar scalar_of(DataType type, float bound) {
  const auto wide = static_cast<double>(bound);
  return Scalar(is_floating_point(type) ? wide : std::trunc(wide));
}

// Returns the axes, or the last dimension for an operator without axes, as a set of bits.
unsigned int reduced_dimensions(const OperatorDesc& desc, const OperatorInfo& op) {
  if (desc.type == OperatorType::mean_variance_normalization)
    return boolean_of(desc, "cross_channel", false) ? 0b1110 : 0b1100;
  if (!op.has(FieldKind::axes)) return 1u << (desc.tensors[0]->dimension_count - 1);
  unsigned int reduced = 0;
  for (const std::uint32_t axis : desc.axes) reduced |= 1u << axis;
  return reduced;
}

std::optional<FusedActivation> fused_activation(const OperatorDesc& desc) {
  if (desc.fused_activation == nullptr) return std::nullopt;
  const OperatorDesc& activation = *desc.fused_activation;
  return FusedActivation{find_operator(activation.type)->activation,
                         {activation.numbers[0], activation.numbers[1]}};
}

// The versions of the operator have different fields.
MeanVarianceNormalizationOptions mean_variance_options(const OperatorDesc& desc) {
  return {boolean_of(desc, "use_mean", true),
          boolean_of(desc, "use_variance", true) && boolean_of(desc, "normalize_variance", true),
          desc.numbers[0], fused_activation(desc)};
}

OperatorPlan plan_operator(const OperatorDesc& desc, const OperatorInfo& op) {
  ConstTensorView views[OperatorDesc::kMaxTensors];
  const ConstTensorView* operands[kReductionOperands] = {};
  for (int i = 0; i < op.tensor_count(); ++i) {
    const auto& tensor = desc.tensors[static_cast<std::size_t>(i)];
    if (!tensor.has_value()) continue;
    views[i] = view_of(*tensor);
    operands[operand_of(op, i)] = &views[i];
  }
  const ConstTensorView &input = views[0], &second = views[1];
  const TensorView output = view_of(*desc.tensors[static_cast<std::size_t>(op.inputs)]);
  const float epsilon = desc.numbers[0];
  const auto bound = [&](std::size_t i) {
    return op.has(FieldKind::scalar) ? scalar_of(input.type, desc.scalars[i])
                                     : scalar_of(input.type, desc.numbers[i]);
  };
  switch (op.family) {
    case Family::clip:
      return plan_clip(input, clip_parameters(input.type, bound(0), bound(1), desc.scale_bias),
                       output);
    case Family::clip_grad:
      return plan_clip_grad(input, second, clip_grad_parameters(input.type, bound(0), bound(1)),
                            output);
    case Family::relu_grad:
      return plan_clip_grad(input, second, relu_grad_parameters(input.type), output);
    case Family::parameterized_relu:
      return plan_parameterized_relu(input, second, output);
    case Family::activation:
      return plan_activation(op.activation, input, {desc.numbers[0], desc.numbers[1]}, output);
    case Family::log_softmax:
      return plan_log_softmax(input, reduced_dimensions(desc, op), output);
    case Family::softmax:
      return plan_softmax(input, reduced_dimensions(desc, op), output);
    case Family::hardmax:
      return plan_hardmax(input, reduced_dimensions(desc, op), output);
    case Family::batch_normalization:
      return plan_batch_normalization({views[0], views[1], views[2], views[3], views[4]}, epsilon,
                                      fused_activation(desc), output);
    case Family::mean_variance_normalization:
      return plan_mean_variance_normalization(operands, reduced_dimensions(desc, op),
                                              mean_variance_options(desc));
    case Family::batch_normalization_training:
      return plan_batch_normalization_training(operands, epsilon, fused_activation(desc));
    case Family::batch_normalization_grad:
    case Family::batch_normalization_training_grad:
      break;
  }
  return plan_batch_normalization_grad(
      operands, op.family == Family::batch_normalization_training_grad, epsilon);
}

bool same_layout(const BufferTensorDesc& a, const BufferTensorDesc& b) {
  const TensorView left = view_of(a), right = view_of(b);
  return left.sizes == right.sizes && left.strides == right.strides;
}

// Copies the inputs that are OWNED_BY_DML.
void copy_initial(CompiledOperator::Implementation& implementation,
                  const std::vector<ConstBinding>& initial) {
  const OperatorInfo& op = *implementation.op;
  const auto inputs = static_cast<std::size_t>(op.inputs);
  require_initial_count(op, initial.size());
  for (std::size_t i = 0; i < inputs; ++i) {
    Slot& slot = implementation.slots[i];
    const ConstBinding binding = initial.empty() ? ConstBinding() : initial[i];
    if (!slot.owned) {
      if (binding.buffer == nullptr) continue;
      if (slot.absent) {
        throw BindingError(concat(op.name, ": ", slot.name, " ", Slot::kAbsentText));
      }
      throw BindingError(
          concat(op.name, ": ", slot.name,
                 " is not OWNED_BY_DML; it is bound when the operator is dispatched"));
    }
    if (binding.buffer == nullptr) {
      throw BindingError(
          concat(op.name, ": ", slot.name,
                 " is OWNED_BY_DML; it must be bound when the operator is compiled"));
    }
    slot.check(op, binding);
    const char* const begin = static_cast<const char*>(binding.buffer) + binding.offset;
    slot.content.assign(begin, begin + slot.required);
  }
}

}  // namespace

int operand_of(const OperatorInfo& op, int tensor) {
  static constexpr int kGradients[] = {
      1, kOutputGradient, kGradientMean, kGradientVariance, kGradientScale,
      0, kScaleGradient,  kBiasGradient};
  if (op.family == Family::batch_normalization_grad ||
      op.family == Family::batch_normalization_training_grad) {
    return kGradients[tensor];
  }
  if (tensor == op.inputs) return 0;
  return tensor < op.inputs ? tensor + 1 : tensor;
}

void require_initial_count(const OperatorInfo& op, std::size_t given) {
  const auto inputs = static_cast<std::size_t>(op.inputs);
  if (given == 0 || given == inputs) return;
  throw BindingError(concat(op.name, ": ", counted(given, "initial binding"), "; it has ",
                            counted(inputs, "input")));
}

Device::Device(FeatureLevel level) : level_(level) {
  if (std::find(std::begin(kFeatureLevels), std::end(kFeatureLevels), level) !=
      std::end(kFeatureLevels)) {
    return;
  }
  throw ValidationError(concat("Device: feature level ", static_cast<std::uint32_t>(level),
                               " is not a DML_FEATURE_LEVEL from 1_0 to 6_4"));
}

CompiledOperator Device::compile(const OperatorDesc& desc,
                                 const std::vector<ConstBinding>& initial) const {
  const FloatEnvironment environment;
  validate(desc, level_);
  auto implementation = std::make_shared<CompiledOperator::Implementation>();
  const OperatorInfo& op = *find_operator(desc.type);
  implementation->op = &op;
  implementation->directml_names = desc.directml_names;
  implementation->plan = plan_operator(desc, op);
  const BufferTensorDesc& input = *desc.tensors[0];
  const BufferTensorDesc& output = *desc.tensors[static_cast<std::size_t>(op.inputs)];
  for (int i = 0; i < op.tensor_count(); ++i) {
    Slot& slot = implementation->slots[i];
    slot.name = tensor_name(op, i);
    slot.operand = operand_of(op, i);
    slot.absent = !desc.tensors[static_cast<std::size_t>(i)].has_value();
    const BufferTensorDesc tensor =
        desc.tensors[static_cast<std::size_t>(i)].value_or(BufferTensorDesc());
    implementation->tensors.push_back(tensor);
    if (slot.absent) continue;
    slot.required = required_size(tensor);
    slot.total = total_size(tensor);
    slot.alignment =
        std::max<std::uint64_t>(kMinimumBufferAlignment, tensor.guaranteed_base_offset_alignment);
    slot.same_layout = same_layout(tensor, output);
    slot.owned = tensor.flags == TensorFlags::owned_by_dml;
  }
  implementation->elements = 1;
  for (std::size_t d = 0; d < input.dimension_count; ++d)
    implementation->elements *= input.sizes[d];

  with_names(desc.directml_names, [&] { copy_initial(*implementation, initial); });
  return CompiledOperator(std::move(implementation));
}

}  // namespace dmlops
