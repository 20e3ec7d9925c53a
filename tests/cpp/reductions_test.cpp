// Softmax, hardmax, mean-variance normalization, and the training pass and gradients of batch
// normalization: worked examples, long double references on random layouts, and the same bits on
// every instruction set.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#define DMLOPS_TARGET baseline  // whose choices are those of every instruction set
#include "dmlops/operators.hpp"
#include "dmlops/runtime.hpp"
#include "drawn_reduction.hpp"
#include "kernels/normalization/reduce_moments.hpp"
#include "kernels/softmax/softmax_rows.hpp"
#include "laid_out_tensor.hpp"
#include "operators/plan.hpp"
#include "restored_settings.hpp"

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

// Within `units` of the type's last place of the largest intermediate.
void expect_near(const Tensor& actual, const ExactNumbers& exact, double units, const char* what) {
  const bool half = actual.view().type == DataType::float16;
  const Numbers values = actual.get();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const long double expected = exact.values[i];
    if (half && std::fabs(expected) > 65519) {
      ASSERT_TRUE(std::isinf(values[i])) << what;
      continue;
    }
    const long double magnitude = std::max(std::fabs(expected), exact.largest[i]);
    const int exponent = std::max(magnitude > 0 ? std::ilogb(magnitude) : -1000, half ? -14 : -126);
    const long double ulp = std::ldexp(1.0L, exponent - (half ? 10 : 23));
    ASSERT_LE(std::fabs(values[i] - expected), static_cast<long double>(units) * ulp)
        << what << " " << i << ": " << values[i] << " instead of " << static_cast<double>(expected);
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

// Calls each operator and compares its outputs; returns them.
std::vector<Numbers> outputs_of(const DrawnReduction& operands, const ExpectedReduction& expected,
                                Blockings& reached) {
  const Tensor &x = operands.x, &dy = operands.dy, &scale = operands.scale, &bias = operands.bias,
               &variance = operands.variance;
  const std::vector<std::int64_t> axes = operands.axes();
  const DataType type = operands.type;
  const Numbers before(expected.softmax.values.size(), -77), none(expected.mean.values.size(), -77);
  const Tensor y(type, operands.sizes, before, operands.output_strides);
  const Tensor a(type, operands.channels, none, operands.group_strides),
      b(type, operands.channels, none, operands.group_strides);
  add_blockings(x, y, scale, reached);
  const bool half = type == DataType::float16;
  const double units = half ? 0.51 : 2;
  std::vector<Numbers> results;
  const auto take = [&](const Tensor& tensor, const ExactNumbers* exact, double bound,
                        const char* what) {
    results.push_back(tensor.get());
    EXPECT_TRUE(tensor.intact()) << what;
    if (exact != nullptr) expect_near(tensor, *exact, bound, what);
  };
  mean_variance_normalization(x.view(), scale.view(), bias.view(), axes,
                              {true, true, kReductionEpsilon, {}}, y.view());
  take(y, &expected.normalized, units, "mean_variance_normalization");
  if (!axes.empty()) {
    softmax(x.view(), axes, y.view());
    take(y, &expected.softmax, half ? 0.52 : 2, "softmax");
    hardmax(x.view(), axes, y.view());
    take(y, &expected.hardmax, 0, "hardmax");
  }
  const BatchNormalizationTrainingInputs given = {x.view(), scale.view(), bias.view(), dy.view()};
  const BatchNormalizationTrainingOutputs outputs = {y.view(), a.view(), b.view()};
  batch_normalization_training(given, kReductionEpsilon, {}, outputs);
  take(y, &expected.trained, units, "batch_normalization_training");
  take(a, &expected.mean, 0.51, "mean");
  take(b, &expected.variance, 0.51, "variance");
  batch_normalization_training(given, kReductionEpsilon, FusedActivation(Activation::tanh),
                               outputs);
  take(y, nullptr, 0, "fused tanh");
  const BatchNormalizationGradientInputs inputs = {x.view(), dy.view(), bias.view(),
                                                   variance.view(), scale.view()};
  const BatchNormalizationGradients gradients = {y.view(), a.view(), b.view()};
  batch_normalization_training_grad(inputs, kReductionEpsilon, gradients);
  take(y, &expected.training_gradient, units, "batch_normalization_training_grad");
  take(a, &expected.scale_gradient, 0.51, "scale gradient");
  take(b, &expected.bias_gradient, 0.51, "bias gradient");
  batch_normalization_grad(inputs, kReductionEpsilon, gradients);
  take(y, &expected.gradient, 0.51, "batch_normalization_grad");
  take(a, &expected.scale_gradient, 0.51, "scale gradient");
  take(b, &expected.bias_gradient, 0.51, "bias gradient");
  return results;
}

// Expects the same bits on each instruction set, and from dense tensors.
void check(unsigned int seed, Blockings& reached) {
  const RestoredSettings restored;
  const DrawnReduction operands(seed);
  const ExpectedReduction expected = expected_of(operands);
  std::vector<Numbers> bits;
  for (const std::string& name : available_isas()) {
    set_isa(name);
    const std::vector<Numbers> outputs = outputs_of(operands, expected, reached);
    if (bits.empty()) bits = outputs;
    EXPECT_EQ(bits, outputs) << name;
  }
  const Tensor dense(operands.type, operands.sizes, operands.x.get());
  const Tensor result(operands.type, operands.sizes);
  mean_variance_normalization(dense.view(), operands.scale.view(), operands.bias.view(),
                              operands.axes(), {true, true, kReductionEpsilon, {}}, result.view());
  EXPECT_EQ(result.get(), bits[0]);
}

TEST(Reductions, RandomLayoutsAndEveryBlocking) {
  Blockings reached;
  for (unsigned int seed = 0; seed < 150 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    check(seed, reached);
  }
  EXPECT_EQ(reached.size(), 8u);
}

TEST(Reductions, RandomLayoutsOnThreads) {
  const RestoredSettings restored;
  set_split_threshold(256);
  set_num_threads(3);
  Blockings reached;
  for (unsigned int seed = 1000; seed < 1050 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    check(seed, reached);
  }
}

}  // namespace
}  // namespace dmlops
