// The operators through the C++ interface: a result of each, the rules, and unchanged outputs after
// a refused call.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "dmlops/activations.hpp"
#include "operators/plan.hpp"
#include "refusal.hpp"

namespace dmlops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Clip, KeepsNanAndInfiniteBounds) {
  std::vector<float> x = {-kInfinity, -1, 0.5f, 7, kInfinity, NAN}, y(x.size());
  clip(x, Scalar(0.0), Scalar(6.0), std::nullopt, y);
  EXPECT_EQ(std::vector<float>(y.begin(), y.end() - 1), (std::vector<float>{0, 0, 0.5f, 6, 6}));
  EXPECT_TRUE(std::isnan(y.back()));
  clip(x, Scalar(), Scalar(), std::nullopt, y);
  EXPECT_EQ(y[0], -kInfinity);
}

TEST(Clip, IsExactAtTheLimitsOfIntegers) {
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> x = {max, max - 1, -max - 1}, y(x.size());
  clip(x, Scalar(-max), Scalar(max - 1), std::nullopt, y);
  EXPECT_EQ(y, (std::vector<std::int64_t>{max - 1, max - 1, -max}));
  clip(x, Scalar(), Scalar(), ScaleBias{1, 0}, y);
  EXPECT_EQ(y, x);
}

TEST(Clip, ScalesBytesWithSaturation) {
  std::vector<std::uint8_t> x(256), y(256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i);
  clip(x, Scalar(), Scalar(), ScaleBias{2, -100}, y);
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(y[static_cast<std::size_t>(i)], std::min(255, std::max(0, 2 * i - 100)));
  }
}

TEST(HardSigmoid, WritesEveryLength) {
  for (std::int64_t count = 1; count < 200; ++count) {
    std::vector<float> x(static_cast<std::size_t>(count)),
        y(static_cast<std::size_t>(count) + 1, -1.0f);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 3;
    hard_sigmoid(x, 0.25f, 0.5f, TensorView(y, {count}));
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(y[i], std::max(0.0f, std::min(0.25f * x[i] + 0.5f, 1.0f))) << count << ' ' << i;
    }
    EXPECT_EQ(y.back(), -1.0f);
  }
}

TEST(BatchNormalization, NormalizesChannels) {
  std::vector<float> x = {1, 3, 5, 9}, mean = {2, 7}, variance = {1, 4}, scale = {1, 1},
                     bias = {0, 10}, y(4);
  const IntegerList channels = {1, 2, 1};
  batch_normalization(
      {{x, {1, 2, 2}}, {mean, channels}, {variance, channels}, {scale, channels}, {bias, channels}},
      0.0f, std::nullopt, TensorView(y, {1, 2, 2}));
  EXPECT_EQ(y, (std::vector<float>{-1, 1, 9, 11}));
}

TEST(LogSoftmax, SeveralAxesTogether) {
  // The input of DirectML's documentation, with values computed with 40 digits.
  std::vector<float> x = {12, 0, -101, 11, 3, 234, 0, -101}, y(8);
  const std::int64_t axes[] = {2, 0};
  log_softmax(TensorView(x, {2, 2, 2}), axes, 2, TensorView(y, {2, 2, 2}));
  const std::vector<double> expected = {-222, -234, -112.00001670156132, -1.670156131839396e-05,
                                        -231, 0,    -11.000016701561318, -112.00001670156132};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(y[i], expected[i], 1e-7 * std::fabs(expected[i]) + 1e-12);
}

// Descriptors are compiled before there is any memory.
TEST(ParameterizedRelu, IsPlannedWithoutMemory) {
  constexpr std::size_t rows = 3, columns = 5;
  const ConstTensorView input(nullptr, DataType::float32, {rows, columns}, ElementStrides{1, 0});
  const ConstTensorView slope(nullptr, DataType::float32, {1, 1}, ElementStrides{0, 0});
  const TensorView output(nullptr, DataType::float32, {rows, columns});
  const auto plan = plan_parameterized_relu(input, slope, output);
  std::vector<float> x = {-2, 4, -6}, factor = {0.5f}, y(rows * columns, 77);
  const auto bytes = [](std::vector<float>& values) {
    return reinterpret_cast<char*>(values.data());
  };
  char* const data[] = {bytes(y), bytes(x), bytes(factor)};
  plan.run(data);
  EXPECT_EQ(y, (std::vector<float>{-1, -1, -1, -1, -1, 4, 4, 4, 4, 4, -3, -3, -3, -3, -3}));
}

TEST(Errors, RefusedCallsWriteNothing) {
  std::vector<float> x = {1, 2, 3}, y(4, -1.0f);
  const auto refuses = [&](const auto& call, const std::string& text) {
    const std::string message = refusal(call);
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_EQ(y, std::vector<float>(4, -1.0f));
  };
  refuses([&] { hard_sigmoid(x, 1, 0, y); },
          "hard_sigmoid: output has shape (4,), but input has shape (3,)");
  std::vector<std::uint8_t> bytes = {1, 2, 3, 4};
  refuses([&] { hard_sigmoid(bytes, 1, 0, y); }, "hard_sigmoid: input has dtype uint8");
  const std::int64_t axis = 1;
  refuses([&] { log_softmax(y, &axis, 1, y); }, "log_softmax: axis 1 is out of range");
  const TensorView folded(y, {2, 2}, ElementStrides{1, 1});
  refuses(
      [&] {
        clip(TensorView(y, {2, 2}), Scalar(), Scalar(), std::nullopt, folded);
      },
      "overlap");
  const FusedActivation swish = {Activation::swish, {}};
  const TensorView one(x, {1});
  refuses(
      [&] {
        batch_normalization({y, one, one, one, one}, 1e-5f, swish, y);
      },
      "fused_activation.type is swish, which cannot be fused; it must be one of elu, celu, ");
}

