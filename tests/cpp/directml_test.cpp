// DirectML's C structs: conversion, feature levels, and structs with invalid pointers and numbers.
#include "dmlops/directml.h"

#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "activation_reference.hpp"
#include "refusal.hpp"

namespace {

using dmlops::ValidationError;

std::string refusal(const DML_OPERATOR_DESC& desc,
                    DML_FEATURE_LEVEL level = DML_FEATURE_LEVEL_6_4) {
  return dmlops::refusal<ValidationError>([&] { dmlops::compile(desc, level); });
}

// A tensor of 2 x 3 float32, and its struct for each test to change.
struct DirectML : testing::Test {
  const UINT sizes[2] = {2, 3};
  DML_BUFFER_TENSOR_DESC buffer = {
      DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, nullptr, 24, 0};
  DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
  DML_ELEMENT_WISE_CLIP_OPERATOR_DESC clip = {&tensor, &tensor, nullptr, 0.0f, 6.0f};
  DML_OPERATOR_DESC desc = {DML_OPERATOR_ELEMENT_WISE_CLIP, &clip};

  // Returns the message for `desc` while a field has another value.
  template <class Field, class Value>
  std::string with(Field& field, Value value) const {
    const Field before = std::exchange(field, static_cast<Field>(value));
    std::string text = refusal(desc);
    field = before;
    return text;
  }
};

TEST_F(DirectML, KeepsEveryFieldOfATensor) {
  const UINT strides[] = {8, 2};
  buffer = {DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_FLAG_OWNED_BY_DML, 2, sizes, strides, 64, 32};
  const dmlops::BufferTensorDesc read = dmlops::to_tensor_desc(buffer);
  EXPECT_EQ(read.data_type, dmlops::DataType::float16);
  EXPECT_EQ(read.flags, dmlops::TensorFlags::owned_by_dml);
  EXPECT_EQ(read.dimension_count, 2u);
  EXPECT_EQ(read.sizes, (dmlops::BufferTensorDesc::Dimensions{2, 3}));
  EXPECT_EQ(*read.strides, (dmlops::BufferTensorDesc::Dimensions{8, 2}));
  EXPECT_EQ(read.total_tensor_size_in_bytes, 64u);
  EXPECT_EQ(read.guaranteed_base_offset_alignment, 32u);
  buffer.TotalTensorSizeInBytes = 0;
  EXPECT_EQ(dmlops::calc_buffer_tensor_size(buffer), 28u);  // 13 elements, rounded up to 4 bytes
}

TEST_F(DirectML, CalculatesSizesUnderDirectMLsName) {
  const UINT strides[] = {0, 1};
  EXPECT_EQ(DMLCalcBufferTensorSize(DML_TENSOR_DATA_TYPE_FLOAT16, 2, sizes, nullptr), 12u);
  EXPECT_EQ(DMLCalcBufferTensorSize(DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, strides), 12u);
  EXPECT_EQ(DMLCalcBufferTensorSize(DML_TENSOR_DATA_TYPE_INT4, 2, sizes, nullptr), 4u);
  EXPECT_THROW(DMLCalcBufferTensorSize(DML_TENSOR_DATA_TYPE_FLOAT32, 9, sizes, nullptr),
               ValidationError);
  EXPECT_THROW(DMLCalcBufferTensorSize(DML_TENSOR_DATA_TYPE_FLOAT32, 2, nullptr, nullptr),
               ValidationError);
}

TEST_F(DirectML, KeepsEveryFieldOfClip) {
  const DML_SCALE_BIAS scale_bias = {2.0f, -1.0f};
  clip.ScaleBias = &scale_bias;
  const dmlops::OperatorDesc read = dmlops::to_operator_desc(desc);
  EXPECT_EQ(read.type, dmlops::OperatorType::element_wise_clip);
  EXPECT_EQ(read.scale_bias->scale, 2.0f);
  EXPECT_EQ(read.scale_bias->bias, -1.0f);
  EXPECT_EQ(read.numbers, (std::array<float, 2>{0.0f, 6.0f}));
  DML_SCALAR_UNION min, max;
  min.Int64 = 0x7000000000000001;
  max.Int64 = 0x7000000000000003;
  const DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC clip1 = {
      &tensor, &tensor, &scale_bias, DML_TENSOR_DATA_TYPE_INT64, min, max};
  const dmlops::OperatorDesc wide =
      dmlops::to_operator_desc({DML_OPERATOR_ELEMENT_WISE_CLIP1, &clip1});
  EXPECT_EQ(wide.scale_bias->scale, 2.0f);
  EXPECT_EQ(wide.min_max_data_type, dmlops::DataType::int64);
  EXPECT_EQ(wide.scalars[0].bits, 0x7000000000000001u);
  EXPECT_EQ(wide.scalars[1].bits, 0x7000000000000003u);
}

TEST_F(DirectML, KeepsEveryFieldOfBatchNormalization) {
  DML_TENSOR_DESC tensors[6];
  DML_BUFFER_TENSOR_DESC buffers[6];
  for (UINT i = 0; i < 6; ++i) {  // distinguishable values
    buffers[i] = buffer;
    buffers[i].TotalTensorSizeInBytes = 100 + i;
    tensors[i] = {DML_TENSOR_TYPE_BUFFER, &buffers[i]};
  }
  const DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC hard_sigmoid = {nullptr, nullptr, 0.25f, 0.75f};
  const DML_OPERATOR_DESC fused = {DML_OPERATOR_ACTIVATION_HARD_SIGMOID, &hard_sigmoid};
  const DML_BATCH_NORMALIZATION_OPERATOR_DESC normalization = {
      &tensors[0], &tensors[1], &tensors[2], &tensors[3], &tensors[4],
      &tensors[5], FALSE,       0.125f,      &fused};
  const dmlops::OperatorDesc read =
      dmlops::to_operator_desc({DML_OPERATOR_BATCH_NORMALIZATION, &normalization});
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(read.tensors[i]->total_tensor_size_in_bytes, 100 + i);
  }
  EXPECT_FALSE(read.booleans[0]);
  EXPECT_EQ(read.numbers[0], 0.125f);
  EXPECT_EQ(read.fused_activation->type, dmlops::OperatorType::activation_hard_sigmoid);
  EXPECT_EQ(read.fused_activation->numbers, (std::array<float, 2>{0.25f, 0.75f}));
  EXPECT_FALSE(read.fused_activation->tensors[0].has_value());
}

