// Run-time facts, and the selection of an instruction set.
#include "dmlops/runtime.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "activation_reference.hpp"
#include "restored_settings.hpp"

namespace dmlops {
namespace {

TEST(Runtime, HasTheInterfaceOfItsHeaders) { EXPECT_EQ(abi_version(), DMLOPS_ABI_VERSION); }

TEST(Runtime, HasAVersionAndAnInstructionSet) {
  EXPECT_FALSE(version().empty());
  const std::vector<std::string> isas = available_isas();
  EXPECT_EQ(isas.back(), "baseline");
  EXPECT_NE(std::find(isas.begin(), isas.end(), isa()), isas.end());
}

TEST(Runtime, ChoosesAnInstructionSet) {
  const RestoredSettings restored;
  for (const std::string& name : available_isas()) {
    set_isa(name);
    EXPECT_EQ(isa(), name);
    float x[] = {-1, 2, 0, 5};
    leaky_relu(x, 0.5f, x);
    EXPECT_EQ(x[0], -0.5f) << name;
    EXPECT_EQ(x[3], 5.0f) << name;
  }
  const std::string before = isa();
  EXPECT_THROW(set_isa("mmx"), std::invalid_argument);
  EXPECT_THROW(set_isa(""), std::invalid_argument);
  EXPECT_EQ(isa(), before);
}

TEST(Activations, HaveFunctionsThatPassTheParameters) {
  const std::array<float, 6> x = {-4, -1.5f, -0.1f, 0.1f, 1.5f, 4};
  std::array<float, 6> expected = {}, actual = {};
  for (std::size_t i = 0; i < kActivationCount; ++i) {
    const auto type = static_cast<Activation>(i);
    activation(type, x, {2, 3}, expected);
    call(type, x, 2, 3, actual);
    EXPECT_EQ(actual, expected) << info(type).name;
  }
}

}  // namespace
}  // namespace dmlops