// The value of an enumeration indexes tables, and may be any number.
TEST(Errors, UnknownActivationsAreRefused) {
  std::vector<float> x(4, 1.0f), y(4, -1.0f);
  for (const std::uint32_t number :
       {std::uint32_t{kActivationCount}, 1000000u, 0x80000000u, 0xffffffffu}) {
    const auto type = static_cast<Activation>(number);
    const std::string text = "type is " + std::to_string(number) + "; it must be one of the " +
                             std::to_string(kActivationCount) + " activations, 0 to " +
                             std::to_string(kActivationCount - 1);
    EXPECT_EQ(refusal([&] { info(type); }), "info: " + text);
    EXPECT_EQ(refusal([&] { activation(type, x, {1, 1}, y); }), "activation: " + text);
    EXPECT_EQ(refusal([&] { activation(type, {}, {1, 1}, {}); }), "activation: " + text);
    const FusedActivation fused = {type, {1, 1}};
    EXPECT_EQ(refusal([&] {
                batch_normalization({x, x, x, x, x}, 0, fused, y);
              }),
              "batch_normalization: fused_activation." + text);
  }
  EXPECT_EQ(y, std::vector<float>(4, -1.0f));
}

TEST(Errors, UnknownDataTypesAreRefused) {
  std::vector<float> x(4, 1.0f), y(4, -1.0f);
  const std::int64_t axis = 0;
  for (const std::uint32_t number : {0u, 9u, 12u, 13u, 14u, 1000000u, 0x80000001u, 0xffffffffu}) {
    TensorView in = x, out = y;
    in.type = out.type = static_cast<DataType>(number);
    EXPECT_THROW(clip(in, {}, {}, std::nullopt, out), TypeError);
    EXPECT_THROW(clip(in, {}, {}, ScaleBias{2, 1}, out), TypeError);
    for (std::uint32_t type = 0; type < kActivationCount; ++type) {
      EXPECT_THROW(activation(static_cast<Activation>(type), in, {1, 1}, out), TypeError);
    }
    EXPECT_THROW(batch_normalization({in, in, in, in, in}, 0, {}, out), TypeError);
    EXPECT_THROW(log_softmax(in, &axis, 1, out), TypeError);
  }
  EXPECT_EQ(y, std::vector<float>(4, -1.0f));
}

TEST(Errors, LayoutsOutOfRangeAreRefused) {
  std::vector<float> x(4), y(4);
  constexpr std::int64_t half = std::int64_t{1} << 31, huge = std::int64_t{1} << 62;
  const auto refused = [&](const TensorView& input) {
    const TensorView output(y.data(), DataType::float32, input.rank, input.sizes, {});
    EXPECT_THROW(clip(input, {}, {}, std::nullopt, y), std::invalid_argument);
    EXPECT_THROW(hard_sigmoid(x, 1, 0, input), std::invalid_argument);
    const std::int64_t axis = 0;
    EXPECT_THROW(log_softmax(input, &axis, 1, output), std::invalid_argument);
    EXPECT_THROW(batch_normalization({x, input, x, x, x}, 0, {}, y), std::invalid_argument);
  };
  refused({x.data(), DataType::float32, 1, {4}, {huge}});            // past 2^63
  refused({x.data(), DataType::float32, 1, {5}, {huge}});            // past 2^64
  refused({x.data(), DataType::float32, 1, {4}, {-huge}});           // reversed
  refused({x.data(), DataType::float32, 2, {3, 3}, {huge, -huge}});  // back to the first size
  refused({x.data(), DataType::float32, 2, {half, half}, {half, 4}});
  refused({x.data(), DataType::float32, 1, {-4}, {4}});
  refused({x.data(), DataType::float32, 9, {}, {}});
  refused({x.data(), DataType::float32, -1, {}, {}});
  for (const int rank : {-1, 9, 1 << 30}) {
    const TensorView both(x.data(), DataType::float32, rank, {1}, {4}), good = x;
    const std::int64_t axis = 0;
    EXPECT_THROW(clip(both, {}, {}, std::nullopt, both), std::invalid_argument);
    EXPECT_THROW(hard_sigmoid(both, 1, 0, both), std::invalid_argument);
    EXPECT_THROW(log_softmax(both, &axis, 1, both), std::invalid_argument);
    EXPECT_THROW(batch_normalization({both, good, good, good, good}, 0, {}, both),
                 std::invalid_argument);
    EXPECT_THROW(batch_normalization({good, good, both, good, good}, 0, {}, good),
                 std::invalid_argument);
  }
  EXPECT_EQ(y, std::vector<float>(4));
}

}  // namespace
}  // namespace dmlops
