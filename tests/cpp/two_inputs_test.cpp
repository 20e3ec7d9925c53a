// The elementwise operators with two inputs: worked examples, and scalar references on random
// layouts, with every instruction set, many shards, and non-temporal stores.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/float16.hpp"
#include "dmlops/operators.hpp"
#include "dmlops/runtime.hpp"
#include "traversal/policy.hpp"
#include "traversal/policy_setters.hpp"

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
  EXPECT_THROW(clip_grad(x, two, 0, 2, y), Error);
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
  try {
    clip_grad(x, two, 0, 2, y);
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "clip_grad: input_gradient has shape (2,), but input has shape (1,); they differ "
                 "on axis 0");
  }
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
  const std::int64_t item = sizeof(float);
  const ConstTensorView input(x.data(), DataType::float32, 2, {rows, columns}, {item, rows * item});
  const TensorView slope(y.data(), DataType::float32, 2, {rows, columns}, {columns * item, item});
  const std::string before = isa();
  for (const std::string& set : available_isas()) {
    set_isa(set);
    std::iota(y.begin(), y.end(), 0.0f);
    parameterized_relu(input, slope, slope);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], -2 * static_cast<float>(i)) << i;
  }
  set_isa(before);
}

// ---- References on random layouts --------------------------------------------------------------

// The element at an offset, which is a multiple of the element's size.
template <class T>
T& element(const TensorView& view, std::int64_t offset) {
  return *reinterpret_cast<T*>(static_cast<char*>(view.data) + offset);
}

template <class T>
struct Laid {
  std::vector<char> memory;
  TensorView view;

  T get(std::int64_t offset) const { return element<T>(view, offset); }
};

// A generator with a small state. Sanitizers check each access to that of std::mt19937_64.
struct SplitMix64 {
  using result_type = std::uint64_t;  // NOLINT(readability-identifier-naming): a standard name
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT64_MAX; }
  result_type operator()() {
    result_type z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  result_type state;
};

class Draw {
 public:
  explicit Draw(unsigned int seed) : random_{std::uint64_t{seed} << 32} {}
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }

  template <class T>
  T value() {
    const auto bits = random_();
    if constexpr (std::is_same_v<T, float>) {
      constexpr float specials[] = {kInfinity, -kInfinity, kNan, 0, -0.0f, 1, -1, 2};
      if (bits % 16 == 0) return specials[bits / 16 % 8];
      return static_cast<float>(bits % 4001) / 1000 - 2;
    } else if constexpr (std::is_same_v<T, float16>) {
      return to_float16(static_cast<double>(value<float>()));
    } else {
      return static_cast<T>(bits % 4 == 0 ? static_cast<std::int64_t>(bits >> 8)
                                          : static_cast<std::int64_t>(bits % 7) - 3);
    }
  }

  // A tensor with its dimensions in any order in memory, with gaps and reversed ones; inputs may
  // also be broadcast.
  template <class T>
  Laid<T> tensor(const std::vector<std::int64_t>& sizes, bool input) {
    Laid<T> result;
    TensorView view(nullptr, data_type_of<T>(), static_cast<int>(sizes.size()), {}, {});
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (below(2) == 0) std::shuffle(order.begin(), order.end(), random_);
    std::int64_t stride = sizeof(T) * (below(3) == 0 ? 2 : 1), low = 0, high = sizeof(T);
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
      view.sizes[*d] = sizes[*d];
      const bool repeated = input && below(5) == 0;
      view.strides[*d] = repeated ? 0 : below(6) == 0 ? -stride : stride;
      const std::int64_t reach = (sizes[*d] - 1) * view.strides[*d];
      (reach < 0 ? low : high) += reach;
      if (!repeated) stride *= sizes[*d];
      if (below(4) == 0) stride += static_cast<std::int64_t>(sizeof(T)) * below(5);
    }
    result.memory.resize(static_cast<std::size_t>(high - low));
    view.data = result.memory.data() - low;
    result.view = view;
    T* const elements = reinterpret_cast<T*>(result.memory.data());
    const std::size_t count = result.memory.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) elements[i] = value<T>();
    return result;
  }

 private:
  SplitMix64 random_;
};

// Calls visit(offset) for the elements, row-major, with the offset in each of the tensors.
template <class Visit>
void for_each_element(const TensorView (&views)[3], const Visit& visit) {
  std::int64_t index[kMaxRank] = {}, offsets[3] = {}, count = 1, sizes[kMaxRank];
  std::int64_t strides[kMaxRank][3];
  const auto rank = static_cast<std::size_t>(views[0].rank);
  for (std::size_t d = 0; d < rank; ++d) {
    count *= sizes[d] = views[0].sizes[d];
    for (int k = 0; k < 3; ++k) strides[d][k] = views[k].strides[d];
  }
  for (std::int64_t i = 0; i < count; ++i) {
    visit(offsets);
    for (std::size_t d = rank; d-- > 0;) {
      const bool next = ++index[d] < sizes[d];
      const std::int64_t steps = next ? 1 : 1 - sizes[d];
      for (int k = 0; k < 3; ++k) offsets[k] += steps * strides[d][k];
      if (next) break;
      index[d] = 0;
    }
  }
}

double number(float16 value) { return to_double(value); }
template <class T>
double number(T value) {
  return static_cast<double>(value);
}

