// The operators' structs: conversion to OperatorDesc, with the defaults of the activations' table.
#include "dmlops/operator_descs.hpp"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "activation_reference.hpp"
#include "descriptors/table.hpp"
#include "dmlops/device.hpp"
#include "refusal.hpp"

namespace dmlops {
namespace {

const BufferTensorDesc kTensor(DataType::float32, {1, 2, 2, 2});
const BufferTensorDesc kChannels(DataType::float32, {1, 2, 1, 1});

TEST(BufferTensorDesc, TakesSizesAndStrides) {
  const BufferTensorDesc packed(DataType::float16, {4, 8});
  EXPECT_EQ(packed.dimension_count, 2u);
  EXPECT_EQ(packed.sizes, (BufferTensorDesc::Dimensions{4, 8}));
  EXPECT_FALSE(packed.strides.has_value());
  const BufferTensorDesc strided(DataType::float16, {4, 8}, {1, 0});
  EXPECT_EQ(*strided.strides, (BufferTensorDesc::Dimensions{1, 0}));
  EXPECT_THROW(BufferTensorDesc(DataType::float16, {4, 8}, {1}), ValidationError);
  EXPECT_THROW(
      calc_buffer_tensor_size(BufferTensorDesc(DataType::int8, {1, 1, 1, 1, 1, 1, 1, 1, 1})),
      ValidationError);
}

TEST(OperatorDescs, ActivationsHaveTheNumbersAndDefaultsOfTheDocuments) {
  const std::vector<OperatorDesc> descs = activation_descs();
  ASSERT_EQ(descs.size(), kActivationCount);
  for (std::size_t i = 0; i < kActivationCount; ++i) {
    const ActivationRow& row = kActivationRows[i];
    const ActivationInfo& about = info(static_cast<Activation>(i));
    const OperatorInfo& op = *find_operator(descs[i].type);
    EXPECT_EQ(static_cast<std::uint32_t>(descs[i].type), row.value) << about.name;
    EXPECT_EQ(op.activation, static_cast<Activation>(i)) << about.name;
    EXPECT_EQ(descs[i].numbers, (std::array{row.defaults.alpha, row.defaults.beta})) << about.name;
    EXPECT_EQ(about.defaults.alpha, row.defaults.alpha) << about.name;
    EXPECT_EQ(about.defaults.beta, row.defaults.beta) << about.name;
    EXPECT_EQ(about.parameter_count, row.parameter_count) << about.name;
    EXPECT_EQ(op.is_fusable, i < kFusableActivationCount) << about.name;
    EXPECT_EQ(op.is_fusable, !descs[i].tensors[0].has_value()) << about.name;
  }
}

TEST(OperatorDescs, KeepEveryField) {
  const ElementWiseClipOperatorDesc clip{kTensor, kChannels, ScaleBias{2, 3}, -1, 4};
  const OperatorDesc clip_desc = clip;
  EXPECT_EQ(clip_desc.type, OperatorType::element_wise_clip);
  EXPECT_EQ(clip_desc.tensors[1]->sizes, kChannels.sizes);
  EXPECT_EQ(clip_desc.scale_bias->bias, 3);
  EXPECT_EQ(clip_desc.numbers, (std::array<float, 2>{-1, 4}));

  const ElementWiseClip1OperatorDesc clip1{kTensor,         kChannels, ScaleBias{2, 3},
                                           DataType::int64, -2,        7};
  const OperatorDesc clip1_desc = clip1;
  EXPECT_EQ(clip1_desc.type, OperatorType::element_wise_clip1);
  EXPECT_EQ(clip1_desc.tensors[1]->sizes, kChannels.sizes);
  EXPECT_EQ(clip1_desc.scale_bias->scale, 2);
  EXPECT_EQ(clip1_desc.min_max_data_type, DataType::int64);
  EXPECT_EQ(clip1_desc.scalars[0].bits, 0xfffffffffffffffeu);
  EXPECT_EQ(clip1_desc.scalars[1].bits, 7u);

  const OperatorDesc log_softmax = ActivationLogSoftmaxOperatorDesc{kTensor, kChannels};
  EXPECT_EQ(log_softmax.type, OperatorType::activation_log_softmax);
  EXPECT_EQ(log_softmax.tensors[1]->sizes, kChannels.sizes);
  const OperatorDesc log_softmax1 = ActivationLogSoftmax1OperatorDesc{kTensor, kChannels, {3, 1}};
  EXPECT_EQ(log_softmax1.type, OperatorType::activation_log_softmax1);
  EXPECT_EQ(log_softmax1.axes, (std::vector<std::uint32_t>{3, 1}));

  BatchNormalizationOperatorDesc normalization;
  BufferTensorDesc* const tensors[] = {
      &normalization.input_tensor, &normalization.mean_tensor, &normalization.variance_tensor,
      &normalization.scale_tensor, &normalization.bias_tensor, &normalization.output_tensor};
  for (std::uint32_t i = 0; i < 6; ++i) *tensors[i] = BufferTensorDesc(DataType::float32, {1 + i});
  normalization.spatial = false;
  normalization.fused_activation = ActivationScaledEluOperatorDesc{{}, 0.5f, 0.25f};
  const OperatorDesc desc = normalization;
  EXPECT_EQ(desc.type, OperatorType::batch_normalization);
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(desc.tensors[i]->sizes[0], 1 + i);
  EXPECT_FALSE(desc.booleans[0]);
  EXPECT_EQ(desc.numbers[0], 1e-5f);
  EXPECT_EQ(desc.fused_activation->type, OperatorType::activation_scaled_elu);
  EXPECT_EQ(desc.fused_activation->numbers, (std::array<float, 2>{0.5f, 0.25f}));
}

TEST(OperatorDescs, BoundsHaveTheTypeThatIsNamed) {
  ElementWiseClip1OperatorDesc desc;
  const auto bits = [&](DataType type, const Scalar& value) {
    desc.min_max_data_type = type;
    desc.min = value;
    desc.max = 0;
    return OperatorDesc(desc).scalars[0].bits;
  };
  const auto refusal = [&](DataType type, const Scalar& value) {
    return dmlops::refusal<ValidationError>([&] { bits(type, value); });
  };
  EXPECT_EQ(bits(DataType::int64, -1), ~0ull);
  EXPECT_EQ(bits(DataType::int8, -1), 0xffull);
  EXPECT_EQ(bits(DataType::int8, -128.0), 0x80ull);
  EXPECT_EQ(bits(DataType::uint64, ~0ull), ~0ull);
  EXPECT_EQ(bits(DataType::uint32, 4294967295.0), 0xffffffffull);
  EXPECT_EQ(bits(DataType::int64, 9223372036854774784.0), 0x7ffffffffffffc00ull);
  EXPECT_EQ(bits(DataType::float32, -1), 0xbf800000ull);
  EXPECT_EQ(bits(DataType::float16, -1), 0xbc00ull);
  EXPECT_EQ(bits(DataType::float32, HUGE_VAL), 0x7f800000ull);
  EXPECT_EQ(bits(DataType::float16, -HUGE_VAL), 0xfc00ull);
  EXPECT_EQ(bits(DataType::float16, 65519.0), 0x7bffull);
  EXPECT_EQ(bits(DataType::float16, std::nan("")), 0x7e00ull);
  // Just above the middle of two float32, but not after rounding to double.
  constexpr std::int64_t above = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
  EXPECT_EQ(bits(DataType::float32, above), 0x5d800001ull);
  EXPECT_EQ(bits(DataType::float32, -above), 0xdd800001ull);
  EXPECT_EQ(bits(DataType::float32, static_cast<std::uint64_t>(above)), 0x5d800001ull);
  EXPECT_EQ(refusal(DataType::int8, 300),
            "ElementWiseClip1OperatorDesc: min is 300, which does not fit INT8 (-128 to 127)");
  EXPECT_EQ(refusal(DataType::uint8, -1),
            "ElementWiseClip1OperatorDesc: min is -1, which does not fit UINT8 (0 to 255)");
  EXPECT_EQ(refusal(DataType::float16, 65520),
            "ElementWiseClip1OperatorDesc: min is 65520, which does not fit FLOAT16");
  EXPECT_NE(refusal(DataType::float16, -65520.0), "accepted");
  EXPECT_NE(refusal(DataType::float16, 1e300), "accepted");
  EXPECT_NE(refusal(DataType::int64, ~0ull), "accepted");
  EXPECT_NE(refusal(DataType::int64, 9223372036854775808.0), "accepted");
  EXPECT_NE(refusal(DataType::int32, 2.5), "accepted");
  EXPECT_NE(refusal(DataType::int32, std::nan("")), "accepted");
  EXPECT_NE(refusal(DataType::float32, 1e300), "accepted");
  EXPECT_EQ(refusal(DataType::int32, Scalar()),
            "ElementWiseClip1OperatorDesc: min is missing; it must be a number");
  EXPECT_EQ(refusal(DataType::unknown, 1), "accepted");  // which validation refuses
}

TEST(OperatorDescs, ABoundThatDoesNotFitIsNamed) {
  ElementWiseClipGrad1OperatorDesc desc;
  desc.min_max_data_type = DataType::int16;
  desc.min = 0;
  desc.max = 100000;
  EXPECT_EQ(refusal<ValidationError>([&] { (void)OperatorDesc(desc); }),
            "ElementWiseClipGrad1OperatorDesc: max is 100000, which does not fit INT16 (-32768 to "
            "32767)");
  EXPECT_EQ(refusal<ValidationError>([] { scalar_union(DataType::int8, 300); }),
            "scalar_union: value is 300, which does not fit INT8 (-128 to 127)");
  EXPECT_EQ(refusal<ValidationError>([] { scalar_union(DataType::unknown, 1); }),
            "scalar_union: UNKNOWN is not a data type of DML_SCALAR_UNION");
}

TEST(OperatorDescs, CompileAndDispatch) {
  BatchNormalizationOperatorDesc desc;
  desc.input_tensor = desc.output_tensor = kTensor;
  desc.mean_tensor = desc.variance_tensor = desc.scale_tensor = desc.bias_tensor = kChannels;
  desc.epsilon = 0;
  desc.fused_activation = ActivationReluOperatorDesc();
  EXPECT_EQ(required_feature_level(desc), FeatureLevel::level_1_0);
  const std::vector<float> x = {1, 2, 3, 4, 10, 20, 30, 40}, mean = {2, 20}, variance = {1, 4},
                           scale = {1, 2}, bias = {0, 10};
  std::vector<float> y(8);
  const auto bind = [](const std::vector<float>& v) {
    return ConstBinding{v.data(), 0, v.size() * sizeof(float)};
  };
  Device().compile(desc).dispatch({bind(x), bind(mean), bind(variance), bind(scale), bind(bias)},
                                  {{y.data(), 0, 32}});
  EXPECT_EQ(y, (std::vector<float>{0, 0, 1, 2, 0, 10, 20, 30}));
}

}  // namespace
}  // namespace dmlops
