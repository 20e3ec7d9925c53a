// Names, parameters and defaults of the activations.
#include <string>

#include "dmlops/activation.hpp"
#include "operators/check.hpp"

namespace dmlops {

void require_known(const char* where, Activation type) {
  const auto number = static_cast<std::uint32_t>(type);
  if (number < kActivationCount) return;
  throw Error(std::string(where) + "type is " + std::to_string(number) +
              "; it must be one of the " + std::to_string(kActivationCount) +
              " activations, 0 to " + std::to_string(kActivationCount - 1));
}

const ActivationInfo& info(Activation type) {
  require_known("info: ", type);
  static constexpr ActivationInfo kInfos[kActivationCount] = {
      {"elu", 1, {"alpha"}, {1.0f}},
      {"celu", 1, {"alpha"}, {1.0f}},
      {"hard_sigmoid", 2, {"alpha", "beta"}, {0.2f, 0.5f}},
      {"identity", 0, {}, {}},
      {"leaky_relu", 1, {"alpha"}, {0.01f}},
      {"linear", 2, {"alpha", "beta"}, {1.0f, 0.0f}},
      {"parametric_softplus", 2, {"alpha", "beta"}, {1.0f, 1.0f}},
      {"relu", 0, {}, {}},
      {"scaled_elu",
       2,
       {"alpha", "gamma"},
       {1.67326319217681884765625f, 1.05070102214813232421875f}},
      {"scaled_tanh", 2, {"alpha", "beta"}, {1.0f, 0.5f}},
      {"sigmoid", 0, {}, {}},
      {"softplus", 1, {"steepness"}, {1.0f}},
      {"softsign", 0, {}, {}},
      {"tanh", 0, {}, {}},
      {"thresholded_relu", 1, {"alpha"}, {1.0f}},
      {"shrink", 2, {"bias", "threshold"}, {0.0f, 0.5f}},
      {"gelu", 0, {}, {}},
  };
  return kInfos[static_cast<std::size_t>(type)];
}

}  // namespace dmlops
