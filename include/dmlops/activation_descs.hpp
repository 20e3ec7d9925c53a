// DirectML's descriptors of the activations, one struct each, standalone or fused into batch
// normalization.
#pragma once

#include "dmlops/descriptors.hpp"

namespace dmlops {

/// Base of the activations' descriptors. Both tensors are absent if the activation is fused.
struct ActivationDesc {
  std::optional<BufferTensorDesc> input_tensor;   ///< the input
  std::optional<BufferTensorDesc> output_tensor;  ///< of the same data type and sizes

 protected:
  /// The general descriptor with these numbers.
  OperatorDesc with(OperatorType type, float first = 0, float second = 0) const {
    OperatorDesc desc;
    desc.type = type;
    desc.tensors[0] = input_tensor;
    desc.tensors[1] = output_tensor;
    desc.numbers = {first, second};
    return desc;
  }
};

/// DML_ACTIVATION_ELU_OPERATOR_DESC: x where x >= 0, otherwise alpha * (exp(x) - 1).
struct ActivationEluOperatorDesc : ActivationDesc {
  float alpha = 1.0f;  ///< the limit for very negative x, negated

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_elu, alpha);
  }
};

/// DML_ACTIVATION_CELU_OPERATOR_DESC: max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).
struct ActivationCeluOperatorDesc : ActivationDesc {
  float alpha = 1.0f;  ///< the limit for very negative x, negated

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_celu, alpha);
  }
};

/// DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC: max(0, min(alpha * x + beta, 1)).
struct ActivationHardSigmoidOperatorDesc : ActivationDesc {
  float alpha = 0.2f;  ///< the slope
  float beta = 0.5f;   ///< the result at 0

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_hard_sigmoid, alpha, beta);
  }
};

/// DML_ACTIVATION_IDENTITY_OPERATOR_DESC: x.
struct ActivationIdentityOperatorDesc : ActivationDesc {
  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_identity);
  }
};

/// DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC: x where x >= 0, otherwise alpha * x.
struct ActivationLeakyReluOperatorDesc : ActivationDesc {
  float alpha = 0.01f;  ///< the slope below 0

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_leaky_relu, alpha);
  }
};

/// DML_ACTIVATION_LINEAR_OPERATOR_DESC: alpha * x + beta.
struct ActivationLinearOperatorDesc : ActivationDesc {
  float alpha = 1.0f;  ///< the slope
  float beta = 0.0f;   ///< the result at 0

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_linear, alpha, beta);
  }
};

/// DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC: alpha * ln(1 + exp(beta * x)).
struct ActivationParametricSoftplusOperatorDesc : ActivationDesc {
  float alpha = 1.0f;  ///< the factor outside
  float beta = 1.0f;   ///< the factor inside

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_parametric_softplus, alpha, beta);
  }
};

/// DML_ACTIVATION_RELU_OPERATOR_DESC: max(0, x).
struct ActivationReluOperatorDesc : ActivationDesc {
  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_relu);
  }
};

/// DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC: gamma * x where x > 0, otherwise gamma * alpha *
/// (exp(x) - 1).
struct ActivationScaledEluOperatorDesc : ActivationDesc {
  float alpha = 1.67326319217681884765625f;  ///< the limit for very negative x, negated, over gamma
  float gamma = 1.05070102214813232421875f;  ///< the factor of the result

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_scaled_elu, alpha, gamma);
  }
};

/// DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC: alpha * tanh(beta * x).
struct ActivationScaledTanhOperatorDesc : ActivationDesc {
  float alpha = 1.0f;  ///< the factor outside
  float beta = 0.5f;   ///< the factor inside

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_scaled_tanh, alpha, beta);
  }
};

/// DML_ACTIVATION_SIGMOID_OPERATOR_DESC: 1 / (1 + exp(-x)).
struct ActivationSigmoidOperatorDesc : ActivationDesc {
  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_sigmoid);
  }
};

/// DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC: ln(1 + exp(steepness * x)) / steepness.
struct ActivationSoftplusOperatorDesc : ActivationDesc {
  float steepness = 1.0f;  ///< at least 1 below level 6.4

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_softplus, steepness);
  }
};

/// DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC: x / (1 + |x|).
struct ActivationSoftsignOperatorDesc : ActivationDesc {
  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_softsign);
  }
};

/// DML_ACTIVATION_TANH_OPERATOR_DESC: the hyperbolic tangent.
struct ActivationTanhOperatorDesc : ActivationDesc {
  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_tanh);
  }
};

/// DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC: x where x > alpha, otherwise 0.
struct ActivationThresholdedReluOperatorDesc : ActivationDesc {
  float alpha = 1.0f;  ///< x <= alpha becomes 0

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_thresholded_relu, alpha);
  }
};

/// DML_ACTIVATION_SHRINK_OPERATOR_DESC: x - bias where x > threshold, x + bias where x <
/// -threshold, otherwise 0.
struct ActivationShrinkOperatorDesc : ActivationDesc {
  float bias = 0.0f;       ///< subtracted from |x|
  float threshold = 0.5f;  ///< |x| <= threshold becomes 0

  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_shrink, bias, threshold);
  }
};

/// DML_ACTIVATION_GELU_OPERATOR_DESC: x * (1 + erf(x / sqrt(2))) / 2.
struct ActivationGeluOperatorDesc : ActivationDesc {
  operator OperatorDesc() const {  ///< as any operator's
    return with(OperatorType::activation_gelu);
  }
};

}  // namespace dmlops
