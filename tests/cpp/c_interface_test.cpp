// The C interface: status codes, messages, and the results of the C++ functions that it calls.
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "descriptors/table.hpp"
#include "dmlops/dmlops.h"
#include "dmlops/dmlops.hpp"
#include "restored_settings.hpp"

namespace {

dmlops_view view_of(const std::vector<float>& values) {
  dmlops_view view;
  const auto size = static_cast<int64_t>(values.size());
  EXPECT_EQ(dmlops_packed_view(values.data(), DML_TENSOR_DATA_TYPE_FLOAT32, 1, &size, &view),
            DMLOPS_SUCCESS);
  return view;
}

std::string error() { return dmlops_last_error(); }

struct CInterface : testing::Test {
  std::vector<float> x = {-3, 0.5f, 9}, y = {-1, -1, -1}, expected = {-1, -1, -1};
  dmlops_view in = view_of(x), out = view_of(y);
  void TearDown() override { EXPECT_EQ(y, expected); }
};

TEST_F(CInterface, HasTheVersionOfItsHeader) {
  EXPECT_EQ(dmlops_abi_version(), DMLOPS_ABI_VERSION);
  EXPECT_EQ(dmlops_version(), dmlops::version());
}

TEST_F(CInterface, SetsTheNumberOfThreads) {
  const dmlops::RestoredSettings restored;
  int32_t count = 0;
  EXPECT_EQ(dmlops_set_num_threads(3), DMLOPS_SUCCESS);
  EXPECT_EQ(dmlops_get_num_threads(&count), DMLOPS_SUCCESS);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(dmlops_set_num_threads(0), DMLOPS_INVALID_ARGUMENT);
  EXPECT_EQ(dmlops_get_num_threads(&count), DMLOPS_SUCCESS);
  EXPECT_EQ(count, 3);
}

TEST_F(CInterface, MakesPackedViews) {
  const int64_t sizes[] = {2, 0, 3};
  dmlops_view view;
  EXPECT_EQ(dmlops_packed_view(x.data(), DML_TENSOR_DATA_TYPE_INT16, 3, sizes, &view),
            DMLOPS_SUCCESS);
  EXPECT_EQ(view.data, x.data());
  EXPECT_EQ(view.type, DML_TENSOR_DATA_TYPE_INT16);
  EXPECT_EQ(view.rank, 3);
  EXPECT_EQ(view.sizes[2], 3);
  EXPECT_EQ(view.strides[2], 2);
  EXPECT_EQ(view.strides[1], 6);
  EXPECT_EQ(dmlops_packed_view(x.data(), DML_TENSOR_DATA_TYPE_INT16, 0, nullptr, &view),
            DMLOPS_SUCCESS);
  EXPECT_EQ(dmlops_packed_view(x.data(), DML_TENSOR_DATA_TYPE_INT16, 9, sizes, &view),
            DMLOPS_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "dmlops_packed_view: rank is 9; it must be 0 to 8");
  EXPECT_EQ(dmlops_packed_view(x.data(), DML_TENSOR_DATA_TYPE_INT16, 1, nullptr, &view),
            DMLOPS_INVALID_ARGUMENT);
}

TEST_F(CInterface, ComputesEveryFunction) {
  dmlops_scalar min = {DML_TENSOR_DATA_TYPE_INT64, {0}}, max = {DML_TENSOR_DATA_TYPE_FLOAT64, {0}};
  min.value.int64 = -2;
  max.value.float64 = 6;
  const DML_SCALE_BIAS scale_bias = {2, 1};
  EXPECT_EQ(dmlops_clip(&in, &min, &max, &scale_bias, &out), DMLOPS_SUCCESS) << error();
  EXPECT_EQ(y, (std::vector<float>{-2, 2, 6}));
  EXPECT_EQ(dmlops_clip(&in, nullptr, nullptr, nullptr, &out), DMLOPS_SUCCESS);
  EXPECT_EQ(y, x);

  const int64_t axis = -1;
  EXPECT_EQ(dmlops_log_softmax(&in, &axis, 1, &out), DMLOPS_SUCCESS);
  dmlops::log_softmax(x, expected);
  EXPECT_EQ(y, expected);

  dmlops_activation activation;
  std::size_t activations = 0;
  for (std::uint32_t type = 0; type < 200; ++type) {
    const auto wanted = static_cast<DML_OPERATOR_TYPE>(type);
    if (dmlops_default_activation(wanted, &activation) != DMLOPS_SUCCESS) continue;
    ++activations;
    EXPECT_EQ(dmlops_activate(&activation, &in, &out), DMLOPS_SUCCESS) << error();
    const dmlops_view* const v = &in;
    const bool fusable = dmlops::find_operator(static_cast<dmlops::OperatorType>(type))->is_fusable;
    EXPECT_EQ(dmlops_batch_normalization(v, v, v, v, v, 10, &activation, &out),
              fusable ? DMLOPS_SUCCESS : DMLOPS_INVALID_ARGUMENT);
  }
  EXPECT_EQ(activations, dmlops::kActivationCount);
  EXPECT_EQ(dmlops_default_activation(DML_OPERATOR_ACTIVATION_SCALED_TANH, &activation),
            DMLOPS_SUCCESS);
  EXPECT_EQ(activation.parameters[1], 0.5f);
  EXPECT_EQ(dmlops_activate(&activation, &in, &out), DMLOPS_SUCCESS);
  dmlops::scaled_tanh(x, expected);
  EXPECT_EQ(y, expected);
  EXPECT_EQ(dmlops_batch_normalization(&in, &in, &in, &in, &in, 10, &activation, &out),
            DMLOPS_SUCCESS);
  dmlops::batch_normalization({x, x, x, x, x}, 10, dmlops::Activation::scaled_tanh, expected);
  EXPECT_EQ(y, expected);
}

TEST_F(CInterface, PassesEachTensorToItsParameter) {
  const std::vector<float> mean = {1, 2, 3}, variance = {4, 5, 6}, scale = {7, 8, 9},
                           bias = {10, 11, 12};
  const dmlops_view views[] = {view_of(mean), view_of(variance), view_of(scale), view_of(bias)};
  EXPECT_EQ(dmlops_batch_normalization(&in, &views[0], &views[1], &views[2], &views[3], 0.5f,
                                       nullptr, &out),
            DMLOPS_SUCCESS);
  dmlops::batch_normalization({x, mean, variance, scale, bias}, 0.5f, {}, expected);
}

TEST_F(CInterface, TakesUnsignedBounds) {
  uint64_t values[] = {UINT64_MAX, 5};
  const int64_t size = 2;
  dmlops_view view;
  EXPECT_EQ(dmlops_packed_view(values, DML_TENSOR_DATA_TYPE_UINT64, 1, &size, &view),
            DMLOPS_SUCCESS);
  dmlops_scalar max = {DML_TENSOR_DATA_TYPE_UINT64, {0}};
  max.value.uint64 = (uint64_t{1} << 63) + 5;
  EXPECT_EQ(dmlops_clip(&view, nullptr, &max, nullptr, &view), DMLOPS_SUCCESS);
  EXPECT_EQ(values[0], max.value.uint64);
  EXPECT_EQ(values[1], 5u);
}

TEST_F(CInterface, SaysWhatIsWrong) {
  const auto refused = [&](dmlops_status status, dmlops_status expected_status,
                           const std::string& message) {
    EXPECT_EQ(status, expected_status);
    EXPECT_EQ(error(), message);
  };
  const int64_t axis = 1;
  refused(dmlops_log_softmax(&in, &axis, 1, nullptr), DMLOPS_INVALID_ARGUMENT,
          "dmlops_log_softmax: output is null");
  refused(dmlops_log_softmax(&in, nullptr, 1, &out), DMLOPS_INVALID_ARGUMENT,
          "log_softmax: axes is a null pointer");
  EXPECT_EQ(dmlops_log_softmax(&in, &axis, 1, &out), DMLOPS_INVALID_ARGUMENT);
  in.data = nullptr;
  refused(dmlops_clip(&in, nullptr, nullptr, nullptr, &out), DMLOPS_INVALID_ARGUMENT,
          "clip: input has shape (3,), but its data pointer is null");
  in.data = x.data();
  const dmlops_scalar wrong = {DML_TENSOR_DATA_TYPE_FLOAT16, {0}};
  refused(dmlops_clip(&in, &wrong, nullptr, nullptr, &out), DMLOPS_TYPE_ERROR,
          "dmlops_clip: min has data type FLOAT16; it must be FLOAT64, INT64 or UINT64");
  in.type = DML_TENSOR_DATA_TYPE_UINT8;
  const dmlops_activation tanh = {DML_OPERATOR_ACTIVATION_TANH, {0, 0}};
  EXPECT_EQ(dmlops_activate(&tanh, &in, &out), DMLOPS_TYPE_ERROR);
  in.type = static_cast<DML_TENSOR_DATA_TYPE>(-1);
  EXPECT_EQ(dmlops_activate(&tanh, &in, &out), DMLOPS_TYPE_ERROR);
  in.type = DML_TENSOR_DATA_TYPE_FLOAT32;
  in.rank = 9;
  EXPECT_EQ(dmlops_activate(&tanh, &in, &out), DMLOPS_INVALID_ARGUMENT);
  in.rank = 1;
  const dmlops_activation clip = {DML_OPERATOR_ELEMENT_WISE_CLIP, {0, 0}};
  refused(dmlops_activate(&clip, &in, &out), DMLOPS_INVALID_ARGUMENT,
          "dmlops_activate: operator type DML_ELEMENT_WISE_CLIP_OPERATOR_DESC is not an "
          "activation of one input and up to two numbers");
  std::thread([] { EXPECT_EQ(error(), ""); }).join();  // a message of its own for each thread
}

TEST_F(CInterface, CompilesAndDispatches) {
  const uint32_t sizes[] = {3};
  DML_BUFFER_TENSOR_DESC buffer = {
      DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 1, sizes, nullptr, 0, 0};
  uint64_t bytes = 0;
  EXPECT_EQ(dmlops_calc_buffer_tensor_size(&buffer, &bytes), DMLOPS_SUCCESS);
  EXPECT_EQ(bytes, 12u);
  buffer.TotalTensorSizeInBytes = bytes;
  const DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
  const DML_ELEMENT_WISE_CLIP_OPERATOR_DESC clip = {&tensor, &tensor, nullptr, 0.0f, 6.0f};
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_ELEMENT_WISE_CLIP, &clip};
  uint32_t level = 0;
  EXPECT_EQ(dmlops_required_feature_level(&desc, &level), DMLOPS_SUCCESS);
  EXPECT_EQ(level, static_cast<uint32_t>(DML_FEATURE_LEVEL_3_0));
  EXPECT_EQ(dmlops_validate(&desc, level), DMLOPS_SUCCESS);
  EXPECT_EQ(dmlops_validate(&desc, DML_FEATURE_LEVEL_2_0), DMLOPS_VALIDATION_ERROR);
  EXPECT_EQ(dmlops_validate(&desc, 1), DMLOPS_VALIDATION_ERROR);
  EXPECT_EQ(dmlops_validate(nullptr, level), DMLOPS_INVALID_ARGUMENT);

