// Many threads at once: shared compiled operators, functions, compilation, and changes of the
// configuration. Meant for the thread sanitizer; also checks values.
#include <atomic>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "dmlops/device.hpp"
#include "dmlops/runtime.hpp"
#include "restored_settings.hpp"

namespace dmlops {
namespace {

constexpr std::uint32_t kRows = 300, kColumns = 1001;  // enough for several threads
constexpr std::size_t kElements = std::size_t{kRows} * kColumns;

OperatorDesc unary(OperatorType type, std::uint32_t rows = kRows) {
  OperatorDesc desc;
  desc.type = type;
  desc.tensors[0] = desc.tensors[1] = BufferTensorDesc(DataType::float32, {rows, kColumns});
  desc.numbers = {-1.0f, 2.0f};
  desc.axes = {1};
  return desc;
}

std::vector<float> dispatched(const CompiledOperator& compiled, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  const ConstBinding input = {x.data(), 0, x.size() * sizeof(float)};
  const Binding output = {y.data(), 0, y.size() * sizeof(float)};
  compiled.dispatch(&input, 1, &output, 1);
  return y;
}

// Runs `work` on some threads while another one changes the configuration.
template <class Work>
void run_on_threads(const Work& work) {
  const RestoredSettings restored;
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    const std::vector<std::string> isas = available_isas();
    for (std::size_t i = 0; !stop; ++i) {
      set_num_threads(static_cast<long long>(1 + i % 5));
      set_isa(isas[i % isas.size()]);
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> workers;
  workers.reserve(4);
  for (int i = 0; i < 4; ++i) workers.emplace_back(work, i);
  for (std::thread& worker : workers) worker.join();
  stop = true;
  changer.join();
}

TEST(Concurrency, CompiledOperatorsAreShared) {
  std::vector<float> x(kElements);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 4.0f * std::sin(static_cast<float>(i));
  const Device device;
  const CompiledOperator operators[] = {
      device.compile(unary(OperatorType::element_wise_clip)),
      device.compile(unary(OperatorType::activation_tanh)),
      device.compile(unary(OperatorType::activation_log_softmax1)),
  };
  std::vector<std::vector<float>> expected;
  expected.reserve(std::size(operators));
  for (const CompiledOperator& compiled : operators) expected.push_back(dispatched(compiled, x));
  std::atomic<int> bad{0};
  run_on_threads([&](int thread) {
    for (int repeat = 0; repeat < 8; ++repeat) {
      const auto k = static_cast<std::size_t>(thread + repeat) % std::size(operators);
      bad += dispatched(operators[k], x) == expected[k] ? 0 : 1;
    }
  });
  EXPECT_EQ(bad, 0);
}

TEST(Concurrency, FunctionsShareTheirInput) {
  std::vector<float> x(kElements, 0.5f), expected(kElements);
  hard_sigmoid(x, 0.2f, 0.5f, expected);
  std::atomic<int> bad{0};
  run_on_threads([&](int) {
    std::vector<float> y(kElements);
    for (int repeat = 0; repeat < 8; ++repeat) {
      hard_sigmoid(x, 0.2f, 0.5f, y);
      bad += y == expected ? 0 : 1;
    }
  });
  EXPECT_EQ(bad, 0);
}

TEST(Concurrency, CompilationAndErrors) {
  std::atomic<int> refused{0};
  run_on_threads([&](int thread) {
    const Device device(thread % 2 == 0 ? FeatureLevel::level_6_4 : FeatureLevel::level_1_0);
    for (std::uint32_t rows = 1; rows < 50; ++rows) {
      try {
        device.compile(unary(OperatorType::activation_relu, rows));
      } catch (const ValidationError&) {
        ++refused;
      }
    }
  });
  EXPECT_EQ(refused, 2 * 49);  // rank 2 needs level 3_0
}

}  // namespace
}  // namespace dmlops