// By the formulas, one element at a time; integers are small or large enough to be exact.
template <class T>
T expected(int op, T x, T other) {
  const double value = number(x);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, float16>) {
    if (std::isnan(value)) return x;
  }
  if (op == 0) {
    if (value >= 0) return x;
    if constexpr (std::is_same_v<T, float>) {
      return x * other;
    } else if constexpr (std::is_same_v<T, float16>) {
      return to_float16(value * number(other));
    } else {
      const double product = value * number(other);
      using Limits = std::numeric_limits<T>;
      return static_cast<T>(
          std::min(std::max(product, number(Limits::min())), number(Limits::max())));
    }
  }
  const bool passes = op == 1 ? value > 0 : value > -1 && value < 2;
  return passes ? other : T();
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}
bool same(float16 a, float16 b) {
  return a.bits == b.bits || (std::isnan(to_double(a)) && std::isnan(to_double(b)));
}
template <class T>
bool same(T a, T b) {
  return a == b;
}

void apply(int op, const TensorView& x, const TensorView& other, const TensorView& y) {
  if (op == 0) return parameterized_relu(x, other, y);
  if (op == 1) return relu_grad(x, other, y);
  clip_grad(x, other, -1, 2, y);
}

template <class T>
void check_layouts(unsigned int seed, int count) {
  constexpr bool is_signed = std::is_same_v<T, float16> || std::is_signed_v<T>;
  constexpr int first = is_signed && (sizeof(T) < 8) ? 0 : 2;
  Draw draw(seed);
  for (int i = 0; i < count; ++i) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(draw.below(5)));
    std::int64_t room = 6000;
    for (std::int64_t& size : sizes) {
      size = 1 + draw.below(draw.below(3) == 0 ? std::min<std::int64_t>(room, 700) : 9);
      room = std::max<std::int64_t>(room / size, 1);
    }
    const int op = first + i % (3 - first);
    Laid<T> x = draw.tensor<T>(sizes, true), other = draw.tensor<T>(sizes, true);
    Laid<T> y = draw.tensor<T>(sizes, false);
    const std::int64_t shared = draw.below(4);  // the output is one of the inputs
    const auto has_repeats = [](const TensorView& view) {
      for (std::size_t d = 0; d < static_cast<std::size_t>(view.rank); ++d) {
        if (view.strides[d] == 0 && view.sizes[d] > 1) return true;
      }
      return false;
    };
    TensorView target = y.view;
    if (shared == 0 && !has_repeats(x.view)) target = x.view;
    if (shared == 1 && !has_repeats(other.view)) target = other.view;
    std::vector<T> wanted;
    const TensorView views[3] = {x.view, other.view, target};
    for_each_element(views, [&](const std::int64_t* offsets) {
      wanted.push_back(expected<T>(op, x.get(offsets[0]), other.get(offsets[1])));
    });
    apply(op, x.view, other.view, target);
    std::size_t wrong = 0, at = 0;
    for_each_element(views, [&](const std::int64_t* offsets) {
      wrong += same(element<T>(target, offsets[2]), wanted[at++]) ? 0 : 1;
    });
    EXPECT_EQ(wrong, 0u) << "operator " << op << ", " << name(x.view.type) << ", " << isa()
                         << ", seed " << seed << ", layout " << i << ", shared " << shared;
  }
}

void check_types(int count) {
  const std::string before = isa();
  unsigned int seed = 0;
  for (const std::string& set : available_isas()) {
    set_isa(set);
    check_layouts<float>(++seed, count);
    check_layouts<float16>(++seed, count);
    check_layouts<std::int8_t>(++seed, count);
    check_layouts<std::int16_t>(++seed, count);
    check_layouts<std::int32_t>(++seed, count);
    check_layouts<std::int64_t>(++seed, count);
    check_layouts<std::uint8_t>(++seed, count);
    check_layouts<std::uint16_t>(++seed, count);
    check_layouts<std::uint32_t>(++seed, count);
    check_layouts<std::uint64_t>(++seed, count);
  }
  set_isa(before);
}

TEST(TwoInputs, RandomLayouts) { check_types(300); }

TEST(TwoInputs, RandomLayoutsByManyThreads) {
  const std::int64_t threshold = split_threshold();
  set_split_threshold(256);
  check_types(60);
  set_split_threshold(threshold);
}

// A run of equal results is filled by one thread, since it reads its first result.
TEST(TwoInputs, RunsOfRepeatedResults) {
  const std::int64_t threshold = split_threshold();
  set_split_threshold(1);
  for (const std::int64_t runs : {1, 2, 3, 70}) {
    for (const std::int64_t length : {2, 3, 4, 5, 13, 100, 256, 257}) {
      Floats x(static_cast<std::size_t>(runs)), y(static_cast<std::size_t>(runs * length));
      std::iota(x.begin(), x.end(), 1.0f);
      const ConstTensorView input(x.data(), {runs, length}, ByteStrides{4, 0});
      relu_grad(input, input, {y.data(), {runs, length}});
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], x[i / static_cast<std::size_t>(length)]) << runs << " runs of " << length;
    }
  }
  set_split_threshold(threshold);
}

TEST(TwoInputs, RandomLayoutsByNonTemporalStores) {
  const std::int64_t threshold = non_temporal_threshold();
  set_non_temporal_threshold(0);
  check_types(60);
  set_non_temporal_threshold(threshold);
}

}  // namespace
}  // namespace dmlops::two_inputs
