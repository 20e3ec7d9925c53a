// The operators on tensor views. Inputs may have any strides; an output's elements must not overlap
// one another.
//
// The output must have the input's data type and sizes. It may be the input itself (the same memory
// and strides); any other overlap gives the result that there would be without it. Every rule is
// checked before anything is written. Wrong types are TypeError, wrong sizes and values
// std::invalid_argument.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "dmlops/activation.hpp"
#include "dmlops/tensor.hpp"

namespace dmlops {

/// A data type that an operator does not take. Wrong sizes and values are std::invalid_argument.
class DMLOPS_API TypeError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// DML_SCALE_BIAS: x * scale + bias.
struct ScaleBias {
  float scale = 1;  ///< the factor
  float bias = 0;   ///< the addend
};

/// A bound in a type wide enough for every tensor's.
struct Scalar {
  Scalar() = default;                                                      ///< no bound
  Scalar(double value) : type(DataType::float64), floating(value) {}       ///< `floating`
  Scalar(std::int64_t value) : type(DataType::int64), integer(value) {}    ///< `integer`
  Scalar(std::uint64_t value) : type(DataType::uint64), natural(value) {}  ///< `natural`

  DataType type = DataType::unknown;  ///< which of the following counts; unknown: none
  union {
    double floating;           ///< where `type` is float64
    std::int64_t integer = 0;  ///< where it is int64
    std::uint64_t natural;     ///< where it is uint64
  };
};

/// max(min, min(x, max)) for x, or for x * scale + bias. All data types but float64 and the 4-bit
/// ones.
DMLOPS_API void clip(const ConstTensorView& input, const Scalar& min, const Scalar& max,
                     const std::optional<ScaleBias>& scale_bias, const TensorView& output);

/// One of the activations; float32 and float16. relu also takes int8 to int32, shrink those and
/// uint8 to uint32: computed in double, truncated toward zero and saturated.
DMLOPS_API void activation(Activation type, const ConstTensorView& input,
                           const ActivationParameters& parameters, const TensorView& output);

/// max(0, min(alpha * x + beta, 1))
DMLOPS_API void hard_sigmoid(const ConstTensorView& input, float alpha, float beta,
                             const TensorView& output);

/// What batch normalization reads. The four parameters have the input's rank, each size 1 or the
/// input's.
struct BatchNormalizationInputs {
  ConstTensorView input;     ///< what is normalized
  ConstTensorView mean;      ///< subtracted from it
  ConstTensorView variance;  ///< it is divided by the root of this plus epsilon,
  ConstTensorView scale;     ///< multiplied by this,
  ConstTensorView bias;      ///< and this is added
};
/// scale * (x - mean) / sqrt(variance + epsilon) + bias, then the activation if there is one.
DMLOPS_API void batch_normalization(const BatchNormalizationInputs& inputs, float epsilon,
                                    const std::optional<FusedActivation>& fused_activation,
                                    const TensorView& output);

/// (x - max) - log(sum(exp(x - max))), maximum and sum over the listed axes together; a negative
/// axis counts from the end.
DMLOPS_API void log_softmax(const ConstTensorView& input, const std::int64_t* axes,
                            std::size_t axis_count, const TensorView& output);

}  // namespace dmlops
