// Few long groups are computed in parts: which groups are, and the bits of one thread in random
// layouts.
#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "dmlops/operators.hpp"
#include "dmlops/runtime.hpp"
#include "draw.hpp"
#include "laid_out_tensor.hpp"
#include "operators/plan.hpp"
#include "restored_settings.hpp"

// A separate namespace, since helpers of other tests have the same names.
namespace dmlops::parts {
namespace {

// The number of the kernel's calls, their largest number of parts, and true if parts are lanes.
struct Calls {
  std::mutex mutex;
  int count = 0, parts = 0;
  bool by_lanes = false;
};

void record(const Reduction& groups, const void* parameters) {
  Calls& calls = *static_cast<Calls*>(const_cast<void*>(parameters));
  const std::lock_guard<std::mutex> lock(calls.mutex);
  ++calls.count;
  calls.parts = std::max(calls.parts, groups.parts);
  calls.by_lanes = groups.parts > 1 && groups.by_lanes;
}

// Returns the members of Calls for dense groups.
std::tuple<int, int, bool> calls(const Sizes& sizes, unsigned int reduced,
                                 const ReductionTraits& traits) {
  const Tensor x(DataType::float32, sizes), y(DataType::float32, sizes);
  const ConstTensorView input = x.view(), output = y.view();
  const ConstTensorView* const operands[kReductionOperands] = {&output, &input};
  const PlannedReduction reduction(operands, reduced);
  Calls calls;
  run(reduction, reduction.data, 4, traits, record, &calls);
  return {calls.count, calls.parts, calls.by_lanes};
}

TEST(Parts, OfFewLongGroups) {
  const RestoredSettings restored;
  set_num_threads(16);
  set_split_threshold(256);
  const ReductionTraits all = {1, kMaxPartSums * kMomentLanes, 1, true}, rows = {1, kSumLanes, 1};
  using Expected = std::tuple<int, int, bool>;
  EXPECT_EQ(calls({1, 50'000}, 2, all), (Expected{1, 16, false}));
  EXPECT_EQ(calls({1, 4096}, 2, all), (Expected{1, 4, false}));  // a block for each part
  EXPECT_EQ(calls({1, 2047}, 2, all), (Expected{1, 1, false}));
  EXPECT_EQ(calls({3, 9000}, 2, all), (Expected{1, 16, false}));
  EXPECT_EQ(calls({9, 9000}, 2, all), (Expected{1, 16, false}));   // 9 of 16 threads
  EXPECT_EQ(calls({15, 9000}, 2, all), (Expected{15, 1, false}));  // a shard for each group
  EXPECT_EQ(calls({9000, 3}, 1, all), (Expected{1, 16, false}));
  EXPECT_EQ(calls({9000, 64}, 1, all), (Expected{1, 16, true}));
  EXPECT_EQ(calls({9000, 256}, 1, all), (Expected{4, 16, true}));  // shards would be single lines
  EXPECT_EQ(calls({9000, 512}, 1, all), (Expected{16, 1, false}));
  EXPECT_EQ(calls({1, 50'000}, 2, rows), (Expected{1, 16, false}));
  EXPECT_EQ(calls({3, 9000}, 2, rows), (Expected{3, 8, false}));  // one after another
  EXPECT_EQ(calls({9000, 3}, 1, rows), (Expected{3, 1, false}));
}

// The bits of every result of the operators with groups along some axes.
std::vector<Numbers> results(const std::vector<const Tensor*>& full,
                             const std::vector<const Tensor*>& numbers, const Sizes& axes,
                             Tensor& y, Tensor& mean, Tensor& variance) {
  std::vector<Numbers> bits;
  const auto take = [&](const std::vector<const Tensor*>& tensors) {
    for (const Tensor* const tensor : tensors) {
      bits.push_back(tensor->get());
      EXPECT_TRUE(tensor->intact());
    }
  };
  const ConstTensorView x = full[0]->view(), dy = full[1]->view();
  using Softmax =
      void (*)(const ConstTensorView&, const std::int64_t*, std::size_t, const TensorView&);
  for (const Softmax function : {Softmax{softmax}, Softmax{log_softmax}, Softmax{hardmax}}) {
    function(x, axes.data(), axes.size(), y.view());
    take({&y});
  }
  mean_variance_normalization(x, dy, numbers[0]->view(), axes, {true, true, 0.25f, {}}, y.view());
  take({&y});
  const BatchNormalizationTrainingOutputs outputs = {y.view(), mean.view(), variance.view()};
  batch_normalization_training({x, numbers[0]->view(), numbers[1]->view(), dy}, 0.25f, {}, outputs);
  take({&y, &mean, &variance});
  const BatchNormalizationGradientInputs inputs = {x, dy, numbers[0]->view(), numbers[1]->view(),
                                                   numbers[2]->view()};
  const BatchNormalizationGradients gradients = {y.view(), mean.view(), variance.view()};
  for (const auto function : {batch_normalization_grad, batch_normalization_training_grad}) {
    function(inputs, 0.25f, gradients);
    take({&y, &mean, &variance});
  }
  return bits;
}

TEST(Parts, HaveTheBitsOfOneThread) {
  const RestoredSettings restored;
  set_split_threshold(256);
  for (unsigned int seed = 0; seed < 24 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const DataType type = draw.integer(0, 1) == 0 ? DataType::float32 : DataType::float16;
    Sizes sizes = {draw.integer(1, 70), draw.integer(30, 90)};
    if (draw.integer(0, 1) == 0) sizes = {1, draw.integer(2000, 9000)};
    const std::int64_t kept = draw.integer(0, 2), groups = draw.integer(1, 3);
    sizes.insert(sizes.begin() + kept, groups);
    Sizes channels(3, 1), axes = {0, 1, 2};
    channels[static_cast<std::size_t>(kept)] = groups;
    axes.erase(axes.begin() + kept);
    const double mean = draw.integer(0, 1) == 0 ? 0 : 100;
    const auto tensor = [&](const Sizes& of, double center, double deviation) {
      return std::make_unique<Tensor>(type, of, draw.values(product(of), center, deviation),
                                      draw.strides(of));
    };
    const auto x = tensor(sizes, mean, 3), dy = tensor(sizes, 0.5, 1), a = tensor(channels, 1, 0.1),
               b = tensor(channels, 2, 0.1), c = tensor(channels, 1, 0.1), y = tensor(sizes, 0, 0),
               first = tensor(channels, 0, 0), second = tensor(channels, 0, 0);
    std::vector<Numbers> expected;
    for (const int count : {1, 2, 3, 7, 16}) {
      set_num_threads(count);
      const std::vector<Numbers> bits =
          results({x.get(), dy.get()}, {a.get(), b.get(), c.get()}, axes, *y, *first, *second);
      if (count == 1) expected = bits;
      EXPECT_EQ(bits, expected) << count << " threads";
    }
  }
}

}  // namespace
}  // namespace dmlops::parts
