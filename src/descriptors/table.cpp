// DirectML's operators, from its documentation: names, fields, data types and ranks per feature
// level.
#include "descriptors/table.hpp"

#include <algorithm>
#include <cctype>

namespace dmlops {
namespace {

constexpr TypeSet set_of(DataType type) { return TypeSet{1} << static_cast<std::uint32_t>(type); }

constexpr TypeSet kFloats = set_of(DataType::float32) | set_of(DataType::float16);
constexpr TypeSet kSigned32 =
    set_of(DataType::int32) | set_of(DataType::int16) | set_of(DataType::int8);
constexpr TypeSet kUnsigned32 =
    set_of(DataType::uint32) | set_of(DataType::uint16) | set_of(DataType::uint8);
constexpr TypeSet kNumbers32 = kFloats | kSigned32 | kUnsigned32;
constexpr TypeSet kNumbers64 = kNumbers32 | set_of(DataType::int64) | set_of(DataType::uint64);

using Level = FeatureLevel;
using Type = OperatorType;

// The rows shared by most operators of the first level.
#define DMLOPS_SINCE_1_0                                                  \
  {Level::level_1_0, 4, 4, kFloats}, {Level::level_2_0, 4, 5, kFloats}, { \
    Level::level_3_0, 1, 8, kFloats                                       \
  }

constexpr OperatorInfo activation_since_1_0(Type type, const char* name, Activation activation) {
  return {type, name, Family::activation, true, {DMLOPS_SINCE_1_0}, activation};
}

constexpr OperatorInfo kOperators[] = {
    {Type::element_wise_clip,
     "ElementWiseClipOperatorDesc",
     Family::clip,
     true,
     {{Level::level_1_0, 4, 4, kFloats},
      {Level::level_2_1, 4, 4, kNumbers32},
      {Level::level_3_0, 1, 8, kNumbers32},
      {Level::level_5_0, 1, 8, kNumbers64}}},
    {Type::element_wise_clip1,
     "ElementWiseClip1OperatorDesc",
     Family::clip1,
     true,
     {{Level::level_5_0, 1, 8, kNumbers64}}},
    {Type::batch_normalization,
     "BatchNormalizationOperatorDesc",
     Family::batch_normalization,
     false,
     {{Level::level_1_0, 4, 4, kFloats}, {Level::level_3_1, 1, 8, kFloats}}},
    {Type::activation_log_softmax,
     "ActivationLogSoftmaxOperatorDesc",
     Family::log_softmax,
     false,
     {DMLOPS_SINCE_1_0}},
    {Type::activation_log_softmax1,
     "ActivationLogSoftmax1OperatorDesc",
     Family::log_softmax1,
     false,
     {{Level::level_5_1, 1, 8, kFloats}}},
    activation_since_1_0(Type::activation_elu, "ActivationEluOperatorDesc", Activation::elu),
    activation_since_1_0(Type::activation_hard_sigmoid, "ActivationHardSigmoidOperatorDesc",
                         Activation::hard_sigmoid),
    activation_since_1_0(Type::activation_identity, "ActivationIdentityOperatorDesc",
                         Activation::identity),
    activation_since_1_0(Type::activation_leaky_relu, "ActivationLeakyReluOperatorDesc",
                         Activation::leaky_relu),
    activation_since_1_0(Type::activation_linear, "ActivationLinearOperatorDesc",
                         Activation::linear),
    activation_since_1_0(Type::activation_parametric_softplus,
                         "ActivationParametricSoftplusOperatorDesc",
                         Activation::parametric_softplus),
    {Type::activation_relu,
     "ActivationReluOperatorDesc",
     Family::activation,
     true,
     {DMLOPS_SINCE_1_0, {Level::level_5_1, 1, 8, kFloats | kSigned32}},
     Activation::relu},
    activation_since_1_0(Type::activation_scaled_elu, "ActivationScaledEluOperatorDesc",
                         Activation::scaled_elu),
    activation_since_1_0(Type::activation_scaled_tanh, "ActivationScaledTanhOperatorDesc",
                         Activation::scaled_tanh),
    activation_since_1_0(Type::activation_sigmoid, "ActivationSigmoidOperatorDesc",
                         Activation::sigmoid),
    activation_since_1_0(Type::activation_softplus, "ActivationSoftplusOperatorDesc",
                         Activation::softplus),
    activation_since_1_0(Type::activation_softsign, "ActivationSoftsignOperatorDesc",
                         Activation::softsign),
    activation_since_1_0(Type::activation_tanh, "ActivationTanhOperatorDesc", Activation::tanh),
    activation_since_1_0(Type::activation_thresholded_relu, "ActivationThresholdedReluOperatorDesc",
                         Activation::thresholded_relu),
    {Type::activation_shrink,
     "ActivationShrinkOperatorDesc",
     Family::activation,
     true,
     {{Level::level_2_0, 4, 5, kFloats},
      {Level::level_3_0, 1, 8, kFloats},
      {Level::level_5_1, 1, 8, kNumbers32}},
     Activation::shrink},
    {Type::activation_celu,
     "ActivationCeluOperatorDesc",
     Family::activation,
     true,
     {{Level::level_3_0, 1, 8, kFloats}},
     Activation::celu},
    {Type::activation_gelu,
     "ActivationGeluOperatorDesc",
     Family::activation,
     true,
     {{Level::level_5_1, 1, 8, kFloats}},
     Activation::gelu},
};

#undef DMLOPS_SINCE_1_0

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

const FeatureLevel kFeatureLevels[kFeatureLevelCount] = {
    Level::level_1_0, Level::level_2_0, Level::level_2_1, Level::level_3_0, Level::level_3_1,
    Level::level_4_0, Level::level_4_1, Level::level_5_0, Level::level_5_1, Level::level_5_2,
    Level::level_6_0, Level::level_6_1, Level::level_6_2, Level::level_6_3, Level::level_6_4,
};

const OperatorInfo* find_operator(OperatorType type) {
  const auto* const found =
      std::find_if(std::begin(kOperators), std::end(kOperators),
                   [type](const OperatorInfo& candidate) { return candidate.type == type; });
  return found == std::end(kOperators) ? nullptr : found;
}

const OperatorInfo& known_operator(OperatorType type) {
  const OperatorInfo* const op = find_operator(type);
  if (op != nullptr) return *op;
  throw ValidationError("operator type " + std::to_string(static_cast<std::uint32_t>(type)) +
                        " is not among the operators of dmlops");
}

const char* tensor_name(const OperatorInfo& op, int index) {
  static constexpr const char* kInputs[] = {"input_tensor", "mean_tensor", "variance_tensor",
                                            "scale_tensor", "bias_tensor"};
  return index < op.input_count() ? kInputs[index] : "output_tensor";
}

std::vector<Field> fields(const OperatorInfo& op) {
  std::vector<Field> result;
  result.reserve(9);  // batch normalization's
  for (int i = 0; i < op.tensor_count(); ++i) {
    result.push_back({tensor_name(op, i), FieldKind::tensor});
  }
  const auto add = [&result](std::initializer_list<Field> more) {
    result.insert(result.end(), more);
  };
  switch (op.family) {
    case Family::clip:
      add({{"scale_bias", FieldKind::scale_bias},
           {"min", FieldKind::number},
           {"max", FieldKind::number}});
      break;
    case Family::clip1:
      add({{"scale_bias", FieldKind::scale_bias},
           {"min_max_data_type", FieldKind::data_type},
           {"min", FieldKind::scalar},
           {"max", FieldKind::scalar}});
      break;
    case Family::batch_normalization:
      add({{"spatial", FieldKind::boolean},
           {"epsilon", FieldKind::number},
           {"fused_activation", FieldKind::activation}});
      break;
    case Family::log_softmax1:
      add({{"axes", FieldKind::axes}});
      break;
    case Family::log_softmax:
      break;
    case Family::activation: {
      const ActivationInfo& about = info(op.activation);
      for (int i = 0; i < about.parameter_count; ++i) {
        add({{about.parameter_names[i], FieldKind::number}});
      }
      break;
    }
  }
  return result;
}

std::string number(FeatureLevel level) {
  const auto value = static_cast<std::uint32_t>(level);
  return std::to_string(value >> 12) + "_" + std::to_string(value >> 8 & 15);
}

std::string name(FeatureLevel level) { return "DML_FEATURE_LEVEL_" + number(level); }

std::string upper_name(DataType type) {
  const auto value = static_cast<std::uint32_t>(type);
  return value < kDataTypeCount ? upper(name(type)) : std::to_string(value);
}

std::string types_text(TypeSet types) {
  std::string text;
  for (std::uint32_t i = 0; i < kDataTypeCount; ++i) {
    if ((types >> i & 1u) == 0) continue;
    text += (text.empty() ? "" : ", ") + upper_name(static_cast<DataType>(i));
  }
  return text;
}

}  // namespace dmlops
