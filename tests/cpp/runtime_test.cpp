// Run-time facts, and the selection of an instruction set.
#include "dmlops/runtime.hpp"

#include <array>
#include <cstdlib>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "activation_reference.hpp"

namespace dmlops {
namespace {

TEST(Runtime, HasTheInterfaceOfItsHeaders) { EXPECT_EQ(abi_version(), DMLOPS_ABI_VERSION); }

TEST(Runtime, ChoosesAnInstructionSet) {
  const std::string before = isa();
  for (const std::string& name : available_isas()) {
    set_isa(name);
    EXPECT_EQ(isa(), name);
    float x[] = {-1, 2, 0, 5};
    const TensorView view(x, DataType::float32, 1, {4}, {sizeof(float)});
    leaky_relu(view, 0.5f, view);
    EXPECT_EQ(x[0], -0.5f) << name;
    EXPECT_EQ(x[3], 5.0f) << name;
  }
  set_isa(before);
  EXPECT_THROW(set_isa("mmx"), std::invalid_argument);
  EXPECT_THROW(set_isa(""), std::invalid_argument);
  EXPECT_EQ(isa(), before);
}

#if defined(GTEST_HAS_DEATH_TEST) && !defined(_WIN32)
// softmax of a broadcast input writes twice: the results of one row, then their copies.
TEST(Runtime, RefusesAnInvalidEnvironmentBeforeAnOperatorWrites) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, which reads the environment
  for (const char* const variable : {"DMLOPS_NUM_THREADS", "DMLOPS_NON_TEMPORAL_THRESHOLD"}) {
    const auto refuses = [variable] {
      setenv(variable, "abc", 1);
      const std::vector<float> row(64, 1.0f);
      std::vector<float> y(64 * 4096, 7.0f);
      try {
        softmax({row.data(), {4096, 64}, ByteStrides{0, 4}}, {1}, {y.data(), {4096, 64}});
      } catch (const Error&) {
        std::exit(y == std::vector<float>(y.size(), 7.0f) ? 0 : 1);
      }
      std::exit(2);
    };
    EXPECT_EXIT(refuses(), testing::ExitedWithCode(0), "") << variable;
  }
}
#endif

// Each function passes its parameters to the activation of the same name.
TEST(Activations, AreTheirNames) {
  const std::array<float, 6> x = {-4, -1.5f, -0.1f, 0.1f, 1.5f, 4};
  const ConstTensorView input(x.data(), DataType::float32, 1, {6}, {4});
  std::array<float, 6> expected = {}, actual = {};
  const TensorView output(expected.data(), DataType::float32, 1, {6}, {4});
  const TensorView named(actual.data(), DataType::float32, 1, {6}, {4});
  for (std::size_t i = 0; i < kActivationCount; ++i) {
    const auto type = static_cast<Activation>(i);
    activation(type, input, {2, 3}, output);
    call(type, input, 2, 3, named);
    EXPECT_EQ(actual, expected) << info(type).name;
  }
}

}  // namespace
}  // namespace dmlops
