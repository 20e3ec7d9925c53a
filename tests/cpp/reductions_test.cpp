// Softmax, hardmax, mean-variance normalization, and the training pass and gradients of batch
// normalization: worked examples, long double references on random layouts, and the same bits on
// every instruction set.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#define DMLOPS_TARGET baseline  // whose choices are those of every instruction set
#include "dmlops/operators.hpp"
#include "dmlops/runtime.hpp"
#include "draw.hpp"
#include "kernels/normalization/reduce_moments.hpp"
#include "kernels/softmax/softmax_rows.hpp"
#include "laid_out_tensor.hpp"
#include "operators/plan.hpp"
#include "traversal/policy.hpp"
#include "traversal/policy_setters.hpp"

namespace dmlops {
namespace {

constexpr DataType kF32 = DataType::float32;

TEST(MeanVarianceNormalization, WorkedExamples) {
  const Tensor x(kF32, {1, 4}, {1, 2, 3, 6});
  Tensor y(kF32, {1, 4});
  const auto normalized = [&](bool mean, bool variance, float epsilon) {
    mean_variance_normalization(x.view(), {}, {}, {1}, {mean, variance, epsilon, {}}, y.view());
    return y.get();
  };
  EXPECT_EQ(normalized(true, true, 0.5f), (Numbers{-1, -0.5, 0, 1.5}));
  EXPECT_EQ(normalized(false, true, 3.5f), (Numbers{0.25, 0.5, 0.75, 1.5}));
  EXPECT_EQ(normalized(true, false, 0), (Numbers{-2, -1, 0, 3}));
  EXPECT_EQ(normalized(false, false, 0), (Numbers{1, 2, 3, 6}));
}

TEST(MeanVarianceNormalization, NothingIsReducedWithoutAxes) {
  const Tensor x(kF32, {2, 2}, {-1, 2, 3e38, -7}), bias(kF32, {1, 2}, {5, -6});
  Tensor y(kF32, {2, 2});
  mean_variance_normalization(x.view(), {}, bias.view(), {}, {}, y.view());
  EXPECT_EQ(y.get(), (Numbers{5, -6, 5, -6}));
}

TEST(MeanVarianceNormalization, LargeMeansLoseNothingAndNoVarianceOverflows) {
  Numbers values;
  for (int i = 0; i < 4096; ++i) values.push_back(1e6 + (i % 2 == 0 ? 1 : -1));
  const Tensor x(kF32, {1, 4096}, values);
  Tensor y(kF32, {1, 4096});
  mean_variance_normalization(x.view(), {}, {}, {1}, {true, true, 0, {}}, y.view());
  const Numbers result = y.get();
  for (std::size_t i = 0; i < result.size(); ++i) EXPECT_EQ(result[i], i % 2 == 0 ? 1 : -1);
  const Tensor halves(DataType::float16, {1, 4}, {-60000, 60000, -60000, 60000});
  Tensor z(DataType::float16, {1, 4});
  mean_variance_normalization(halves.view(), {1}, z.view());
  EXPECT_EQ(z.get(), (Numbers{-1, 1, -1, 1}));
}

TEST(BatchNormalizationTraining, WorkedExamples) {
  const Tensor x(kF32, {4, 1}, {1, 2, 3, 6}), scale(kF32, {1, 1}, {2}), bias(kF32, {1, 1}, {1});
  const Tensor added(kF32, {4, 1}, {0, 0, -2, 0});
  Tensor y(kF32, {4, 1}), mean(kF32, {1, 1}), variance(kF32, {1, 1});
  const BatchNormalizationTrainingOutputs outputs = {y.view(), mean.view(), variance.view()};
  batch_normalization_training({x.view(), scale.view(), bias.view(), {}}, 0.5f, {}, outputs);
  EXPECT_EQ(mean.get(), Numbers{3});
  EXPECT_EQ(variance.get(), Numbers{3.5});
  EXPECT_EQ(y.get(), (Numbers{-1, 0, 1, 4}));
  batch_normalization_training({x.view(), scale.view(), bias.view(), added.view()}, 0.5f,
                               FusedActivation(Activation::relu), outputs);
  EXPECT_EQ(y.get(), (Numbers{0, 0, 0, 4}));
}

TEST(BatchNormalizationGradients, WorkedExamples) {
  const Tensor x(kF32, {4, 1}, {1, 2, 3, 6}), given(kF32, {4, 1}, {1, 0, 0, -1});
  const Tensor mean(kF32, {1, 1}, {3}), variance(kF32, {1, 1}, {3.5}), scale(kF32, {1, 1}, {2});
  Tensor dx(kF32, {4, 1}), of_scale(kF32, {1, 1}), of_bias(kF32, {1, 1});
  const BatchNormalizationGradientInputs inputs = {x.view(), given.view(), mean.view(),
                                                   variance.view(), scale.view()};
  const BatchNormalizationGradients outputs = {dx.view(), of_scale.view(), of_bias.view()};
  batch_normalization_training_grad(inputs, 0.5f, outputs);
  EXPECT_EQ(dx.get(), (Numbers{0.375, -0.3125, 0, -0.0625}));
  EXPECT_EQ(of_scale.get(), Numbers{-2.5});
  EXPECT_EQ(of_bias.get(), Numbers{0});
  batch_normalization_grad(inputs, 0.5f, outputs);
  EXPECT_EQ(dx.get(), (Numbers{1, 0, 0, -1}));
  EXPECT_EQ(of_scale.get(), Numbers{-2.5});
  EXPECT_EQ(of_bias.get(), Numbers{0});
}

TEST(Reductions, RefusedCallsWriteNothing) {
  const MeanVarianceNormalizationOptions swish = {true, true, 0, {{Activation::swish, {}}}};
  const Tensor x(kF32, {2, 3}, Numbers(6, 1)), scale(kF32, {1, 3}, Numbers(3, 1));
  const Tensor wide(kF32, {2, 1}, Numbers(2, 1));
  Tensor y(kF32, {2, 3}), mean(kF32, {1, 3}), variance(kF32, {1, 3});
  EXPECT_THROW(softmax(x.view(), {2}, y.view()), Error);
  EXPECT_THROW(hardmax(x.view(), {}, y.view()), Error);
  EXPECT_THROW(mean_variance_normalization(x.view(), {2}, y.view()), Error);
  EXPECT_THROW(mean_variance_normalization(x.view(), {}, {}, {1}, swish, y.view()), Error);
  const auto train = [&](const Tensor& bias, const Tensor& squares, const auto& activation) {
    batch_normalization_training({x.view(), scale.view(), bias.view(), {}}, 0, activation,
                                 {y.view(), mean.view(), squares.view()});
  };
  EXPECT_THROW(train(scale, variance, swish.fused_activation), Error);
  EXPECT_THROW(train(scale, mean, std::nullopt), Error);
  EXPECT_THROW(train(wide, variance, std::nullopt), Error);
  const ConstTensorView one = scale.view();
  EXPECT_THROW(batch_normalization_grad({x.view(), wide.view(), one, one, one}, 0,
                                        {y.view(), mean.view(), variance.view()}),
               Error);
  const Tensor untouched(kF32, {2, 3}), untouched_mean(kF32, {1, 3});
  EXPECT_EQ(y.get(), untouched.get());
  EXPECT_EQ(mean.get(), untouched_mean.get());
}

TEST(Hardmax, TakesTheFirstMaximumAndTheFirstNan) {
  const Tensor x(kF32, {4, 3},
                 {1, 3, 3, -0.0, 0, -1, 2, NAN, NAN, -INFINITY, -INFINITY, -INFINITY});
  Tensor y(kF32, {4, 3});
  hardmax(x.view(), y.view());
  EXPECT_EQ(y.get(), (Numbers{0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0}));
}

// The index into a tensor of `inner` sizes, each 1 or the outer's, for an index into `outer`.
std::size_t inner_index(std::size_t i, const Sizes& outer, const Sizes& inner) {
  std::size_t result = 0, factor = 1;
  for (std::size_t d = outer.size(); d-- > 0;) {
    const auto size = static_cast<std::size_t>(outer[d]);
    if (inner[d] != 1) result += i % size * factor;
    factor *= static_cast<std::size_t>(inner[d]);
    i /= size;
  }
  return result;
}

// Within `units` of the type's last place of the largest intermediate.
void expect_near(const Tensor& actual, const std::vector<long double>& expected,
                 const std::vector<long double>& largest, double units, const char* what) {
  const bool half = actual.view().type == DataType::float16;
  const Numbers values = actual.get();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (half && std::fabs(expected[i]) > 65519) {
      ASSERT_TRUE(std::isinf(values[i])) << what;
      continue;
    }
    const long double magnitude = std::max(std::fabs(expected[i]), std::fabs(largest[i]));
    const int exponent = std::max(magnitude > 0 ? std::ilogb(magnitude) : -1000, half ? -14 : -126);
    const long double ulp = std::ldexp(1.0L, exponent - (half ? 10 : 23));
    ASSERT_LE(std::fabs(values[i] - expected[i]), static_cast<long double>(units) * ulp)
        << what << " " << i << ": " << values[i] << " instead of "
        << static_cast<double>(expected[i]);
  }
}

// The blockings of reductions: the operator, along rows rather than down columns, and elements (of
// rows) or groups (of columns) that are contiguous in the input.
using Blockings = std::set<std::tuple<std::string, bool, bool>>;

void add_blockings(const Tensor& x, const Tensor& y, const Tensor& channels, Blockings& reached) {
  const auto size = static_cast<std::int64_t>(element_size(x.view().type));
  const auto add = [&](const char* op, const OperatorPlan& plan, const auto& along_rows) {
    const PlannedReduction& planned = std::get<ReductionParameters>(plan.parameters).reduction;
    Reduction groups{planned.elements, planned.kept};
    std::copy_n(planned.data, kReductionOperands, groups.data);
    groups.end = planned.groups;
    const bool rows = along_rows(groups);
    const std::int64_t step = rows                    ? baseline::element_loops(groups, 1).step()
                              : groups.kept.rank == 0 ? 0
                                                      : groups.kept.strides[1][0];
    reached.emplace(op, rows, step == size);
  };
  unsigned int reduced = 0;
  for (int d = 0; d < x.view().rank; ++d) {
    if (channels.view().sizes[static_cast<std::size_t>(d)] == 1) reduced |= 1u << d;
  }
  if (reduced != 0) {
    add("softmax", plan_softmax(x.view(), reduced, y.view()), [](const Reduction& groups) {
      return baseline::fills_rows(groups, baseline::kSoftmaxAlongRows);
    });
  }
  const ConstTensorView output = y.view(), input = x.view(), parameter = channels.view();
  add("batch_normalization_training",
      plan_batch_normalization_training({&output, &input, &parameter, &parameter}, 0, {}),
      [size](const Reduction& groups) { return baseline::fills_moment_rows(groups, size); });
}

void check(unsigned int seed, Blockings& reached) {
  Draw draw(seed);
  const DataType type = draw.integer(0, 1) == 0 ? kF32 : DataType::float16;
  const Sizes sizes = draw.sizes(), channels = draw.some_of(sizes);
  const auto count = static_cast<std::size_t>(product(sizes));
  const auto groups = static_cast<std::size_t>(product(channels));
  const double mean = draw.integer(0, 1) == 0 ? 0 : 100;
  const Tensor x(type, sizes, draw.values(product(sizes), mean, 3), draw.strides(sizes));
  const Tensor dy(type, sizes, draw.values(product(sizes), 0.5, 1), draw.strides(sizes));
  const auto parameter = [&](const Sizes& of, double center) {
    Numbers values = draw.values(product(of), center, 0.2);
    for (double& value : values) value = std::max(value, 0.125);
    return values;
  };
  const Tensor scale(type, channels, parameter(channels, 1), draw.strides(channels));
  const Tensor bias(type, channels, parameter(channels, 1), draw.strides(channels));
  const Tensor variance(type, channels, parameter(channels, 2), draw.strides(channels));
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (channels[d] == 1) axes.push_back(static_cast<std::int64_t>(d));
  }
  const Numbers xs = x.get(), dys = dy.get(), scales = scale.get(), biases = bias.get();
  const Numbers variances = variance.get();
  std::vector<long double> n(groups), m(groups), v(groups), top(groups, -1e30L), sum(groups);
  std::vector<std::size_t> group(count), first(groups);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t g = group[i] = inner_index(i, sizes, channels);
    n[g] += 1;
    m[g] += xs[i];
    if (xs[i] > top[g]) {
      top[g] = xs[i];
      first[g] = i;
    }
  }
  for (std::size_t g = 0; g < groups; ++g) m[g] /= n[g];
  std::vector<long double> sum_dy(groups), sum_product(groups), size_dy(groups),
      size_product(groups);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t g = group[i];
    const long double d = xs[i] - m[g];
    v[g] += d * d / n[g];
    sum[g] += std::exp(xs[i] - top[g]);
    sum_dy[g] += dys[i];
    size_dy[g] += std::fabs(dys[i]);
    sum_product[g] += dys[i] * d;
    size_product[g] += std::fabs(dys[i] * d);
  }
  const long double epsilon = 0.25L;
  std::vector<long double> soft(count), hard(count), normal(count), trained(count), training(count),
      frozen(count), normal_size(count), trained_size(count), training_size(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t g = group[i];
    const long double d = xs[i] - m[g], c = 1 / std::sqrt(v[g] + epsilon);
    const long double given = variances[g] + epsilon, f = scales[g] / std::sqrt(given);
    soft[i] = std::exp(xs[i] - top[g]) / sum[g];
    hard[i] = first[g] == i ? 1 : 0;
    const long double scaled = d * c * scales[g];
    normal[i] = scaled + biases[g];
    normal_size[i] = std::max(std::fabs(scaled), std::fabs(static_cast<long double>(biases[g])));
    trained[i] = normal[i] + dys[i];
    trained_size[i] = std::max(normal_size[i], std::fabs(static_cast<long double>(dys[i])));
    const long double slope = d * sum_product[g] / n[g] / given;
    training[i] = f * (dys[i] - sum_dy[g] / n[g] - slope);
    training_size[i] = std::fabs(f) * std::max({std::fabs(static_cast<long double>(dys[i])),
                                                std::fabs(sum_dy[g] / n[g]), std::fabs(slope)});
    frozen[i] = f * dys[i];
  }
  std::vector<long double> scale_gradient(groups), scale_gradient_size(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    const long double c = 1 / std::sqrt(variances[g] + epsilon);
    // The given mean is the bias here.
    scale_gradient[g] = (sum_product[g] + (m[g] - biases[g]) * sum_dy[g]) * c;
    scale_gradient_size[g] =
        std::max(size_product[g], std::fabs((m[g] - biases[g]) * sum_dy[g])) * c;
  }
  const Sizes output_strides = draw.strides(sizes), group_strides = draw.strides(channels);
  std::vector<Numbers> bits;
  for (const std::string& name : available_isas()) {
    set_isa(name);
    const Numbers before(count, -77), none(groups, -77);
    Tensor y(type, sizes, before, output_strides);
    add_blockings(x, y, scale, reached);
    Tensor a(type, channels, none, group_strides), b(type, channels, none, group_strides);
    const float epsilon32 = 0.25f;
    const double units = type == kF32 ? 2 : 0.51;
    std::vector<Numbers> results;
    const auto take = [&](const Tensor& tensor) {
      results.push_back(tensor.get());
      EXPECT_TRUE(tensor.intact());
    };
    if (!axes.empty()) {
      softmax(x.view(), axes, y.view());
      take(y);
      expect_near(y, soft, soft, type == kF32 ? 2 : 0.52, "softmax");
      hardmax(x.view(), axes, y.view());
      take(y);
      expect_near(y, hard, hard, 0, "hardmax");
    }
    mean_variance_normalization(x.view(), scale.view(), bias.view(), axes,
                                {true, true, epsilon32, {}}, y.view());
    take(y);
    expect_near(y, normal, normal_size, units, "mean_variance_normalization");
    const BatchNormalizationTrainingOutputs outputs = {y.view(), a.view(), b.view()};
    batch_normalization_training({x.view(), scale.view(), bias.view(), dy.view()}, epsilon32, {},
                                 outputs);
    for (const Tensor* tensor : {&y, &a, &b}) take(*tensor);
    expect_near(y, trained, trained_size, units, "batch_normalization_training");
    expect_near(a, m, m, 0.51, "mean");
    expect_near(b, v, v, 0.51, "variance");
    batch_normalization_training({x.view(), scale.view(), bias.view(), dy.view()}, epsilon32,
                                 FusedActivation(Activation::tanh), outputs);
    take(y);
    const BatchNormalizationGradientInputs inputs = {x.view(), dy.view(), bias.view(),
                                                     variance.view(), scale.view()};
    const BatchNormalizationGradients gradients = {y.view(), a.view(), b.view()};
    batch_normalization_training_grad(inputs, epsilon32, gradients);
    for (const Tensor* tensor : {&y, &a, &b}) take(*tensor);
    expect_near(y, training, training_size, units, "batch_normalization_training_grad");
    expect_near(a, scale_gradient, scale_gradient_size, 0.51, "scale gradient");
    expect_near(b, sum_dy, size_dy, 0.51, "bias gradient");
    batch_normalization_grad(inputs, epsilon32, gradients);
    for (const Tensor* tensor : {&y, &a, &b}) take(*tensor);
    expect_near(y, frozen, frozen, 0.51, "batch_normalization_grad");
    expect_near(a, scale_gradient, scale_gradient_size, 0.51, "scale gradient");
    // Bitwise identical on each instruction set, and to dense tensors.
    if (bits.empty()) {
      bits = results;
      const Tensor dense(type, sizes, xs);
      Tensor result(type, sizes);
      mean_variance_normalization(dense.view(), scale.view(), bias.view(), axes,
                                  {true, true, epsilon32, {}}, result.view());
      EXPECT_EQ(result.get(), results[axes.empty() ? 0 : 2]);
    }
    EXPECT_EQ(bits, results) << name;
  }
}

TEST(Reductions, RandomLayoutsAndEveryBlocking) {
  const std::string before = isa();
  Blockings reached;
  for (unsigned int seed = 0; seed < 150 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    check(seed, reached);
  }
  set_isa(before);
  EXPECT_EQ(reached.size(), 8u);
}

TEST(Reductions, RandomLayoutsOnThreads) {
  const std::int64_t threshold = split_threshold();
  const int threads = get_num_threads();
  set_split_threshold(256);
  set_num_threads(3);
  Blockings reached;
  for (unsigned int seed = 1000; seed < 1050 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    check(seed, reached);
  }
  set_num_threads(threads);
  set_split_threshold(threshold);
}

}  // namespace
}  // namespace dmlops
