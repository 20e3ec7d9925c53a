// The activations as functions, with the names, parameters and defaults that they have in Python.
// Each calls `activation` from operators.hpp, and follows its rules. hard_sigmoid is in
// operators.hpp.
#pragma once

#include "dmlops/operators.hpp"

namespace dmlops {

/// x where x >= 0, otherwise alpha * (exp(x) - 1)
inline void elu(const ConstTensorView& input, float alpha, const TensorView& output) {
  activation(Activation::elu, input, {alpha, 0}, output);
}
/// With alpha = 1.
inline void elu(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::elu, input, output);
}
/// max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
inline void celu(const ConstTensorView& input, float alpha, const TensorView& output) {
  activation(Activation::celu, input, {alpha, 0}, output);
}
/// With alpha = 1.
inline void celu(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::celu, input, output);
}
/// x
inline void identity(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::identity, input, {}, output);
}
/// x where x >= 0, otherwise alpha * x
inline void leaky_relu(const ConstTensorView& input, float alpha, const TensorView& output) {
  activation(Activation::leaky_relu, input, {alpha, 0}, output);
}
/// With alpha = 0.01.
inline void leaky_relu(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::leaky_relu, input, output);
}
/// alpha * x + beta
inline void linear(const ConstTensorView& input, float alpha, float beta,
                   const TensorView& output) {
  activation(Activation::linear, input, {alpha, beta}, output);
}
/// With alpha = 1 and beta = 0.
inline void linear(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::linear, input, output);
}
/// alpha * ln(1 + exp(beta * x))
inline void parametric_softplus(const ConstTensorView& input, float alpha, float beta,
                                const TensorView& output) {
  activation(Activation::parametric_softplus, input, {alpha, beta}, output);
}
/// With alpha = 1 and beta = 1.
inline void parametric_softplus(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::parametric_softplus, input, output);
}
/// max(0, x)
inline void relu(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::relu, input, {}, output);
}
/// gamma * x where x > 0, otherwise gamma * alpha * (exp(x) - 1)
inline void scaled_elu(const ConstTensorView& input, float alpha, float gamma,
                       const TensorView& output) {
  activation(Activation::scaled_elu, input, {alpha, gamma}, output);
}
/// With alpha = 1.6732632 and gamma = 1.050701.
inline void scaled_elu(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::scaled_elu, input, output);
}
/// alpha * tanh(beta * x)
inline void scaled_tanh(const ConstTensorView& input, float alpha, float beta,
                        const TensorView& output) {
  activation(Activation::scaled_tanh, input, {alpha, beta}, output);
}
/// With alpha = 1 and beta = 0.5.
inline void scaled_tanh(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::scaled_tanh, input, output);
}
/// 1 / (1 + exp(-x))
inline void sigmoid(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::sigmoid, input, {}, output);
}
/// ln(1 + exp(steepness * x)) / steepness
inline void softplus(const ConstTensorView& input, float steepness, const TensorView& output) {
  activation(Activation::softplus, input, {steepness, 0}, output);
}
/// With steepness = 1.
inline void softplus(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::softplus, input, output);
}
/// x / (1 + |x|)
inline void softsign(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::softsign, input, {}, output);
}
/// The hyperbolic tangent.
inline void tanh(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::tanh, input, {}, output);
}
/// x where x > alpha, otherwise 0
inline void thresholded_relu(const ConstTensorView& input, float alpha, const TensorView& output) {
  activation(Activation::thresholded_relu, input, {alpha, 0}, output);
}
/// With alpha = 1.
inline void thresholded_relu(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::thresholded_relu, input, output);
}
/// x - bias where x > threshold, x + bias where x < -threshold, otherwise 0
inline void shrink(const ConstTensorView& input, float bias, float threshold,
                   const TensorView& output) {
  activation(Activation::shrink, input, {bias, threshold}, output);
}
/// With bias = 0 and threshold = 0.5.
inline void shrink(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::shrink, input, output);
}
/// x * (1 + erf(x / sqrt(2))) / 2
inline void gelu(const ConstTensorView& input, const TensorView& output) {
  activation(Activation::gelu, input, {}, output);
}

}  // namespace dmlops
