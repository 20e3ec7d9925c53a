// Descriptors and compiled operators through the C++ interface: messages, bindings, outputs after a
// refused dispatch, and tensors whose sizes overflow.
#include <array>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "dmlops/device.hpp"
#include "refusal.hpp"

namespace dmlops {
namespace {

OperatorDesc unary(OperatorType type, const BufferTensorDesc& x) {
  OperatorDesc desc;
  desc.type = type;
  desc.tensors[0] = desc.tensors[1] = x;
  return desc;
}

OperatorDesc clip_desc(const BufferTensorDesc& x) {
  OperatorDesc desc = unary(OperatorType::element_wise_clip, x);
  desc.numbers = {0.0f, 6.0f};
  return desc;
}

TEST(Descriptors, SayWhichLevelAccepts) {
  OperatorDesc desc = unary(OperatorType::activation_log_softmax1, {DataType::float32, {2, 3}});
  desc.axes = {0};
  EXPECT_EQ(refusal<ValidationError>([&] { validate(desc, FeatureLevel::level_5_0); }),
            "ActivationLogSoftmax1OperatorDesc needs DML_FEATURE_LEVEL_5_1; the device has 5_0");
  EXPECT_EQ(required_feature_level(desc), FeatureLevel::level_5_1);
  desc.axes = {0, 0};
  EXPECT_EQ(refusal<ValidationError>([&] { required_feature_level(desc); }),
            "ActivationLogSoftmax1OperatorDesc: axes has 0 twice");
}

TEST(Descriptors, SayHowATensorIsBroadcast) {
  OperatorDesc desc = unary(OperatorType::batch_normalization, {DataType::float32, {1, 2, 3, 4}});
  for (std::size_t i = 2; i < 6; ++i) desc.tensors[i] = desc.tensors[0];
  desc.booleans[0] = false;
  const auto refused = [&] {
    return refusal<ValidationError>([&] { validate(desc, FeatureLevel::level_3_1); });
  };
  EXPECT_EQ(refused(), "accepted");
  desc.tensors[1]->strides = {12, 0, 4, 1};  // the channels may be broadcast
  EXPECT_EQ(refused(), "accepted");
  desc.tensors[1]->strides = {24, 12, 0, 1};
  EXPECT_EQ(refused(),
            "BatchNormalizationOperatorDesc: mean_tensor is broadcast in dimension 2, by a stride "
            "of 0, which spatial=False does not allow at DML_FEATURE_LEVEL_3_1; "
            "DML_FEATURE_LEVEL_4_0 accepts it");
  desc.tensors[1] = BufferTensorDesc(DataType::float32, {1, 2, 3, 1});
  EXPECT_EQ(refused(),
            "BatchNormalizationOperatorDesc: mean_tensor is broadcast in dimension 3, from size 1 "
            "to 4, which spatial=False does not allow at DML_FEATURE_LEVEL_3_1; "
            "DML_FEATURE_LEVEL_4_0 accepts it");
}

TEST(Descriptors, DoNotWrap) {
  constexpr std::uint32_t max = 0xffffffff;
  BufferTensorDesc x(DataType::float32, {max, max, max, max, max, max, max, max});
  EXPECT_THROW(calc_buffer_tensor_size(x), ValidationError);
  x = BufferTensorDesc(DataType::float32, {2, 2, 2, 2, 2, 2, 2, 2},
                       {max, max, max, max, max, max, max, max});
  EXPECT_THROW(calc_buffer_tensor_size(x), ValidationError);
  EXPECT_THROW(validate(clip_desc(x), FeatureLevel::level_6_4), ValidationError);
  EXPECT_EQ(calc_buffer_tensor_size(BufferTensorDesc(DataType::float64, {max})), 8ull * max);
  x = BufferTensorDesc(DataType::float32, {1});
  x.dimension_count = max;
  EXPECT_THROW(validate(clip_desc(x), FeatureLevel::level_6_4), ValidationError);
}

TEST(Descriptors, UnknownValuesAreErrors) {
  EXPECT_THROW(Device(static_cast<FeatureLevel>(0x5001)), ValidationError);
  EXPECT_THROW(validate(unary(static_cast<OperatorType>(53), {DataType::float32, {1}}),
                        FeatureLevel::level_6_4),
               ValidationError);
  EXPECT_THROW(
      validate(clip_desc({static_cast<DataType>(0x80000001), {1}}), FeatureLevel::level_6_4),
      ValidationError);
  EXPECT_THROW(validate(OperatorDesc(), FeatureLevel::level_6_4), ValidationError);
}

TEST(CompiledOperator, RunsInPlace) {
  std::array<float, 4> x = {-1, 2, 7, NAN};
  const CompiledOperator compiled = Device().compile(clip_desc({DataType::float32, {4}}));
  const Binding output = {x.data(), 0, sizeof x};
  const ConstBinding input = {x.data(), 0, sizeof x};
  compiled.dispatch(&input, 1, &output, 1);
  EXPECT_EQ(x[0], 0);
  EXPECT_EQ(x[1], 2);
  EXPECT_EQ(x[2], 6);
  EXPECT_TRUE(std::isnan(x[3]));
}

TEST(CompiledOperator, RefusesBeforeItWrites) {
  const std::vector<float> x(16, 1.0f);
  std::vector<float> y(16, -1.0f);
  const CompiledOperator compiled = Device().compile(clip_desc({DataType::float32, {4}}));
  const auto refused = [&](const ConstBinding& input, const Binding& output) {
    const auto call = [&] { compiled.dispatch(&input, 1, &output, 1); };
    return refusal<BindingError>(call) != "accepted" && y == std::vector<float>(16, -1.0f);
  };
  EXPECT_TRUE(refused({x.data(), 0, 12}, {y.data(), 0, 16}));
  EXPECT_TRUE(refused({x.data(), 0, 16}, {y.data(), 0, 15}));
  EXPECT_TRUE(refused({x.data(), 4, 16}, {y.data(), 0, 16}));
  EXPECT_TRUE(refused({nullptr, 0, 16}, {y.data(), 0, 16}));
  EXPECT_TRUE(refused({x.data(), 0, 16}, {nullptr, 0, 16}));
  EXPECT_TRUE(refused({y.data(), 0, 32}, {y.data(), 16, 16}));
  EXPECT_THROW(compiled.dispatch(nullptr, 0, nullptr, 0), BindingError);
  EXPECT_FALSE(refused({x.data(), 0, 16}, {y.data(), 0, 16}));
}

TEST(CompiledOperator, RefusesBindingsPastTheLastAddress) {
  std::vector<float> x(16, 1.0f);
  const std::uint64_t rest = ~std::uint64_t{0};
  const std::string text =
      "ElementWiseClipOperatorDesc: input_tensor is bound to 18446744073709551615 bytes at offset "
      "16, which end past the last address; size_in_bytes counts from the offset";
  const CompiledOperator compiled = Device().compile(clip_desc({DataType::float32, {8}}));
  EXPECT_EQ(refusal<BindingError>([&] {
              compiled.dispatch({{x.data(), 16, rest}}, {{x.data(), 32, 32}});
            }),
            text);
  EXPECT_NE(refusal<BindingError>([&] {
              compiled.dispatch({{x.data(), 0, 32}}, {{x.data(), 16, rest}});
            }),
            "accepted");
  OperatorDesc owned = clip_desc({DataType::float32, {8}});
  owned.tensors[0]->flags = TensorFlags::owned_by_dml;
  EXPECT_EQ(refusal<BindingError>([&] { Device().compile(owned, {{x.data(), 16, rest}}); }), text);
  EXPECT_EQ(x, std::vector<float>(16, 1.0f));
}

// DirectML's rule for buffers. An array is not a DirectML resource, and may end with its last
// element.
TEST(CompiledOperator, HoldsBuffersToDirectMLsSizes) {
  BufferTensorDesc bytes(DataType::uint8, {5});
  EXPECT_EQ(calc_buffer_tensor_size(bytes), 8u);
  const std::vector<std::uint8_t> x = {1, 2, 9, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<std::uint8_t> y(12);
  const auto dispatched = [&](std::uint64_t in, std::uint64_t out, bool is_array) {
    return refusal<BindingError>([&] {
      Device()
          .compile(clip_desc(bytes))
          .dispatch({{x.data(), 0, in, is_array}}, {{y.data(), 0, out, is_array}});
    });
  };
  const std::string who = "ElementWiseClipOperatorDesc: ";
  EXPECT_EQ(dispatched(5, 8, false), who + "input_tensor is bound to 5 bytes; it needs 8");
  EXPECT_EQ(dispatched(8, 7, false), who + "output_tensor is bound to 7 bytes; it needs 8");
  EXPECT_EQ(
      dispatched(10, 8, false),
      who + "input_tensor is bound to 10 bytes; the size of a buffer must be a multiple of 4");
  EXPECT_EQ(y, std::vector<std::uint8_t>(12));
  EXPECT_EQ(dispatched(8, 8, false), "accepted");
  EXPECT_EQ(y, (std::vector<std::uint8_t>{1, 2, 6, 4, 5, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(dispatched(4, 5, true), who + "input_tensor is bound to 4 bytes; it needs 5");
  EXPECT_EQ(dispatched(5, 6, true), "accepted");
  bytes.total_tensor_size_in_bytes = 9;
  EXPECT_EQ(dispatched(8, 12, false), who + "input_tensor is bound to 8 bytes; it needs 9");

  OperatorDesc desc = clip_desc(bytes);
  desc.tensors[0]->flags = TensorFlags::owned_by_dml;
  EXPECT_EQ(
      refusal<BindingError>([&] {
        Device().compile(desc, {{x.data(), 0, 10}});
      }),
      who + "input_tensor is bound to 10 bytes; the size of a buffer must be a multiple of 4");
  Device().compile(desc, {{x.data(), 0, 12}});
}

TEST(CompiledOperator, RefusesListsThatAreNull) {
  const CompiledOperator compiled = Device().compile(clip_desc({DataType::float32, {4}}));
  std::array<float, 4> x = {};
  const ConstBinding input = {x.data(), 0, 16};
  const Binding output = {x.data(), 0, 16};
  EXPECT_THROW(compiled.dispatch(nullptr, 1, &output, 1), BindingError);
  EXPECT_THROW(compiled.dispatch(&input, 1, nullptr, 1), BindingError);
}

TEST(CompiledOperator, CopiesWhatItOwns) {
  OperatorDesc desc = clip_desc({DataType::float32, {4}});
  desc.tensors[0]->flags = TensorFlags::owned_by_dml;
  std::vector<float> x = {-1, 2, 7, 3}, y(4);
  const CompiledOperator compiled = Device().compile(desc, {{x.data(), 0, 16}});
  x.assign(4, 5.0f);
  const ConstBinding none, again = {x.data(), 0, 16};
  const Binding output = {y.data(), 0, 16};
  compiled.dispatch(&none, 1, &output, 1);
  EXPECT_EQ(y, (std::vector<float>{0, 2, 6, 3}));
  EXPECT_THROW(compiled.dispatch(&again, 1, &output, 1), BindingError);
  EXPECT_THROW(Device().compile(desc), BindingError);
}

}  // namespace
}  // namespace dmlops
