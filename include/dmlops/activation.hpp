// The activations that batch normalization can apply to its result, and their parameters.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dmlops {

enum class Activation : std::uint32_t {
  elu,                  // alpha
  celu,                 // alpha
  hard_sigmoid,         // alpha, beta
  identity,             //
  leaky_relu,           // alpha
  linear,               // alpha, beta
  parametric_softplus,  // alpha, beta
  relu,                 //
  scaled_elu,           // alpha, gamma
  scaled_tanh,          // alpha, beta
  sigmoid,              //
  softplus,             // steepness
  softsign,             //
  tanh,                 //
  thresholded_relu,     // alpha
  shrink,               // bias, threshold
  gelu,                 //
};
constexpr std::size_t kActivationCount = 17;

// The FLOAT fields of the DirectML struct, in its order: `alpha` is the first, whatever its name,
// `beta` the second.
struct ActivationParameters {
  float alpha = 0;
  float beta = 0;
};

// What an activation is called, and what its parameters are.
struct ActivationInfo {
  const char* name;  // as the function: "leaky_relu"
  int parameter_count;
  const char* parameter_names[2];
  ActivationParameters defaults;
};
const ActivationInfo& info(Activation type);

struct FusedActivation {
  Activation type = Activation::identity;
  ActivationParameters parameters;
};

}  // namespace dmlops