  auto* compiled = reinterpret_cast<dmlops_compiled_operator*>(&level);  // to be replaced
  EXPECT_EQ(dmlops_compile(&desc, DML_FEATURE_LEVEL_2_0, nullptr, 0, &compiled),
            DMLOPS_VALIDATION_ERROR);
  EXPECT_EQ(dmlops_compile(&desc, level, nullptr, 1, &compiled), DMLOPS_INVALID_ARGUMENT);
  EXPECT_EQ(dmlops_compile(&desc, level, nullptr, ~size_t{0}, &compiled), DMLOPS_BINDING_ERROR);
  EXPECT_EQ(compiled, nullptr);
  ASSERT_EQ(dmlops_compile(&desc, level, nullptr, 0, &compiled), DMLOPS_SUCCESS) << error();
  const dmlops_binding input = {x.data(), 0, 12, 0}, output = {y.data(), 0, 12, 0};
  const dmlops_binding small = {y.data(), 0, 8, 0};
  EXPECT_EQ(dmlops_dispatch(compiled, &input, 1, &small, 1), DMLOPS_BINDING_ERROR);
  EXPECT_EQ(dmlops_dispatch(compiled, &input, 1, nullptr, 0), DMLOPS_BINDING_ERROR);
  EXPECT_EQ(dmlops_dispatch(compiled, nullptr, 1, &output, 1), DMLOPS_INVALID_ARGUMENT);
  EXPECT_EQ(dmlops_dispatch(nullptr, &input, 1, &output, 1), DMLOPS_INVALID_ARGUMENT);
  const std::vector<dmlops_binding> many(100, input);
  EXPECT_EQ(dmlops_dispatch(compiled, many.data(), 100, &output, 1), DMLOPS_BINDING_ERROR);
  EXPECT_EQ(dmlops_dispatch(compiled, &input, 1, many.data(), 100), DMLOPS_BINDING_ERROR);
  EXPECT_EQ(y, expected);
  EXPECT_EQ(dmlops_dispatch(compiled, &input, 1, &output, 1), DMLOPS_SUCCESS);
  expected = {0, 0.5f, 6};
  dmlops_release(compiled);
  dmlops_release(nullptr);
}

