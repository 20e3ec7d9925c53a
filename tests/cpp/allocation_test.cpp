// Every allocation fails once: std::bad_alloc, nothing is written, and later calls work. A separate
// program, since it replaces operator new.
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <vector>

#include "dmlops/activations.hpp"
#include "dmlops/device.hpp"
#include "dmlops/dmlops.h"
#include "dmlops/runtime.hpp"
#include "restored_settings.hpp"

namespace {

thread_local int until_failure = -1;  // allocations until one fails; negative: none fails

}  // namespace

// Neither is inlined: GCC would warn that one of them does not match what the other one does.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (until_failure >= 0 && until_failure-- == 0) throw std::bad_alloc();
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// The standard library's other versions call these, but a sanitizer's do not.
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace dmlops {
namespace {

// Runs `work` with the first allocation failing, then the second, and so on until all succeed;
// `unchanged` checks the output after each failure. Returns the number of failures.
template <class Work, class Check>
int fail_each(const Work& work, const Check& unchanged) {
  for (int n = 0;; ++n) {
    until_failure = n;
    try {
      work();
      until_failure = -1;
      return n;
    } catch (const std::bad_alloc&) {
      until_failure = -1;
      EXPECT_TRUE(unchanged()) << "allocation " << n;
    }
  }
}

template <class Work>
int fail_each(const Work& work) {
  return fail_each(work, [] { return true; });
}

// Runs `work`, which writes y, with each allocation failing in turn, and last with none failing: y
// has the expected results, or is unchanged if the call is refused. Returns the number of runs.
template <class Work>
int expect_each(const Work& work, std::vector<float>& y, const std::vector<float>& expected) {
  int allocations = 0;
  for (bool failed = true; failed; ++allocations) {
    y.assign(y.size(), 7);
    until_failure = allocations;
    bool refused = false;
    try {
      work();
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    failed = until_failure == -1;
    until_failure = -1;
    EXPECT_EQ(y, refused ? std::vector<float>(y.size(), 7.0f) : expected);
  }
  return allocations;
}

OperatorDesc normalization() {
  const BufferTensorDesc tensor(DataType::float32, {2, 3});
  OperatorDesc desc, fused;
  desc.type = OperatorType::batch_normalization;
  for (auto& each : desc.tensors) each = tensor;
  desc.tensors[1]->flags = TensorFlags::owned_by_dml;
  desc.numbers = {1e-5f};
  fused.type = OperatorType::activation_relu;
  desc.fused_activation = std::make_shared<const OperatorDesc>(fused);
  return desc;
}

// The first test: the pool has not started its threads yet. Without memory for them, the caller's
// thread does the work.
TEST(Allocation, OfThreads) {
  const RestoredSettings restored;
  std::vector<float> x(1'000'003, 0.5f), expected(x.size()), y(x.size(), 7.0f);
  set_num_threads(1);
  hard_sigmoid(x, 0.2f, 0.5f, expected);
  set_num_threads(4);
  int failures = 0;
  for (bool failed = true; failed; failures += failed ? 1 : 0) {
    y.assign(y.size(), 7);
    until_failure = failures;
    EXPECT_NO_THROW(hard_sigmoid(x, 0.2f, 0.5f, y));
    failed = until_failure == -1;
    until_failure = -1;
    EXPECT_EQ(y, expected) << "allocation " << failures;
  }
  EXPECT_GE(failures, 1);
}

// Without memory for the sums of its parts, the row is computed by one thread.
TEST(Allocation, OfTheSumsOfALongRow) {
  const RestoredSettings restored;
  std::vector<float> x(1'000'000), expected(x.size()), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
  const auto check = [&](const auto& function) {
    set_num_threads(1);
    function(x, expected);
    set_num_threads(4);
    function(x, y);  // starts the threads
    EXPECT_EQ(y, expected);
    const int allocations = expect_each([&] { function(x, y); }, y, expected);
    EXPECT_GE(allocations, 2) << "nothing was allocated";
  };
  check([](const TensorView& input, const TensorView& output) { softmax(input, output); });
  check([](const TensorView& input, const TensorView& output) {
    mean_variance_normalization(input, {0}, output);
  });
}

// Without memory for the sums of its columns, a group is computed otherwise.
TEST(Allocation, OfTheSumsOfColumns) {
  const RestoredSettings restored;
  std::vector<float> x(2 * 8 * 62'500), expected(x.size()), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
  const auto channels_last = [](std::vector<float>& values) {
    return TensorView(values, {2, 8, 62'500}, ElementStrides{8, 1, 16});
  };
  set_num_threads(1);
  mean_variance_normalization(channels_last(x), {1, 2}, channels_last(expected));
  const int allocations = expect_each(
      [&] {
        mean_variance_normalization(channels_last(x), {1, 2}, channels_last(y));
      },
      y, expected);
  EXPECT_GE(allocations, 2) << "nothing was allocated";
}

TEST(Allocation, OfAnOverlappingInputsCopy) {
  std::vector<float> x = {-1, -2, -3, 4, 5}, before = x;
  const TensorView input(x.data(), 4), output(x.data() + 1, 4);
  const int failures = fail_each([&] { clip(input, Scalar(0.0), Scalar(), std::nullopt, output); },
                                 [&] { return x == before; });
  EXPECT_GE(failures, 1);
  EXPECT_EQ(x, (std::vector<float>{-1, 0, 0, 0, 4}));
}

TEST(Allocation, FailsWithAStatusOfTheCInterface) {
  std::vector<float> x = {-1, -2, -3, 4, 5}, before = x;
  const std::int64_t size = 4;
  dmlops_view input, output;
  dmlops_packed_view(x.data(), DML_TENSOR_DATA_TYPE_FLOAT32, 1, &size, &input);
  dmlops_packed_view(x.data() + 1, DML_TENSOR_DATA_TYPE_FLOAT32, 1, &size, &output);
  const dmlops_activation relu = {DML_OPERATOR_ACTIVATION_RELU, {0, 0}};
  int failures = 0;
  for (;; ++failures) {
    until_failure = failures;
    const dmlops_status status = dmlops_activate(&relu, &input, &output);
    until_failure = -1;
    if (status == DMLOPS_SUCCESS) break;
    ASSERT_EQ(status, DMLOPS_OUT_OF_MEMORY);
    EXPECT_STREQ(dmlops_last_error(), "out of memory");
    EXPECT_EQ(x, before);
  }
  EXPECT_GT(failures, 0);
  EXPECT_EQ(x, (std::vector<float>{-1, 0, 0, 0, 4}));
}

TEST(Allocation, OfCompiledOperators) {
  const std::vector<float> mean(6, 1.0f), x = {1, 2, 3, 4, 5, 6};
  const OperatorDesc desc = normalization();
  const ConstBinding bound = {mean.data(), 0, 24};
  const int failures = fail_each([&] {
    const CompiledOperator compiled = Device().compile(desc, {{}, bound, {}, {}, {}});
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the copy is under test
    const CompiledOperator copy = compiled;
    std::vector<float> y(6);
    const ConstBinding input = {x.data(), 0, 24};
    const ConstBinding inputs[] = {input, {}, input, input, input};
    const Binding output = {y.data(), 0, 24};
    copy.dispatch(inputs, 5, &output, 1);
    EXPECT_GT(y[5], 11.0f);
  });
  EXPECT_GE(failures, 4);
}

TEST(Allocation, OfRefusals) {
  OperatorDesc desc = normalization();
  desc.tensors[5]->sizes = {2, 4};
  int refused = 0;
  const int failures = fail_each([&] {
    try {
      Device().compile(desc);
    } catch (const ValidationError&) {
      ++refused;
    }
  });
  EXPECT_GE(failures, 4);
  EXPECT_GE(refused, 1);
}

}  // namespace
}  // namespace dmlops
