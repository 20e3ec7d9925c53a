// The activations that batch normalization can apply to its result, and their parameters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dmlops/export.h"

namespace dmlops {

/// The activations that can be fused, with the names of their parameters.
enum class Activation : std::uint32_t {
  elu,                  ///< alpha
  celu,                 ///< alpha
  hard_sigmoid,         ///< alpha, beta
  identity,             ///< no parameters
  leaky_relu,           ///< alpha
  linear,               ///< alpha, beta
  parametric_softplus,  ///< alpha, beta
  relu,                 ///< no parameters
  scaled_elu,           ///< alpha, gamma
  scaled_tanh,          ///< alpha, beta
  sigmoid,              ///< no parameters
  softplus,             ///< steepness
  softsign,             ///< no parameters
  tanh,                 ///< no parameters
  thresholded_relu,     ///< alpha
  shrink,               ///< bias, threshold
  gelu,                 ///< no parameters
};
constexpr std::size_t kActivationCount = 17;  ///< number of activations

/// The FLOAT fields of the DirectML struct, in its order.
struct ActivationParameters {
  float alpha = 0;  ///< the first, whatever its name
  float beta = 0;   ///< the second
};

/// The name and the parameters of an activation.
struct ActivationInfo {
  const char* name;                ///< that of the function: "leaky_relu"
  int parameter_count;             ///< 0 to 2
  const char* parameter_names[2];  ///< the first `parameter_count`
  ActivationParameters defaults;   ///< the defaults in DirectML's documentation
};
/// Returns the name and the parameters of an activation.
/// \throws Error for a value that is not an enumerator
DMLOPS_API const ActivationInfo& info(Activation type);

/// An activation that batch normalization applies to its result.
struct FusedActivation {
  FusedActivation() = default;
  /// An activation with its default parameters.
  FusedActivation(Activation type_) : type(type_), parameters(info(type_).defaults) {}
  /// An activation with these parameters.
  FusedActivation(Activation type_, const ActivationParameters& parameters_)
      : type(type_), parameters(parameters_) {}

  Activation type = Activation::identity;  ///< the activation
  ActivationParameters parameters;         ///< its parameters
};

}  // namespace dmlops
