// batch_normalization: parameters for each channel, for each column, for each element; activations
// fused.
#include "bench.hpp"

namespace dmlops::bench {
namespace {

// `parameters` are the sizes of mean, variance, scale and bias; `strides` those of input and output
// unless dense.
struct Case {
  const char* layout;
  Shape sizes, parameters, strides;
  std::optional<FusedActivation> activation;
};

void add_case(const Case& c, DataType type) {
  const std::int64_t traffic = 2 * bytes_of(type, c.sizes) + 4 * bytes_of(type, c.parameters);
  add({"batch_normalization", type, c.layout, c.sizes}, traffic, [=]() -> Work {
    const Tensor input(type, c.sizes, c.strides), output(type, c.sizes, c.strides);
    const Tensor mean(type, c.parameters), variance(type, c.parameters), scale(type, c.parameters),
        bias(type, c.parameters);
    constexpr float kEpsilon = 100;  // the variances are numbers from -4 to 4, too
    return [=] {
      batch_normalization({input, mean, variance, scale, bias}, kEpsilon, c.activation, output);
    };
  });
}

}  // namespace

void add_benchmarks() {
  const FusedActivation relu{Activation::relu, {}}, sigmoid{Activation::sigmoid, {}},
      gelu{Activation::gelu, {}};
  const Case cases[] = {
      {"nchw", {8, 64, 64, 64}, {1, 64, 1, 1}, {}, {}},
      {"nchw_relu", {8, 64, 64, 64}, {1, 64, 1, 1}, {}, relu},
      {"nchw_sigmoid", {8, 64, 64, 64}, {1, 64, 1, 1}, {}, sigmoid},
      {"nchw_gelu", {8, 64, 64, 64}, {1, 64, 1, 1}, {}, gelu},
      {"nhwc", {8, 64, 64, 64}, {1, 64, 1, 1}, {64 * 64 * 64, 1, 64 * 64, 64}, {}},
      {"few_channels_last", {8, 4, 256, 256}, {1, 4, 1, 1}, {4 * 256 * 256, 1, 4 * 256, 4}, {}},
      {"small_images", {16, 256, 8, 8}, {1, 256, 1, 1}, {}, {}},
      {"columns", {1024, 256}, {1, 256}, {}, {}},
      {"per_position", {64, 64, 8, 8}, {1, 64, 8, 8}, {}, {}},
      {"per_element", {8, 64, 16, 16}, {8, 64, 16, 16}, {}, {}},
  };
  add_memcpy(kMiB);
  add_memcpy(4 * kMiB);
  add_memcpy(8 * kMiB);
  for (const Case& c : cases) {
    for (const DataType type : {DataType::float32, DataType::float16}) add_case(c, type);
  }
}

}  // namespace dmlops::bench
