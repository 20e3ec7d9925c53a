// Run-time facts, and the selection of an instruction set.
#include "dmlops/runtime.hpp"

#include <array>
#include <gtest/gtest.h>
#include <iterator>
#include <stdexcept>
#include <string>

#include "dmlops/activations.hpp"

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

// Each function passes its parameters to the activation of the same name.
TEST(Activations, AreTheirNames) {
  using In = const ConstTensorView&;
  using Out = const TensorView&;
  struct Case {
    Activation type;
    ActivationParameters parameters;
    void (*function)(In, Out);
  };
  const Case cases[] = {
      {Activation::elu, {2, 0}, [](In x, Out y) { elu(x, 2, y); }},
      {Activation::celu, {2, 0}, [](In x, Out y) { celu(x, 2, y); }},
      {Activation::hard_sigmoid, {2, 3}, [](In x, Out y) { hard_sigmoid(x, 2, 3, y); }},
      {Activation::identity, {}, [](In x, Out y) { identity(x, y); }},
      {Activation::leaky_relu, {2, 0}, [](In x, Out y) { leaky_relu(x, 2, y); }},
      {Activation::linear, {2, 3}, [](In x, Out y) { linear(x, 2, 3, y); }},
      {Activation::parametric_softplus,
       {2, 3},
       [](In x, Out y) { parametric_softplus(x, 2, 3, y); }},
      {Activation::relu, {}, [](In x, Out y) { relu(x, y); }},
      {Activation::scaled_elu, {2, 3}, [](In x, Out y) { scaled_elu(x, 2, 3, y); }},
      {Activation::scaled_tanh, {2, 3}, [](In x, Out y) { scaled_tanh(x, 2, 3, y); }},
      {Activation::sigmoid, {}, [](In x, Out y) { sigmoid(x, y); }},
      {Activation::softplus, {2, 0}, [](In x, Out y) { softplus(x, 2, y); }},
      {Activation::softsign, {}, [](In x, Out y) { softsign(x, y); }},
      {Activation::tanh, {}, [](In x, Out y) { tanh(x, y); }},
      {Activation::thresholded_relu, {2, 0}, [](In x, Out y) { thresholded_relu(x, 2, y); }},
      {Activation::shrink, {2, 3}, [](In x, Out y) { shrink(x, 2, 3, y); }},
      {Activation::gelu, {}, [](In x, Out y) { gelu(x, y); }},
  };
  ASSERT_EQ(std::size(cases), kFusableActivationCount);
  const std::array<float, 6> x = {-4, -1.5f, -0.1f, 0.1f, 1.5f, 4};
  const ConstTensorView input(x.data(), DataType::float32, 1, {6}, {4});
  const auto result = [](const auto& call) {
    std::array<float, 6> y = {};
    call(TensorView(y.data(), DataType::float32, 1, {6}, {4}));
    return y;
  };
  for (const Case& c : cases) {
    EXPECT_EQ(result([&](Out y) { c.function(input, y); }),
              result([&](Out y) { activation(c.type, input, c.parameters, y); }))
        << info(c.type).name;
  }
}

}  // namespace
}  // namespace dmlops
