// A program that includes Microsoft's header, and uses its types, for several values of
// DML_TARGET_VERSION.
#include <DirectML.h>
#include <gtest/gtest.h>
#include <vector>

#include "dmlops/directml.h"

// The program's own copy of DirectML's helper, as its documentation offers it.
// NOLINTNEXTLINE(readability-identifier-naming): DirectML's name
static UINT64 DMLCalcBufferTensorSize(DML_TENSOR_DATA_TYPE, UINT, const UINT*, const UINT*) {
  return 16;
}

namespace {

std::vector<float> dispatched(const dmlops::CompiledOperator& compiled,
                              const std::vector<float>& x) {
  std::vector<float> y(x.size());
  compiled.dispatch({{x.data(), 0, x.size() * sizeof(float)}},
                    {{y.data(), 0, y.size() * sizeof(float)}});
  return y;
}

const UINT kSizes[] = {1, 1, 1, 4};
const DML_BUFFER_TENSOR_DESC kBuffer = {
    DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, kSizes, nullptr, 16, 0};
const DML_TENSOR_DESC kTensor = {DML_TENSOR_TYPE_BUFFER, &kBuffer};

TEST(MicrosoftFirst, KeepsTheProgramsOwnHelper) {
  EXPECT_EQ(DMLCalcBufferTensorSize(DML_TENSOR_DATA_TYPE_UNKNOWN, 0, nullptr, nullptr), 16u);
}

TEST(MicrosoftFirst, CompilesItsStructs) {
  const DML_ELEMENT_WISE_CLIP_OPERATOR_DESC clip = {&kTensor, &kTensor, nullptr, 0.0f, 6.0f};
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_ELEMENT_WISE_CLIP, &clip};
  EXPECT_EQ(dispatched(dmlops::compile(desc, dmlops::FeatureLevel::level_1_0), {-1, 2, 7, 3}),
            (std::vector<float>{0, 2, 6, 3}));
#if DML_TARGET_VERSION >= 0x2000
  EXPECT_EQ(dispatched(dmlops::compile(desc, DML_FEATURE_LEVEL_2_0), {-1, 2, 7, 3}),
            (std::vector<float>{0, 2, 6, 3}));
#endif
  EXPECT_EQ(dmlops::required_feature_level(desc), dmlops::FeatureLevel::level_1_0);
}

#if DML_TARGET_VERSION >= 0x5100
TEST(MicrosoftFirst, CompilesWhatNewerLevelsHave) {
  const UINT axes[] = {3};
  const DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC log_softmax = {&kTensor, &kTensor, 1, axes};
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, &log_softmax};
  EXPECT_FLOAT_EQ(dispatched(dmlops::compile(desc), {5, 5, 5, 5})[0], -1.3862943611198906f);
  EXPECT_EQ(dmlops::required_feature_level(desc), dmlops::FeatureLevel::level_5_1);
}
#endif

}  // namespace
