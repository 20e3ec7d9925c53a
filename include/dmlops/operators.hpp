// The operators on tensor views. Inputs may have any strides; an output's elements must not overlap
// one another.
//
// The output must have the input's data type and sizes. It may be the input itself (the same memory
// and strides); any other overlap gives the result that there would be without it. Every rule is
// checked before anything is written.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "dmlops/activation.hpp"
#include "dmlops/tensor.hpp"

namespace dmlops {

// A data type that an operator does not take. Wrong sizes and values are std::invalid_argument.
class TypeError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// DML_SCALE_BIAS: x * scale + bias.
struct ScaleBias {
  float scale = 1;
  float bias = 0;
};

// A bound in a type wide enough for every tensor's; `unknown` stands for no bound.
struct Scalar {
  Scalar() = default;
  Scalar(double value) : type(DataType::float64), floating(value) {}
  Scalar(std::int64_t value) : type(DataType::int64), integer(value) {}
  Scalar(std::uint64_t value) : type(DataType::uint64), natural(value) {}

  DataType type = DataType::unknown;
  union {
    double floating;
    std::int64_t integer = 0;
    std::uint64_t natural;
  };
};

// max(min, min(x, max)) for x, or for x * scale + bias. All data types but float64 and the 4-bit
// ones.
void clip(const ConstTensorView& input, const Scalar& min, const Scalar& max,
          const std::optional<ScaleBias>& scale_bias, const TensorView& output);

// One of the activations; float32 and float16. relu also takes int8 to int32, shrink those and
// uint8 to uint32: computed in double, truncated toward zero and saturated.
void activation(Activation type, const ConstTensorView& input,
                const ActivationParameters& parameters, const TensorView& output);

// max(0, min(alpha * x + beta, 1))
void hard_sigmoid(const ConstTensorView& input, float alpha, float beta, const TensorView& output);

// scale * (x - mean) / sqrt(variance + epsilon) + bias, then the activation if there is one. The
// four parameters have the input's rank, each size 1 or the input's.
struct BatchNormalizationInputs {
  ConstTensorView input, mean, variance, scale, bias;
};
void batch_normalization(const BatchNormalizationInputs& inputs, float epsilon,
                         const std::optional<FusedActivation>& fused_activation,
                         const TensorView& output);

// (x - max) - log(sum(exp(x - max))), maximum and sum over the listed axes together; a negative
// axis counts from the end.
void log_softmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
                 const TensorView& output);

}  // namespace dmlops
