// The caller's floating-point state: no public function raises a flag, or traps if the caller has
// enabled traps.
#include <algorithm>
#include <cfenv>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "dmlops/activations.hpp"
#include "dmlops/device.hpp"
#include "dmlops/operator_descs.hpp"
#include "dmlops/runtime.hpp"
#include "restored_settings.hpp"

namespace dmlops {
namespace {

constexpr std::uint32_t kCount = 4099;

// Values for which conversions and comparisons raise flags. Tests of flags must not compute them.
constexpr float kSubnormal = std::numeric_limits<float>::denorm_min();
constexpr float kSignaling = std::numeric_limits<float>::signaling_NaN();

// Every public function that computes with numbers, or writes them into a message.
void call_everything() {
  static std::vector<float> x(kCount), y(kCount);
  std::fill(x.begin(), x.end(), 0.1f);
  const ConstTensorView input(x);
  const TensorView output(y);
  clip(input, Scalar(0.1), Scalar(std::int64_t{0x7fffffffffffffff}), ScaleBias{0.1f, 0.7f}, output);
  tanh(input, output);
  hard_sigmoid(input, 0.1f, 0.3f, output);
  batch_normalization({input, input, input, input, input}, 0.1f, {}, output);
  log_softmax(input, output);
  // An input that overlaps the output in part is copied first.
  softmax({x.data() + 2, {1000, 3}, ElementStrides{4, -1}}, {1}, {x.data(), {1000, 3}});
  std::fill(x.begin(), x.end(), 0.1f);
  mean_variance_normalization(input, {0}, output);
  parameterized_relu(input, input, output);
  clip_grad(input, input, Scalar(0.1), Scalar(0x1p-1070), output);
  const TensorView integers(output.data, DataType::int32, {kCount});
  clip_grad(integers, integers, Scalar(-1e300), Scalar(1e300), integers);

  const BufferTensorDesc tensor(TensorDataType::float32, {kCount});
  const BufferTensorDesc half(TensorDataType::float16, {kCount});
  ElementWiseClipOperatorDesc clip_desc;
  ElementWiseClip1OperatorDesc clip1_desc;
  ActivationSoftplusOperatorDesc softplus;
  for (const BufferTensorDesc& x_desc : {tensor, half}) {
    clip_desc.input_tensor = clip_desc.output_tensor = x_desc;
    for (const float bound : {0.1f, kSubnormal, kSignaling, 1e30f}) {
      clip_desc.min = clip_desc.max = bound;
      Device().compile(clip_desc);
    }
    clip1_desc.input_tensor = clip1_desc.output_tensor = x_desc;
    clip1_desc.min_max_data_type = x_desc.data_type;
    clip1_desc.min = 0.1;
    clip1_desc.max = 4097;
    Device().compile(clip1_desc);
    EXPECT_THROW(scalar_union(x_desc.data_type, 1e300), ValidationError);
  }
  scalar_union(TensorDataType::float32, std::numeric_limits<std::int64_t>::max());
  clip_desc.input_tensor = clip_desc.output_tensor =
      BufferTensorDesc(TensorDataType::int32, {kCount});
  clip_desc.min = clip_desc.max = 0.1f;
  Device().compile(clip_desc);
  softplus.input_tensor = softplus.output_tensor = tensor;
  softplus.steepness = 0.1f;
  EXPECT_THROW(validate(softplus, FeatureLevel::level_6_3), ValidationError);
  softplus.steepness = kSignaling;
  required_feature_level(softplus);
  validate(softplus, FeatureLevel::level_6_4);
  const CompiledOperator compiled = Device().compile(softplus);
  const std::size_t bytes = kCount * sizeof(float);
  compiled.dispatch({{x.data(), 0, bytes}}, {{y.data(), 0, bytes}});
}

// Calls are split over two threads.
class FloatState : public testing::Test {
 protected:
  void SetUp() override {
    set_num_threads(2);
    set_split_threshold(256);
  }

 private:
  RestoredSettings restored_;
};

TEST_F(FloatState, NoFlagIsRaised) {
  std::feclearexcept(FE_ALL_EXCEPT);
  call_everything();
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
}

TEST_F(FloatState, FlagsOfTheCallerStay) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_DIVBYZERO);
  call_everything();
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), FE_DIVBYZERO);
  std::feclearexcept(FE_ALL_EXCEPT);
}

TEST_F(FloatState, BoundsOfDescriptorsRoundToNearest) {
  for (const int direction : {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}) {
    std::fesetround(direction);
    const ScalarUnion single = scalar_union(TensorDataType::float32, 0.1);
    const ScalarUnion integer = scalar_union(TensorDataType::float32, 0x7fffffffffffffff);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(single.bits, 0x3dcccccdu) << direction;
    EXPECT_EQ(integer.bits, 0x5f000000u) << direction;
  }
}

#if defined(__GLIBC__)
TEST_F(FloatState, TrapsOfTheCallerDoNotFire) {
  std::feclearexcept(FE_ALL_EXCEPT);
  const int before = feenableexcept(FE_INEXACT | FE_INVALID | FE_UNDERFLOW | FE_OVERFLOW);
  if (before == -1) GTEST_SKIP() << "this processor has no traps";
  call_everything();
  fedisableexcept(FE_ALL_EXCEPT);
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
}
#endif

}  // namespace
}  // namespace dmlops