TEST_F(CInterface, ArraysMayEndWithTheTensor) {
  const uint32_t size = 5;
  const DML_BUFFER_TENSOR_DESC buffer = {
      DML_TENSOR_DATA_TYPE_UINT8, DML_TENSOR_FLAG_NONE, 1, &size, nullptr, 8, 0};
  const DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
  const DML_ELEMENT_WISE_CLIP_OPERATOR_DESC clip = {&tensor, &tensor, nullptr, 0.0f, 3.0f};
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_ELEMENT_WISE_CLIP, &clip};
  dmlops_compiled_operator* compiled = nullptr;
  ASSERT_EQ(dmlops_compile(&desc, DML_FEATURE_LEVEL_6_4, nullptr, 0, &compiled), DMLOPS_SUCCESS);
  std::array<uint8_t, 5> values = {1, 2, 3, 4, 5};
  const dmlops_binding array = {values.data(), 0, 5, 1}, whole = {values.data(), 0, 5, 0};
  EXPECT_EQ(dmlops_dispatch(compiled, &whole, 1, &array, 1), DMLOPS_BINDING_ERROR);
  EXPECT_EQ(dmlops_dispatch(compiled, &array, 1, &whole, 1), DMLOPS_BINDING_ERROR);
  EXPECT_EQ(dmlops_dispatch(compiled, &array, 1, &array, 1), DMLOPS_SUCCESS) << error();
  EXPECT_EQ(values, (std::array<uint8_t, 5>{1, 2, 3, 3, 3}));
  dmlops_release(compiled);
}

