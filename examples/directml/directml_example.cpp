// Batch normalization with a fused relu, described with DirectML's structs as in a program for
// Windows, and run on the CPU of any machine.
//
// A program with Microsoft's header includes <DirectML.h> first; the remaining code stays the same.
#include <cmath>
#include <cstdio>
#include <dmlops/directml.h>
#include <dmlops/runtime.hpp>
#include <vector>

namespace {

// Two images of three channels, 2 x 4 pixels, and a mean, variance, scale and bias per channel.
const UINT kImageSizes[] = {2, 3, 2, 4};
const UINT kChannelSizes[] = {1, 3, 1, 1};
const size_t kPixels = 8, kChannels = 3, kImages = 2;

DML_BUFFER_TENSOR_DESC describe(const UINT (&sizes)[4]) {
  DML_BUFFER_TENSOR_DESC desc = {};
  desc.DataType = DML_TENSOR_DATA_TYPE_FLOAT32;
  desc.Flags = DML_TENSOR_FLAG_NONE;
  desc.DimensionCount = 4;
  desc.Sizes = sizes;
  desc.Strides = nullptr;  // packed
  desc.TotalTensorSizeInBytes = sizeof(FLOAT);
  for (const UINT size : sizes) desc.TotalTensorSizeInBytes *= size;
  return desc;
}

dmlops::CompiledOperator compile_batch_normalization(FLOAT epsilon) {
  const DML_BUFFER_TENSOR_DESC images = describe(kImageSizes), channels = describe(kChannelSizes);
  const DML_TENSOR_DESC image_tensor = {DML_TENSOR_TYPE_BUFFER, &images};
  const DML_TENSOR_DESC channel_tensor = {DML_TENSOR_TYPE_BUFFER, &channels};

  const DML_ACTIVATION_RELU_OPERATOR_DESC relu = {};  // fused: it has no tensors
  const DML_OPERATOR_DESC fused_activation = {DML_OPERATOR_ACTIVATION_RELU, &relu};

  DML_BATCH_NORMALIZATION_OPERATOR_DESC normalization = {};
  normalization.InputTensor = &image_tensor;
  normalization.MeanTensor = &channel_tensor;
  normalization.VarianceTensor = &channel_tensor;
  normalization.ScaleTensor = &channel_tensor;
  normalization.BiasTensor = &channel_tensor;
  normalization.OutputTensor = &image_tensor;
  normalization.Spatial = TRUE;
  normalization.Epsilon = epsilon;
  normalization.FusedActivation = &fused_activation;

  // On Windows: IDMLDevice::CreateOperator and CompileOperator. Nothing of the descriptors is kept.
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_BATCH_NORMALIZATION, &normalization};
  return dmlops::compile(desc, DML_FEATURE_LEVEL_1_0);
}

dmlops::ConstBinding bind(const std::vector<float>& tensor) {
  return {tensor.data(), 0, tensor.size() * sizeof(float)};
}

// A descriptor that DirectML would refuse is refused with a message.
bool refuses_a_wrong_descriptor() {
  const DML_BUFFER_TENSOR_DESC images = describe(kImageSizes);
  const DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &images};
  const UINT axis = 4;
  const DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC log_softmax = {&tensor, &tensor, 1, &axis};
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, &log_softmax};
  try {
    dmlops::compile(desc, DML_FEATURE_LEVEL_6_4);
  } catch (const dmlops::ValidationError& error) {
    std::printf("Refused, as it should be: %s\n", error.what());
    return true;
  }
  return false;
}

}  // namespace

int main() {
  const float epsilon = 0.25f;
  std::vector<float> input(kImages * kChannels * kPixels), output(input.size());
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 7) - 3.0f;
  const std::vector<float> mean = {0.5f, -1, 0}, variance = {1, 4, 0.0625f}, scale = {2, 1, -0.5f},
                           bias = {0.125f, 0, 1};

  const dmlops::CompiledOperator compiled = compile_batch_normalization(epsilon);
  compiled.dispatch({bind(input), bind(mean), bind(variance), bind(scale), bind(bias)},
                    {{output.data(), 0, output.size() * sizeof(float)}});

  double largest_error = 0;
  for (size_t i = 0; i < input.size(); ++i) {
    const size_t c = i / kPixels % kChannels;
    const double deviation = std::sqrt(double{variance[c]} + double{epsilon});
    const double normalized = (double{input[i]} - double{mean[c]}) / deviation;
    const double expected = std::fmax(0.0, double{scale[c]} * normalized + double{bias[c]});
    largest_error = std::fmax(largest_error, std::fabs(double{output[i]} - expected));
  }
  std::printf("dmlops %s on %s: %zu values, largest error %.2g\n", dmlops::version().c_str(),
              dmlops::isa().c_str(), output.size(), largest_error);

  // The library's bound: two units in the last place of the largest value on the way, which is
  // below 8.
  const double bound = 2 * 8 * std::pow(2.0, -24);
  const bool right = largest_error <= bound && refuses_a_wrong_descriptor();
  std::puts(right ? "All as it should be." : "Wrong!");
  return right ? 0 : 1;
}