// Each activation's struct is at an odd address, at the end of its memory, so that reads past it
// are detected.
TEST_F(DirectML, ReadsEveryActivation) {
  const DML_ACTIVATION_LINEAR_OPERATOR_DESC full = {&tensor, &tensor, 1.25f, 2.5f};
  std::vector<std::pair<DML_OPERATOR_TYPE, int>> counts = {
      {DML_OPERATOR_ACTIVATION_LOG_SOFTMAX, 0}};
  for (const dmlops::ActivationRow& row : dmlops::kActivationRows) {
    counts.emplace_back(static_cast<DML_OPERATOR_TYPE>(row.value), row.parameter_count);
  }
  for (const auto& [type, numbers] : counts) {
    const std::size_t size = 2 * sizeof(void*) + static_cast<std::size_t>(numbers) * sizeof(float);
    std::vector<char> memory(size + 1);
    std::memcpy(memory.data() + 1, &full, size);
    const dmlops::OperatorDesc read = dmlops::to_operator_desc({type, memory.data() + 1});
    EXPECT_EQ(static_cast<std::uint32_t>(read.type), static_cast<std::uint32_t>(type));
    EXPECT_TRUE(read.tensors[0].has_value() && read.tensors[1].has_value());
    EXPECT_EQ(read.numbers[0], numbers > 0 ? 1.25f : 0.0f) << type;
    EXPECT_EQ(read.numbers[1], numbers > 1 ? 2.5f : 0.0f) << type;
  }
}

// Messages equal those of the other descriptors, including the level.
TEST_F(DirectML, IsHeldAgainstTheLevel) {
  EXPECT_EQ(refusal(desc), "accepted");
  EXPECT_EQ(refusal(desc, DML_FEATURE_LEVEL_1_0),
            "DML_ELEMENT_WISE_CLIP_OPERATOR_DESC: InputTensor has 2 dimensions; it must have 4 at "
            "DML_FEATURE_LEVEL_1_0; DML_FEATURE_LEVEL_3_0 accepts it");
  EXPECT_EQ(dmlops::required_feature_level(desc), dmlops::FeatureLevel::level_3_0);
  EXPECT_THROW(dmlops::validate(desc, DML_FEATURE_LEVEL_1_0), ValidationError);
  EXPECT_EQ(refusal(desc, static_cast<DML_FEATURE_LEVEL>(-1)),
            "Device: feature level 4294967295 is not a DML_FEATURE_LEVEL from 1_0 to 6_4");
}

TEST_F(DirectML, RefusesNullPointers) {
  const std::string who = "DML_ELEMENT_WISE_CLIP_OPERATOR_DESC: ";
  EXPECT_EQ(with(clip.InputTensor, nullptr),
            who + "InputTensor is missing; the operator requires it");
  EXPECT_EQ(with(clip.OutputTensor, nullptr),
            who + "OutputTensor is missing; the operator requires it");
  EXPECT_EQ(with(desc.Desc, nullptr), who + "Desc is null");
  EXPECT_EQ(with(tensor.Desc, nullptr),
            who + "InputTensor is a DML_TENSOR_DESC whose Desc is null");
  EXPECT_EQ(with(buffer.Sizes, nullptr),
            who + "InputTensor has no sizes: Sizes is null, and DimensionCount is 2");
  EXPECT_EQ(with(clip.ScaleBias, nullptr), "accepted");

  DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC log_softmax = {&tensor, &tensor, 1, nullptr};
  const DML_OPERATOR_DESC axes = {DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, &log_softmax};
  EXPECT_EQ(refusal(axes),
            "DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC: Axes are missing: Axes is null, and "
            "AxisCount is 1");
  log_softmax.AxisCount = 0;
  EXPECT_EQ(
      refusal(axes),
      "DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC: Axes is empty; at least one axis is needed");
}

