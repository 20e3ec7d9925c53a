// Kernels do not compute with uninitialized memory, not even in lanes that they discard: it may
// hold subnormal numbers, which take many times as long. The processor's flag of subnormal operands
// shows them. Not under sanitizers: they lay out the stack differently, and filling it would take
// half of the C++ tests' time.
#if defined(__x86_64__) && !defined(DMLOPS_SANITIZED)
#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <xmmintrin.h>

#include "dmlops/runtime.hpp"
#include "draw.hpp"
#include "operators/plan.hpp"
#include "restored_settings.hpp"

namespace dmlops {
namespace {

constexpr unsigned int kDenormalOperand = 2;  // the bit of MXCSR

constexpr std::uint32_t kSubnormalBits = 0x00000123, kUsualBits = 0x3f803f80;  // of all types

// Fills the memory below the caller's stack frame.
[[gnu::noinline]] void fill_stack(std::uint32_t bits) {
  volatile std::uint32_t words[1 << 17];
  for (volatile std::uint32_t& word : words) word = bits;
}

// Runs a plan, unlike its run() without a guard that restores the flags. Returns true if an operand
// of the kernel was subnormal.
bool reads_subnormals(const OperatorPlan& plan, std::uint32_t uninitialized) {
  fill_stack(uninitialized);
  _mm_setcsr(_mm_getcsr() & ~0x3fu);
  std::visit(
      [&](const auto& parameters) {
        if constexpr (std::is_same_v<std::decay_t<decltype(parameters)>, ReductionParameters>) {
          const PlannedReduction& planned = parameters.reduction;
          char* data[kReductionOperands];
          std::copy_n(planned.data, kReductionOperands, data);
          if (plan.kernel != nullptr) {  // the copy of the input to the output
            run(plan.nest, plan.nest.data, plan.kernel, nullptr);
            data[1] = data[0];
          }
          std::visit(
              [&](const auto& own) {
                run(planned, data, plan.nest.element_size, parameters.traits, parameters.kernel,
                    &own);
              },
              parameters.own);
        } else {
          run(plan.nest, plan.nest.data, plan.kernel, &parameters);
        }
      },
      plan.parameters);
  return (_mm_getcsr() & kDenormalOperand) != 0;
}

void check(unsigned int seed) {
  Draw draw(seed);
  const DataType type = draw.integer(0, 1) == 0 ? DataType::float32 : DataType::float16;
  Sizes sizes = draw.sizes();
  if (draw.integer(0, 2) == 0) sizes.back() = 16 * draw.integer(1, 4);  // whole vectors
  Sizes along(sizes.size(), 1);                                         // of parameters
  const auto axis =
      static_cast<std::size_t>(draw.integer(0, static_cast<std::int64_t>(sizes.size()) - 1));
  along[axis] = sizes[axis];
  const auto tensor = [&](const Sizes& of) {
    return Tensor(type, of, draw.values(product(of), 1.5, 0.1), draw.strides(of));
  };
  const Tensor x_tensor = tensor(sizes), other_tensor = tensor(sizes), out = tensor(sizes);
  const Tensor own[] = {tensor(along), tensor(along), tensor(along), tensor(along), tensor(along)};
  const ConstTensorView x = x_tensor.view(), other = other_tensor.view(), y = out.view();
  const ConstTensorView a = own[0].view(), b = own[1].view(), c = own[2].view(), d = own[3].view(),
                        e = own[4].view();
  const unsigned int reduced = 1u << axis;
  const std::pair<const char*, OperatorPlan> plans[] = {
      {"hard_sigmoid", plan_activation(Activation::hard_sigmoid, x, {0.25f, 0.5f}, out.view())},
      {"tanh", plan_activation(Activation::tanh, x, {}, out.view())},
      {"parameterized_relu", plan_parameterized_relu(x, a, out.view())},
      {"batch_normalization", plan_batch_normalization({x, a, b, c, d}, 0.5f, {}, out.view())},
      {"softmax", plan_softmax(x, reduced, out.view())},
      {"log_softmax", plan_log_softmax(x, reduced, out.view())},
      {"mean_variance_normalization",
       plan_mean_variance_normalization({&y, &x, &a, &b}, reduced, {true, true, 0.5f, {}})},
      {"batch_normalization_training",
       plan_batch_normalization_training({&y, &x, &a, &b, &other, &d, &e}, 0.5f, {})},
      {"batch_normalization_grad",
       plan_batch_normalization_grad({&y, &x, &other, nullptr, nullptr, &a, &b, &c, &d, &e}, false,
                                     0.5f)},
      {"batch_normalization_training_grad",
       plan_batch_normalization_grad({&y, &x, &other, nullptr, nullptr, &a, &b, &c, &d, &e}, true,
                                     0.5f)},
  };
  std::ostringstream text;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    text << (k == 0 ? "" : ", ") << sizes[k] << " at " << x.strides[k] << " to " << y.strides[k];
  for (const auto& [name, plan] : plans) {
    EXPECT_EQ(reads_subnormals(plan, kSubnormalBits), reads_subnormals(plan, kUsualBits))
        << name << " on " << isa() << ", seed " << seed << ", axis " << axis << ", "
        << (type == DataType::float32 ? "float32: " : "float16: ") << text.str();
  }
}

TEST(UnusedLanes, AreNotComputed) {
  const RestoredSettings restored;
  set_num_threads(1);
  for (const std::string& name : available_isas()) {
    set_isa(name);
    for (unsigned int seed = 0; seed < 300; ++seed) check(seed);
  }
}

// Gradients of groups with these means. Each sweep adds up the groups that need it; the others,
// those far from 0 in the first sweep, have no sums.
void check_sweeps(const Numbers& means, int threads) {
  const auto groups = static_cast<std::int64_t>(means.size());
  constexpr std::int64_t kGroupLength = 60'000;
  const auto tensor = [groups](std::int64_t length) {
    const Numbers ones(static_cast<std::size_t>(groups * length), 1);
    return Tensor(DataType::float32, {groups, length}, ones);
  };
  const Tensor x_tensor = tensor(kGroupLength), g_tensor = tensor(kGroupLength),
               out = tensor(kGroupLength);
  const Tensor mean_tensor(DataType::float32, {groups, 1}, means);
  const Tensor own[] = {tensor(1), tensor(1), tensor(1), tensor(1)};
  const ConstTensorView x = x_tensor.view(), g = g_tensor.view(), mean = mean_tensor.view(),
                        variance = own[0].view(), scale = own[1].view(), y = out.view(),
                        of_scale = own[2].view(), of_bias = own[3].view();
  set_num_threads(threads);
  const OperatorPlan plan = plan_batch_normalization_grad(
      {&y, &x, &g, nullptr, nullptr, &mean, &variance, &scale, &of_scale, &of_bias}, false, 0.5f);
  for (int repetition = 0; repetition < 10; ++repetition)
    EXPECT_EQ(reads_subnormals(plan, kSubnormalBits), reads_subnormals(plan, kUsualBits)) << isa();
}

TEST(UnusedLanes, AreNotComputedForGroupsWithoutASweep) {
  const RestoredSettings restored;
  for (const std::string& name : available_isas()) {
    set_isa(name);
    check_sweeps({100}, 1);
    check_sweeps({0, 100}, 8);  // in parts
  }
}

}  // namespace
}  // namespace dmlops
#endif