TEST_F(CInterface, DispatchesSeveralOutputs) {
  const uint32_t of_x[] = {1, 1, 1, 3}, of_number[] = {1, 1, 1, 1};
  const auto buffer = [](const uint32_t* sizes, uint64_t bytes) {
    return DML_BUFFER_TENSOR_DESC{
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, bytes, 0};
  };
  const DML_BUFFER_TENSOR_DESC row = buffer(of_x, 12), single = buffer(of_number, 4);
  const DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &row},
                        number = {DML_TENSOR_TYPE_BUFFER, &single};
  const DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC training = {
      &tensor, &number, &number, nullptr, &tensor, &number, &number, 0.0f, nullptr};
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_BATCH_NORMALIZATION_TRAINING, &training};
  dmlops_compiled_operator* compiled = nullptr;
  ASSERT_EQ(dmlops_compile(&desc, DML_FEATURE_LEVEL_6_4, nullptr, 0, &compiled), DMLOPS_SUCCESS)
      << error();
  x = {-1, 0, 1};
  float scale = 2, bias = 10, mean = 5, variance = 5;
  const dmlops_binding inputs[] = {
      {x.data(), 0, 12, 0}, {&scale, 0, 4, 0}, {&bias, 0, 4, 0}, {nullptr, 0, 0, 0}};
  const dmlops_binding outputs[] = {{y.data(), 0, 12, 0}, {&mean, 0, 4, 0}, {&variance, 0, 4, 0}};
  EXPECT_EQ(dmlops_dispatch(compiled, inputs, 4, outputs, 2), DMLOPS_BINDING_ERROR);
  EXPECT_EQ(y, expected);
  EXPECT_EQ(dmlops_dispatch(compiled, inputs, 4, outputs, 3), DMLOPS_SUCCESS) << error();
  EXPECT_EQ(mean, 0);
  EXPECT_FLOAT_EQ(variance, 2.0f / 3);
  expected = {10 - std::sqrt(6.0f), 10, 10 + std::sqrt(6.0f)};
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_FLOAT_EQ(y[i], expected[i]);
  expected = y;
  dmlops_release(compiled);
}

TEST_F(CInterface, CopiesWhatItOwns) {
  const uint32_t sizes[] = {3};
  const DML_BUFFER_TENSOR_DESC owned = {
      DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_OWNED_BY_DML, 1, sizes, nullptr, 12, 0};
  DML_BUFFER_TENSOR_DESC buffer = owned;
  buffer.Flags = DML_TENSOR_FLAG_NONE;
  const DML_TENSOR_DESC from = {DML_TENSOR_TYPE_BUFFER, &owned},
                        to = {DML_TENSOR_TYPE_BUFFER, &buffer};
  const DML_ACTIVATION_RELU_OPERATOR_DESC relu = {&from, &to};
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_ACTIVATION_RELU, &relu};
  const dmlops_binding initial = {x.data(), 0, 12, 0}, none = {nullptr, 0, 0, 0},
                       output = {y.data(), 0, 12, 0};
  dmlops_compiled_operator* compiled = nullptr;
  const dmlops_binding two[] = {initial, initial};
  EXPECT_EQ(dmlops_compile(&desc, DML_FEATURE_LEVEL_6_4, two, 2, &compiled), DMLOPS_BINDING_ERROR);
  EXPECT_EQ(error(), "DML_ACTIVATION_RELU_OPERATOR_DESC: 2 initial bindings; it has 1 input");
  ASSERT_EQ(dmlops_compile(&desc, DML_FEATURE_LEVEL_6_4, &initial, 1, &compiled), DMLOPS_SUCCESS);
  x.assign(3, 5);
  EXPECT_EQ(dmlops_dispatch(compiled, &none, 1, &output, 1), DMLOPS_SUCCESS) << error();
  expected = {0, 0.5f, 9};
  dmlops_release(compiled);
}

}  // namespace