TEST_F(DirectML, RefusesNumbersThatNobodyDefined) {
  const std::string who = "DML_ELEMENT_WISE_CLIP_OPERATOR_DESC: ";
  EXPECT_EQ(with(desc.Type, 53), "operator type 53 is not among the operators of dmlops");
  EXPECT_EQ(with(desc.Type, -1), "operator type 4294967295 is not among the operators of dmlops");
  EXPECT_EQ(with(tensor.Type, 0),
            who + "InputTensor has tensor type 0; it must be DML_TENSOR_TYPE_BUFFER (1)");
  EXPECT_NE(with(buffer.DataType, -1).find("InputTensor has data type 4294967295"),
            std::string::npos);
  EXPECT_EQ(with(buffer.Flags, 2),
            who + "InputTensor has flags 2; they must be NONE (0) or OWNED_BY_DML (1)");
  EXPECT_EQ(with(buffer.DimensionCount, 0),
            who + "InputTensor has 0 dimensions; a tensor has 1 to 8");
  EXPECT_EQ(with(buffer.TotalTensorSizeInBytes, 23),
            who +
                "InputTensor has TotalTensorSizeInBytes 23; its type, sizes and strides "
                "need at least 24");
}

// Counts that exceed the arrays' 8 entries.
TEST_F(DirectML, ReadsNoMoreThanATensorCanHave) {
  const std::vector<UINT> eight(8, 1), axes(8, 0);
  buffer.Sizes = eight.data();
  buffer.Strides = eight.data();
  buffer.DimensionCount = 0xffffffff;
  EXPECT_EQ(
      refusal(desc),
      "DML_ELEMENT_WISE_CLIP_OPERATOR_DESC: InputTensor has 4294967295 dimensions; a tensor has 1 "
      "to 8");
  buffer.DimensionCount = 8;
  EXPECT_EQ(refusal(desc), "accepted");
  for (const UINT count : {9u, 0xffffffffu}) {
    const DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC log_softmax = {&tensor, &tensor, count,
                                                                   axes.data()};
    EXPECT_EQ(refusal({DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, &log_softmax}),
              "DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC: Axes has " + std::to_string(count) +
                  " entries; no tensor has more than 8 dimensions");
  }
}

TEST_F(DirectML, RefusesWhatCannotBeFused) {
  DML_OPERATOR_DESC fused = {DML_OPERATOR_ACTIVATION_RELU, nullptr};
  const DML_BATCH_NORMALIZATION_OPERATOR_DESC normalization = {
      &tensor, &tensor, &tensor, &tensor, &tensor, &tensor, TRUE, 1e-5f, &fused};
  const DML_OPERATOR_DESC normalize = {DML_OPERATOR_BATCH_NORMALIZATION, &normalization};
  const std::string who = "DML_BATCH_NORMALIZATION_OPERATOR_DESC: FusedActivation ";
  std::string names;
  for (std::uint32_t i = 0; i < dmlops::kFusableActivationCount; ++i) {
    std::string name = info(static_cast<dmlops::Activation>(i)).name;
    for (char& c : name) c = static_cast<char>(std::toupper(c));
    names += (i == 0 ? "ACTIVATION_" : ", ACTIVATION_") + name;
  }
  EXPECT_EQ(refusal(normalize), who + "DML_ACTIVATION_RELU_OPERATOR_DESC: Desc is null");
  const DML_ACTIVATION_RELU_OPERATOR_DESC relu = {&tensor, nullptr};
  fused.Desc = &relu;
  EXPECT_EQ(refusal(normalize),
            who +
                "DML_ACTIVATION_RELU_OPERATOR_DESC has InputTensor; a fused activation "
                "must have no tensors");
  fused = {static_cast<DML_OPERATOR_TYPE>(54), nullptr};  // a matrix product
  EXPECT_EQ(refusal(normalize),
            who + "is operator type 54, which cannot be fused; it must be one of " + names);
  fused = normalize;  // a cycle
  EXPECT_EQ(refusal(normalize),
            who +
                "is DML_BATCH_NORMALIZATION_OPERATOR_DESC, which cannot be fused; it must "
                "be one of " +
                names);
}

TEST_F(DirectML, CopiesWhatItOwns) {
  DML_BUFFER_TENSOR_DESC owned = buffer;
  owned.Flags |= DML_TENSOR_FLAG_OWNED_BY_DML;
  const DML_TENSOR_DESC input = {DML_TENSOR_TYPE_BUFFER, &owned};
  clip.InputTensor = &input;
  std::vector<float> x = {-1, 0, 1, 6, 7, NAN}, y(6);
  const dmlops::CompiledOperator compiled =
      dmlops::compile(desc, DML_FEATURE_LEVEL_6_4, {{x.data(), 0, 24}});
  x.assign(6, 3.0f);
  compiled.dispatch({dmlops::ConstBinding()}, {{y.data(), 0, 24}});
  EXPECT_EQ(std::vector<float>(y.begin(), y.end() - 1), (std::vector<float>{0, 0, 1, 6, 6}));
  EXPECT_TRUE(std::isnan(y[5]));
}

}  // namespace
