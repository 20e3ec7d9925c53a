// The activations, their parameters, and those that batch normalization applies to its result.
#pragma once

#include "dmlops/export.h"
#include "dmlops/operator_types.hpp"

namespace dmlops {

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
