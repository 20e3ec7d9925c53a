// The activations, their parameters, and fused activations.
#pragma once

#include "dmlops/export.h"
#include "dmlops/operator_types.hpp"

namespace dmlops {

/// The FLOAT fields of the DirectML struct, in its order.
struct ActivationParameters {
  float alpha = 0;  ///< first field, such as Alpha or Steepness
  float beta = 0;   ///< second field, such as Beta or Threshold
};

/// The name and the parameters of an activation.
struct ActivationInfo {
  const char* name;                ///< name of the function: "leaky_relu"
  int parameter_count;             ///< 0 to 2
  const char* parameter_names[2];  ///< of which `parameter_count` are set
  ActivationParameters defaults;   ///< the defaults in DirectML's documentation
};
/// Returns the name and the parameters of an activation.
/// \throws Error for a value that is not an enumerator
DMLOPS_API const ActivationInfo& info(Activation type);

/// An activation that a normalization applies to its result.
struct FusedActivation {
  FusedActivation() = default;
  /// An activation with its default parameters.
  FusedActivation(Activation type_) : type(type_), parameters(info(type_).defaults) {}
  /// An activation with the given parameters.
  FusedActivation(Activation type_, const ActivationParameters& parameters_)
      : type(type_), parameters(parameters_) {}

  Activation type = Activation::identity;  ///< the activation
  ActivationParameters parameters;         ///< its parameters
};

}  // namespace dmlops
