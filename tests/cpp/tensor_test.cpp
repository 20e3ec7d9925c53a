// Views: constructors, and views that every operator refuses. float16 as a number.
#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "dmlops/dmlops.hpp"
#include "refusal.hpp"

namespace dmlops {
namespace {

std::vector<std::int64_t> first(const Dimensions& values, int count) {
  return {values.begin(), values.begin() + count};
}

// Data, type, sizes and strides of a view as one value.
template <class View>
std::string text(const View& view) {
  std::string result = name(view.type);
  for (const std::int64_t size : first(view.sizes, view.rank)) {
    result += " " + std::to_string(size);
  }
  result += " by";
  for (const std::int64_t stride : first(view.strides, view.rank)) {
    result += " " + std::to_string(stride);
  }
  return result;
}

TEST(View, OfAPointerIsPacked) {
  std::vector<float> x(6);
  const std::size_t rows = 2;
  const int columns = 3;
  const TensorView view(x.data(), {rows, columns});
  EXPECT_EQ(view.data, x.data());
  EXPECT_EQ(text(view), "float32 2 3 by 12 4");
  EXPECT_EQ(text(TensorView(x.data(), 6)), "float32 6 by 4");
  EXPECT_EQ(text(TensorView(x.data(), {})), "float32 by");
  const std::vector<std::uint32_t> sizes = {3, 1, 2};
  EXPECT_EQ(text(ConstTensorView(x.data(), sizes)), "float32 3 1 2 by 8 8 4");
  void* const untyped = x.data();
  EXPECT_EQ(text(TensorView(untyped, DataType::float16, {2, 3})), "float16 2 3 by 6 2");
}

TEST(View, HasStridesInElementsOrInBytes) {
  std::vector<std::int16_t> x(6);
  EXPECT_EQ(text(TensorView(x.data(), {2, 3}, ElementStrides{1, 2})), "int16 2 3 by 2 4");
  EXPECT_EQ(text(TensorView(x.data(), {2, 3}, ByteStrides{-2, 4})), "int16 2 3 by -2 4");
  void* const untyped = x.data();
  EXPECT_EQ(text(TensorView(untyped, DataType::int8, {2}, ElementStrides{3})), "int8 2 by 3");
  EXPECT_EQ(text(TensorView(untyped, DataType::int16, {2}, ByteStrides{3})), "int16 2 by 3");
  EXPECT_EQ(refusal([&] {
              TensorView(x.data(), {2, 3}, ElementStrides{1});
            }),
            "TensorView: 1 stride for 2 sizes; give one stride for each size");
  constexpr auto huge = std::numeric_limits<std::int64_t>::max() / 2 + 1;
  const TensorView wrapping(x.data(), {2}, ElementStrides{huge});
  EXPECT_NE(refusal([&] { clip(wrapping, 0, 1, wrapping); }).find("2^56"), std::string::npos);
}

TEST(View, OfArraysAndContainersHasTheirSizes) {
  float array[2][3] = {};
  EXPECT_EQ(text(TensorView(array)), "float32 2 3 by 12 4");
  EXPECT_EQ(text(TensorView(array, 6)), "float32 6 by 4");
  const std::array<std::uint8_t, 4> bytes = {};
  EXPECT_EQ(text(ConstTensorView(bytes)), "uint8 4 by 1");
  std::vector<double> x(6);
  EXPECT_EQ(TensorView(x).data, x.data());
  EXPECT_EQ(text(TensorView(x)), "float64 6 by 8");
  EXPECT_EQ(text(TensorView(x, {2, 3})), "float64 2 3 by 24 8");
  EXPECT_EQ(text(TensorView(x, {2, 3}, ElementStrides{1, 2})), "float64 2 3 by 8 16");
  EXPECT_FALSE((std::is_constructible_v<TensorView, const std::vector<float>&>));
  EXPECT_FALSE((std::is_constructible_v<TensorView, std::vector<std::string>&>));
}

// Like C++20's std::span of a two-dimensional array: the elements are arrays.
struct SpanOfRows {
  float (*data() const)[3];
  std::size_t size() const;
};

TEST(View, OfAContainerOfArraysIsAnError) {
  EXPECT_FALSE((std::is_constructible_v<TensorView, SpanOfRows>));
  EXPECT_FALSE((std::is_constructible_v<ConstTensorView, SpanOfRows>));
  EXPECT_FALSE((std::is_constructible_v<TensorView, SpanOfRows, IntegerList>));
}

TEST(View, StaysInsideItsContainer) {
  std::vector<float> x(6);
  EXPECT_EQ(refusal([&] {
              TensorView(x, {2, 4});
            }),
            "TensorView: a tensor of shape (2, 4) with its strides spans bytes 0 to 32, but the "
            "container has 24 bytes");
  EXPECT_NE(refusal([&] { TensorView(x, {2, 3}, ElementStrides{3, 2}); }), "accepted");
  EXPECT_NE(refusal([&] { TensorView(x, {2}, ByteStrides{-4}); }), "accepted");
  EXPECT_NE(refusal([&] { TensorView(x, {-1}); }), "accepted");
  EXPECT_EQ(refusal([&] { TensorView(x, {0, 100}); }), "accepted");
  EXPECT_EQ(refusal([&] { TensorView(x, {100, 6}, ElementStrides{0, 1}); }), "accepted");
  const std::vector<int> many(9, 1);
  EXPECT_EQ(refusal([&] { TensorView(x.data(), many); }),
            "IntegerList: 9 integers; a tensor has at most 8 dimensions");
}

// A view without memory, and a default view.
TEST(View, WithoutDataIsRefusedByEveryOperator) {
  std::vector<float> x(3, 1.0f), y(3, -1.0f);
  for (const TensorView& null :
       {TensorView(static_cast<float*>(nullptr), 3), TensorView(static_cast<float*>(nullptr), {}),
        TensorView(static_cast<float*>(nullptr), 3, ElementStrides{-5})}) {
    const auto refused = [&](const auto& call) {
      EXPECT_NE(refusal([&] { call(null, y); }).find("input has shape"), std::string::npos);
      EXPECT_NE(refusal([&] { call(x, null); }).find("output has shape"), std::string::npos);
      EXPECT_NE(refusal([&] { call(null, null); }).find("data pointer is null"), std::string::npos);
    };
    using In = const ConstTensorView&;
    using Out = const TensorView&;
    refused([](In in, Out out) { clip(in, 0, 1, out); });
    refused([](In in, Out out) { hard_sigmoid(in, out); });
    for (std::uint32_t i = 0; i < kActivationCount; ++i) {
      refused([i](In in, Out out) { activation(static_cast<Activation>(i), in, out); });
    }
    if (null.rank > 0) refused([](In in, Out out) { log_softmax(in, out); });
    refused([](In in, Out out) { batch_normalization({in, in, in, in, in}, out); });
    for (int parameter = 1; parameter < 5; ++parameter) {
      if (null.rank == 0) continue;
      ConstTensorView views[5] = {x, x, x, x, x};
      views[parameter] = null;
      EXPECT_NE(refusal([&] {
                  batch_normalization({views[0], views[1], views[2], views[3], views[4]}, y);
                }).find("data pointer is null"),
                std::string::npos);
    }
  }
  EXPECT_NE(refusal([&] { clip(TensorView(), 0, 1, TensorView()); }), "accepted");
  EXPECT_EQ(refusal([&] { clip(x, 0, 1, TensorView(y.data(), {})); }),
            "clip: output has shape (), but input has shape (3,)");
  EXPECT_EQ(y, std::vector<float>(3, -1.0f));
  const TensorView empty(static_cast<float*>(nullptr), {2, 0});
  EXPECT_EQ(refusal([&] { clip(empty, 0, 1, empty); }), "accepted");
  EXPECT_EQ(refusal([&] { log_softmax(empty, empty); }), "accepted");
}

TEST(View, AxesWithoutDataAreRefused) {
  std::vector<float> x(3);
  EXPECT_NE(refusal([&] { log_softmax(x, nullptr, 2, x); }), "accepted");
}

TEST(Arguments, HaveTheDefaultsOfPython) {
  const float x[2][2] = {{-3, 0.5f}, {1, 9}};
  const float zero[1][1] = {{0}}, one[1][1] = {{1}};
  float y[2][2], z[2][2];
  const auto equal = [&] { return std::equal(&y[0][0], &y[0][0] + 4, &z[0][0]); };
  clip(x, 0, 6, {}, y);
  EXPECT_EQ(y[1][1], 6.0f);
  clip(x, 0u, 6.0f, z);
  EXPECT_TRUE(equal());
  hard_sigmoid(x, y);
  hard_sigmoid(x, 0.2f, 0.5f, z);
  EXPECT_TRUE(equal());
  batch_normalization({x, zero, one, one, zero}, y);
  batch_normalization({x, zero, one, one, zero}, 1e-5f, std::nullopt, z);
  EXPECT_TRUE(equal());
  batch_normalization({x, zero, one, one, zero}, 1e-5f, Activation::leaky_relu, y);
  batch_normalization({x, zero, one, one, zero}, 1e-5f,
                      FusedActivation(Activation::leaky_relu, {0.01f, 0}), z);
  EXPECT_TRUE(equal());
  log_softmax(x, y);
  log_softmax(x, 1, z);
  EXPECT_TRUE(equal());
  log_softmax(x, {0, -1}, y);
  const std::int64_t axes[] = {1, 0};
  log_softmax(x, axes, 2, z);
  EXPECT_TRUE(equal());
}

TEST(Scalar, KeepsEveryNumber) {
  EXPECT_EQ(Scalar(-1).integer, -1);
  EXPECT_EQ(Scalar(-1).type, DataType::int64);
  EXPECT_EQ(Scalar(~0ull).natural, ~0ull);
  EXPECT_EQ(Scalar(~0ull).type, DataType::uint64);
  EXPECT_EQ(Scalar(std::int8_t{-3}).integer, -3);
  EXPECT_EQ(Scalar(0.1f).floating, static_cast<double>(0.1f));
  EXPECT_EQ(Scalar(float16(1.5f)).floating, 1.5);
  EXPECT_EQ(Scalar().type, DataType::unknown);
  EXPECT_FALSE((std::is_constructible_v<Scalar, bool>));
}

TEST(Float16, ConvertsFromAndToFloat) {
  std::vector<float16> x = {-1, 0.1f, 65520.0f, float16::from_bits(1)}, y(4);
  EXPECT_EQ(x[0].bits, 0xbc00);
  EXPECT_EQ(x[1].bits, 0x2e66);
  EXPECT_EQ(x[2].bits, 0x7c00);
  EXPECT_EQ(static_cast<float>(x[3]), std::ldexp(1.0f, -24));
  for (unsigned int bits = 0; bits < 0x7c00; ++bits) {
    const float16 value = float16::from_bits(static_cast<std::uint16_t>(bits));
    EXPECT_EQ(float16(static_cast<float>(value)).bits, bits);
  }
  clip(x, 0, 0.5f, y);
  EXPECT_EQ(y[2] + 1.0f, 1.5f);
  EXPECT_TRUE(std::is_trivially_copyable_v<float16> && sizeof(float16) == 2);
}

// One base class, also for errors outside of operators.
TEST(Errors, HaveOneBaseClass) {
  std::vector<float> x(3);
  std::vector<std::uint8_t> bytes(3);
  EXPECT_THROW(hard_sigmoid(bytes, x), TypeError);
  EXPECT_THROW(hard_sigmoid(bytes, x), Error);
  EXPECT_THROW(log_softmax(x, 1, x), Error);
  EXPECT_THROW(clip(bytes, 0.5, 1, bytes), Error);
  EXPECT_THROW(batch_normalization({x, TensorView(x, {3, 1}), x, x, x}, x), Error);
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_isa("mmx"), Error);
  EXPECT_THROW(Device(static_cast<FeatureLevel>(1)), Error);
  EXPECT_TRUE((std::is_base_of_v<Error, ValidationError>));
  EXPECT_TRUE((std::is_base_of_v<Error, BindingError>));
}

}  // namespace
}  // namespace dmlops
