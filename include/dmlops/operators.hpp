// The operators on tensor views. Inputs may have any strides; elements of an output must not
// overlap one another.
//
// The output must have the input's data type and sizes. The output may be the input itself (the
// same memory and strides); any other overlap gives the same result as separate memory. Every rule
// is checked before anything is written. An unsupported data type throws TypeError, any other
// invalid argument Error.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include "dmlops/activation.hpp"
#include "dmlops/tensor.hpp"

namespace dmlops {

/// DML_SCALE_BIAS: x * scale + bias.
struct ScaleBias {
  float scale = 1;  ///< the factor
  float bias = 0;   ///< the addend
};

/// A number of any type, kept exactly: a bound of clip.
struct Scalar {
  Scalar() = default;  ///< no number: no bound
  /// A floating-point number, float16, or an integer.
  template <class T, std::enable_if_t<(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) ||
                                          std::is_same_v<T, float16>,
                                      int> = 0>
  Scalar(T value) {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      type = DataType::int64;
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): int8 keeps its sign
      integer = static_cast<std::int64_t>(value);
    } else if constexpr (std::is_integral_v<T>) {
      type = DataType::uint64;
      natural = static_cast<std::uint64_t>(value);
    } else {
      type = DataType::float64;
      floating = static_cast<double>(value);
    }
  }

  DataType type = DataType::unknown;  ///< tells the valid member; unknown: none
  union {
    double floating;           ///< valid if `type` is float64
    std::int64_t integer = 0;  ///< valid if `type` is int64
    std::uint64_t natural;     ///< valid if `type` is uint64
  };
};

/// max(min, min(x, max)) for x, or for x * scale + bias. All data types except float64 and the
/// 4-bit ones.
DMLOPS_API void clip(const ConstTensorView& input, const Scalar& min, const Scalar& max,
                     const std::optional<ScaleBias>& scale_bias, const TensorView& output);
/// clip without scale and bias.
inline void clip(const ConstTensorView& input, const Scalar& min, const Scalar& max,
                 const TensorView& output) {
  clip(input, min, max, std::nullopt, output);
}

/// The gradient of clip: input_gradient where min < x < max, and 0 elsewhere, at the bounds too.
/// NaN where x is NaN. The types of clip; input_gradient has the input's sizes.
DMLOPS_API void clip_grad(const ConstTensorView& input, const ConstTensorView& input_gradient,
                          const Scalar& min, const Scalar& max, const TensorView& output);

/// The gradient of relu: input_gradient where x > 0, and 0 elsewhere. NaN where x is NaN. float32,
/// float16, and int8 to int32; input_gradient has the input's sizes.
DMLOPS_API void relu_grad(const ConstTensorView& input, const ConstTensorView& input_gradient,
                          const TensorView& output);

/// x >= 0 ? x : slope * x. float32, float16, and int8 to int32, whose products saturate. The slope
/// has the input's rank, each size 1 or the input's.
DMLOPS_API void parameterized_relu(const ConstTensorView& input, const ConstTensorView& slope,
                                   const TensorView& output);

/// Applies an activation to float32 or float16. relu also takes int8 to int32; shrink takes int8 to
/// int32 and uint8 to uint32, computed in double, truncated toward zero and saturated.
DMLOPS_API void activation(Activation type, const ConstTensorView& input,
                           const ActivationParameters& parameters, const TensorView& output);
/// Applies an activation with its default parameters.
inline void activation(Activation type, const ConstTensorView& input, const TensorView& output) {
  activation(type, input, info(type).defaults, output);
}

/// The inputs of batch normalization. The four parameters have the input's rank, each size 1 or the
/// input's.
struct BatchNormalizationInputs {
  ConstTensorView input;     ///< x
  ConstTensorView mean;      ///< mean of x
  ConstTensorView variance;  ///< variance of x
  ConstTensorView scale;     ///< factor of the normalized x
  ConstTensorView bias;      ///< addend
};
/// scale * (x - mean) / sqrt(variance + epsilon) + bias, then the activation if there is one.
DMLOPS_API void batch_normalization(const BatchNormalizationInputs& inputs, float epsilon,
                                    const std::optional<FusedActivation>& fused_activation,
                                    const TensorView& output);
/// batch_normalization without an activation.
inline void batch_normalization(const BatchNormalizationInputs& inputs, float epsilon,
                                const TensorView& output) {
  batch_normalization(inputs, epsilon, std::nullopt, output);
}
/// batch_normalization with epsilon = 1e-5 and without an activation.
inline void batch_normalization(const BatchNormalizationInputs& inputs, const TensorView& output) {
  batch_normalization(inputs, 1e-5f, output);
}

/// (x - max) - log(sum(exp(x - max))), maximum and sum over the listed axes together; a negative
/// axis counts from the end.
DMLOPS_API void log_softmax(const ConstTensorView& input, const std::int64_t* axes,
                            std::size_t axis_count, const TensorView& output);
/// log_softmax with the axes in braces: `log_softmax(input, {0, 2}, output)`.
inline void log_softmax(const ConstTensorView& input, const IntegerList& axes,
                        const TensorView& output) {
  log_softmax(input, axes.values().data(), static_cast<std::size_t>(axes.count()), output);
}
/// log_softmax over the last axis.
inline void log_softmax(const ConstTensorView& input, const TensorView& output) {
  log_softmax(input, -1, output);
}

/// exp(x - max) / sum(exp(x - max)), maximum and sum over the listed axes together; a negative
/// axis counts from the end.
DMLOPS_API void softmax(const ConstTensorView& input, const std::int64_t* axes,
                        std::size_t axis_count, const TensorView& output);
