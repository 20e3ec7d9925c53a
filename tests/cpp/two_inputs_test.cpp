// The elementwise operators with two inputs: worked examples, and random layouts, also in place.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "dmlops/operators.hpp"
#include "dmlops/runtime.hpp"
#include "draw.hpp"
#include "laid_out_tensor.hpp"
#include "refusal.hpp"
#include "restored_settings.hpp"

// A separate namespace, since helpers of other tests have the same names.
namespace dmlops::two_inputs {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Floats = std::vector<float>;
using Bytes = std::vector<std::int8_t>;

template <class T>
std::vector<T> clipped(const std::vector<T>& x, const Scalar& min, const Scalar& max) {
  std::vector<T> ones(x.size(), T(1)), y(x.size(), T(77));
  clip_grad(x, ones, min, max, y);
  return y;
}

TEST(ClipGrad, ExcludesItsBounds) {
  const Floats x = {-2, -1, -0.0f, 0, 1, std::nextafter(2.0f, 0.0f), 2, kInfinity};
  EXPECT_EQ(clipped<float>(x, -1, 2), (Floats{0, 0, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(clipped<float>(x, 0, {}), (Floats{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(clipped<float>(x, -0.0f, kInfinity), (Floats{0, 0, 0, 0, 1, 1, 1, 0}));
  EXPECT_EQ(clipped<float>(x, {}, 0.0f), (Floats{1, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(clipped<float>(x, kNan, kNan), (Floats{1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(clipped<float>(x, 2, -1), Floats(8, 0));
  EXPECT_EQ(clipped<float>(x, kInfinity, {}), Floats(8, 0));
  EXPECT_EQ(clipped<float>({-kInfinity, kInfinity}, -kInfinity, {}), (Floats{0, 1}));
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(clipped<float>({-least, -0.0f, 0, least}, -least, least), (Floats{0, 1, 1, 0}));
}

TEST(ClipGrad, IsExactOnIntegers) {
  const Bytes x = {-128, -127, 0, 126, 127};
  EXPECT_EQ(clipped<std::int8_t>(x, {}, {}), (Bytes{1, 1, 1, 1, 1}));
  EXPECT_EQ(clipped<std::int8_t>(x, -128, 127), (Bytes{0, 1, 1, 1, 0}));
  EXPECT_EQ(clipped<std::int8_t>(x, -129, 128), (Bytes{1, 1, 1, 1, 1}));
  EXPECT_EQ(clipped<std::int8_t>(x, -kInfinity, kInfinity), (Bytes{1, 1, 1, 1, 1}));
  EXPECT_EQ(clipped<std::int8_t>(x, 127, {}), Bytes(5, 0));
  EXPECT_EQ(clipped<std::int8_t>(x, {}, -129), Bytes(5, 0));
  EXPECT_EQ(clipped<std::int8_t>(x, 1000u, {}), Bytes(5, 0));
  EXPECT_EQ(clipped<std::int8_t>(x, 5, 5), Bytes(5, 0));
  const std::int64_t large = std::int64_t{1} << 62;
  EXPECT_EQ(clipped<std::int64_t>({large, large + 1, large + 2}, large, large + 2),
            (std::vector<std::int64_t>{0, 1, 0}));
  EXPECT_EQ(clipped<std::uint64_t>({0, 1, UINT64_MAX}, -1, std::ldexp(1.0, 64)),
            (std::vector<std::uint64_t>{1, 1, 1}));
}

TEST(ClipGrad, RefusesWhatDoesNotFit) {
  const Bytes x = {1};
  const std::vector<std::int16_t> other = {1};
  Bytes y = {77}, two = {1, 2};
  EXPECT_THROW(clip_grad(x, x, 0.5, 2, y), Error);
  EXPECT_THROW(clip_grad(x, x, 0, 2.5, y), Error);
  EXPECT_THROW(clip_grad(x, other, 0, 2, y), TypeError);
  EXPECT_EQ(refusal([&] { clip_grad(x, two, 0, 2, y); }),
            "clip_grad: input_gradient has shape (2,), but input has shape (1,); they differ on "
            "axis 0");
  EXPECT_THROW(clip_grad(x, x, 0, 2, two), Error);
  const std::vector<double> wide = {1};
  std::vector<double> out = {77};
  EXPECT_THROW(clip_grad(wide, wide, 0, 2, out), TypeError);
  const std::vector<std::uint8_t> natural = {1};
  std::vector<std::uint8_t> result = {77};
  EXPECT_THROW(relu_grad(natural, natural, result), TypeError);
  EXPECT_THROW(parameterized_relu(natural, natural, result), TypeError);
  EXPECT_THROW(parameterized_relu(x, other, y), TypeError);
  EXPECT_THROW(parameterized_relu(x, two, y), Error);
  EXPECT_EQ(y[0], 77);
}

TEST(ReluGrad, IsZeroAtZero) {
  const Floats x = {-kInfinity, -1,       -0.0f, 0, std::numeric_limits<float>::denorm_min(),
                    2,          kInfinity};
  const Floats gradient = {kNan, 2, 3, kInfinity, 5, -6, 7};
  Floats y(x.size(), 77);
  relu_grad(x, gradient, y);
  EXPECT_EQ(y, (Floats{0, 0, 0, 0, 5, -6, 7}));
}

TEST(ReluGrad, KeepsNan) {
  const Floats x = {kNan, -kNan, 1}, gradient = {1, 2, kNan};
  Floats y(3, 77);
  relu_grad(x, gradient, y);
  for (const float value : y) EXPECT_TRUE(std::isnan(value));
}

TEST(ParameterizedRelu, WorkedExamples) {
  const Floats x = {-2, -0.0f, 0, 3, -kInfinity, kInfinity}, slope = {0.5f, 7, 7, 7, 0.25f, 7};
  Floats y(x.size(), 77);
  parameterized_relu(x, slope, y);
  EXPECT_EQ(y, (Floats{-1, 0, 0, 3, -kInfinity, kInfinity}));
  EXPECT_TRUE(std::signbit(y[1]));
  const Bytes small = {-128, -128, -100, -1, 5}, factors = {-128, 127, 2, -3, 100};
  Bytes result(5, 77);
  parameterized_relu(small, factors, result);
  EXPECT_EQ(result, (Bytes{127, -128, -128, 3, 5}));
}

TEST(ParameterizedRelu, WritesTheSlopeOfATransposedInput) {
  constexpr std::int64_t rows = 70, columns = 83;
  Floats x(rows * columns), y(rows * columns);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = -2;
    y[i] = static_cast<float>(i);
  }
  const ConstTensorView input(x, {rows, columns}, ElementStrides{1, rows});
  const TensorView slope(y, {rows, columns});
  const RestoredSettings restored;
  for (const std::string& name : available_isas()) {
    set_isa(name);
    std::iota(y.begin(), y.end(), 0.0f);
    parameterized_relu(input, slope, slope);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], -2 * static_cast<float>(i)) << i;
  }
}

// With the bits of the dense tensors. The output is a tensor of its own or one of the inputs.
void check_layouts(unsigned int seed) {
  Draw draw(seed);
  const Sizes sizes = draw.sizes();
  const DataType type = draw.integer(0, 1) == 0 ? DataType::float32 : DataType::float16;
  const Numbers of_x = draw.values(product(sizes), 0, 2),
                of_other = draw.values(product(sizes), 1, 2);
  const auto apply = [&](const Tensor& x, const Tensor& other, const Tensor& y) {
    if (seed % 3 == 0) return parameterized_relu(x.view(), other.view(), y.view());
    if (seed % 3 == 1) return relu_grad(x.view(), other.view(), y.view());
    clip_grad(x.view(), other.view(), -1, 2, y.view());
  };
  const Tensor dense(type, sizes), dense_x(type, sizes, of_x), dense_other(type, sizes, of_other);
  apply(dense_x, dense_other, dense);
  const Tensor x(type, sizes, of_x, draw.strides(sizes));
  const Tensor other(type, sizes, of_other, draw.strides(sizes));
  const Tensor out(type, sizes, of_x, draw.strides(sizes));
  const Tensor* const outputs[] = {&out, &x, &other};
  const Tensor& y = *outputs[draw.integer(0, 2)];
  apply(x, other, y);
  EXPECT_EQ(y.get(), dense.get()) << "seed " << seed << ", " << isa();
  EXPECT_TRUE(y.intact()) << "seed " << seed << ", " << isa();
}

TEST(TwoInputs, RandomLayouts) {
  const RestoredSettings restored;
  set_num_threads(3);
  const std::int64_t split = split_threshold(), non_temporal = non_temporal_threshold();
  for (const std::string& name : available_isas()) {
    set_isa(name);
    for (unsigned int seed = 0; seed < 300; ++seed) {
      set_split_threshold(seed % 4 == 0 ? 256 : split);
      set_non_temporal_threshold(seed % 4 == 1 ? 0 : non_temporal);
      check_layouts(seed);
    }
  }
}

// A run of equal results is filled by one thread, since it reads its first result.
TEST(TwoInputs, RunsOfRepeatedResults) {
  const RestoredSettings restored;
  set_num_threads(3);
  set_split_threshold(1);
  for (const std::int64_t runs : {1, 2, 3, 70}) {
    for (const std::int64_t length : {2, 3, 4, 5, 13, 100, 256, 257}) {
      Floats x(static_cast<std::size_t>(runs)), y(static_cast<std::size_t>(runs * length));
      std::iota(x.begin(), x.end(), 1.0f);
      const ConstTensorView input(x, {runs, length}, ElementStrides{1, 0});
      relu_grad(input, input, TensorView(y, {runs, length}));
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], x[i / static_cast<std::size_t>(length)]) << runs << " runs of " << length;
    }
  }
}

}  // namespace
}  // namespace dmlops::two_inputs
