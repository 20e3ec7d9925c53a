// The operators for callers in the default floating-point state. Entering the state takes as long
// as the rest of a small call, so each call enters it once.
#pragma once

#include "core/float_environment.hpp"
#include "dmlops/operators.hpp"

namespace dmlops {

void clip(const FloatEnvironment& environment, const ConstTensorView& input, const Scalar& min,
          const Scalar& max, const std::optional<ScaleBias>& scale_bias, const TensorView& output);
void clip_grad(const FloatEnvironment& environment, const ConstTensorView& input,
               const ConstTensorView& input_gradient, const Scalar& min, const Scalar& max,
               const TensorView& output);
void relu_grad(const FloatEnvironment& environment, const ConstTensorView& input,
               const ConstTensorView& input_gradient, const TensorView& output);
void parameterized_relu(const FloatEnvironment& environment, const ConstTensorView& input,
                        const ConstTensorView& slope, const TensorView& output);
void activation(const FloatEnvironment& environment, Activation type, const ConstTensorView& input,
                const ActivationParameters& parameters, const TensorView& output);
void batch_normalization(const FloatEnvironment& environment,
                         const BatchNormalizationInputs& inputs, float epsilon,
                         const std::optional<FusedActivation>& fused_activation,
                         const TensorView& output);
void log_softmax(const FloatEnvironment& environment, const ConstTensorView& input,
                 const std::int64_t* axes, std::size_t axis_count, const TensorView& output);
void softmax(const FloatEnvironment& environment, const ConstTensorView& input,
             const std::int64_t* axes, std::size_t axis_count, const TensorView& output);
void hardmax(const FloatEnvironment& environment, const ConstTensorView& input,
             const std::int64_t* axes, std::size_t axis_count, const TensorView& output);

}  // namespace dmlops