/// softmax with the axes in braces: `softmax(input, {0, 2}, output)`.
inline void softmax(const ConstTensorView& input, const IntegerList& axes,
                    const TensorView& output) {
  softmax(input, axes.values().data(), static_cast<std::size_t>(axes.count()), output);
}
/// softmax over the last axis.
inline void softmax(const ConstTensorView& input, const TensorView& output) {
  softmax(input, -1, output);
}

/// 1 at the first maximum over the listed axes together, in row-major order, and 0 elsewhere. The
/// first NaN counts as the maximum.
DMLOPS_API void hardmax(const ConstTensorView& input, const std::int64_t* axes,
                        std::size_t axis_count, const TensorView& output);
/// hardmax with the axes in braces: `hardmax(input, {0, 2}, output)`.
inline void hardmax(const ConstTensorView& input, const IntegerList& axes,
                    const TensorView& output) {
  hardmax(input, axes.values().data(), static_cast<std::size_t>(axes.count()), output);
}
/// hardmax over the last axis.
inline void hardmax(const ConstTensorView& input, const TensorView& output) {
  hardmax(input, -1, output);
}

/// The options of mean-variance normalization.
struct MeanVarianceNormalizationOptions {
  bool use_mean = true;      ///< false: the mean counts as 0, in the variance too
  bool use_variance = true;  ///< false: no division by the deviation
  float epsilon = 1e-5f;     ///< added to the variance
  std::optional<FusedActivation> fused_activation;  ///< applied to the result
};
/// scale * (x - mean) / sqrt(variance + epsilon) + bias, with the mean and the population variance
/// over the listed axes together; without axes, nothing is reduced. Covers layer, instance, group
/// and RMS normalization. Scale and bias have the input's rank, each size 1 or the input's; they
/// default to 1 and 0.
DMLOPS_API void mean_variance_normalization(const ConstTensorView& input,
                                            const std::optional<ConstTensorView>& scale,
                                            const std::optional<ConstTensorView>& bias,
                                            const std::int64_t* axes, std::size_t axis_count,
                                            const MeanVarianceNormalizationOptions& options,
                                            const TensorView& output);
/// mean_variance_normalization with the axes in braces:
/// `mean_variance_normalization(input, scale, bias, {2, 3}, options, output)`.
inline void mean_variance_normalization(const ConstTensorView& input,
                                        const std::optional<ConstTensorView>& scale,
                                        const std::optional<ConstTensorView>& bias,
                                        const IntegerList& axes,
                                        const MeanVarianceNormalizationOptions& options,
                                        const TensorView& output) {
  mean_variance_normalization(input, scale, bias, axes.values().data(),
                              static_cast<std::size_t>(axes.count()), options, output);
}
/// mean_variance_normalization without scale and bias, with the default options:
/// `mean_variance_normalization(input, {2, 3}, output)`.
inline void mean_variance_normalization(const ConstTensorView& input, const IntegerList& axes,
                                        const TensorView& output) {
  mean_variance_normalization(input, std::nullopt, std::nullopt, axes, {}, output);
}

/// The inputs of batch normalization with the statistics of the input. Scale and bias have the
/// input's rank and the same sizes, each 1 or the input's.
struct BatchNormalizationTrainingInputs {
  ConstTensorView input;                     ///< x
  ConstTensorView scale;                     ///< factor of the normalized x
  ConstTensorView bias;                      ///< addend
  std::optional<ConstTensorView> fused_add;  ///< of the input's sizes: added before the activation
};
/// The outputs of batch_normalization_training.
struct BatchNormalizationTrainingOutputs {
  TensorView output;    ///< of the input's sizes
  TensorView mean;      ///< mean of x, of the scale's sizes
  TensorView variance;  ///< population variance, of the scale's sizes
};
/// scale * (x - mean) / sqrt(variance + epsilon) + bias + fused_add, then the activation, with the
/// mean and the variance over the axes along which scale has size 1.
DMLOPS_API void batch_normalization_training(const BatchNormalizationTrainingInputs& inputs,
                                             float epsilon,
                                             const std::optional<FusedActivation>& fused_activation,
                                             const BatchNormalizationTrainingOutputs& outputs);

/// The inputs of batch normalization's gradients. Mean, variance and scale have the input's rank
/// and the same sizes, each 1 or the input's.
struct BatchNormalizationGradientInputs {
  ConstTensorView input;           ///< x
  ConstTensorView input_gradient;  ///< the gradient of the normalization's output
  ConstTensorView mean;            ///< mean of x
  ConstTensorView variance;        ///< variance of x
  ConstTensorView scale;           ///< factor of the normalized x
};
/// The outputs of batch normalization's gradients.
struct BatchNormalizationGradients {
  TensorView gradient;        ///< gradient of x
  TensorView scale_gradient;  ///< gradient of the scale, of the scale's sizes
  TensorView bias_gradient;   ///< gradient of the bias, of the scale's sizes
};
/// The gradients of batch normalization with constant mean and variance.
DMLOPS_API void batch_normalization_grad(const BatchNormalizationGradientInputs& inputs,
                                         float epsilon, const BatchNormalizationGradients& outputs);
/// The gradients of batch normalization with the mean and the variance of the input.
DMLOPS_API void batch_normalization_training_grad(const BatchNormalizationGradientInputs& inputs,
                                                  float epsilon,
                                                  const BatchNormalizationGradients& outputs);

}  // namespace dmlops
