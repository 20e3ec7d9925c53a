// clip: converts the bounds to the tensor's type, and runs the kernel.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/attributes.hpp"
#include "core/float16.hpp"
#include "core/float_environment.hpp"
#include "core/isa.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/plan.hpp"

namespace dmlops {
namespace {

constexpr const char* kClip = "clip";

[[noreturn]] DMLOPS_COLD void refuse_type(DataType type) {
  throw TypeError(std::string(kClip) + ": input has dtype " + name(type) + "; it takes " +
                  kNumbers64.text);
}

template <class T>
std::uint64_t to_bits(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// Converts a scalar to an integer of type T, saturating.
template <class T>
std::uint64_t integer_bound(const Scalar& bound, const char* argument, T none) {
  using Limits = std::numeric_limits<T>;
  switch (bound.type) {
    case DataType::int64:
      if (bound.integer < 0) {
        const bool below =
            !Limits::is_signed || bound.integer < static_cast<std::int64_t>(Limits::min());
        return to_bits(below ? Limits::min() : static_cast<T>(bound.integer));
      }
      return integer_bound<T>(Scalar(static_cast<std::uint64_t>(bound.integer)), argument, none);
    case DataType::uint64:
      return to_bits(bound.natural > static_cast<std::uint64_t>(Limits::max())
                         ? Limits::max()
                         : static_cast<T>(bound.natural));
    case DataType::float64: {
      const double value = bound.floating;
      if (std::isnan(value)) return to_bits(none);
      if (!std::isinf(value) && value != std::trunc(value)) refuse_fraction(kClip, argument, value);
      // 2^63 or 2^64, which unlike the largest integer are exact in double.
      if (value >= std::ldexp(1.0, Limits::digits)) return to_bits(Limits::max());
      return to_bits(value <= static_cast<double>(Limits::min()) ? Limits::min()
                                                                 : static_cast<T>(value));
    }
    default:
      return to_bits(none);
  }
}

double to_double(const Scalar& bound) {
  if (bound.type == DataType::int64) return static_cast<double>(bound.integer);
  return bound.type == DataType::uint64 ? static_cast<double>(bound.natural) : bound.floating;
}

template <class T>
std::uint64_t bound_bits(const Scalar& bound, const char* argument, T none) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, float16>) {
    if (bound.type == DataType::unknown || std::isnan(to_double(bound))) return to_bits(none);
    if constexpr (std::is_same_v<T, float>) {
      if (bound.type == DataType::int64)
        return to_bits(static_cast<float>(bound.integer));  // rounded once
      if (bound.type == DataType::uint64) return to_bits(static_cast<float>(bound.natural));
      return to_bits(static_cast<float>(bound.floating));
    } else {
      return to_bits(to_float16(to_double(bound)));
    }
  } else {
    return integer_bound<T>(bound, argument, none);
  }
}

template <class T>
void set_bounds(ClipParameters& parameters, const Scalar& min, const Scalar& max, T lowest,
                T highest) {
  parameters.min_bits = bound_bits<T>(min, "min", lowest);
  parameters.max_bits = bound_bits<T>(max, "max", highest);
}

template <class T>
void set_integer_bounds(ClipParameters& parameters, const Scalar& min, const Scalar& max) {
  set_bounds<T>(parameters, min, max, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
}

void set_bounds(ClipParameters& parameters, DataType type, const Scalar& min, const Scalar& max) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  switch (type) {
    case DataType::float32:
      return set_bounds<float>(parameters, min, max, -infinity, infinity);
    case DataType::float16:
      return set_bounds<float16>(parameters, min, max, float16::from_bits(0xfc00),
                                 float16::from_bits(0x7c00));
    case DataType::int8:
      return set_integer_bounds<std::int8_t>(parameters, min, max);
    case DataType::int16:
      return set_integer_bounds<std::int16_t>(parameters, min, max);
    case DataType::int32:
      return set_integer_bounds<std::int32_t>(parameters, min, max);
    case DataType::int64:
      return set_integer_bounds<std::int64_t>(parameters, min, max);
    case DataType::uint8:
      return set_integer_bounds<std::uint8_t>(parameters, min, max);
    case DataType::uint16:
      return set_integer_bounds<std::uint16_t>(parameters, min, max);
    case DataType::uint32:
      return set_integer_bounds<std::uint32_t>(parameters, min, max);
    case DataType::uint64:
      return set_integer_bounds<std::uint64_t>(parameters, min, max);
    default:
      refuse_type(type);
  }
}

RowKernel kernel_for(const ClipParameters& parameters, DataType type) {
  const bool scaled = parameters.scale != 1.0f || parameters.bias != 0.0f;
  const KernelTable& table = kernels();
  return (scaled ? table.clip_scaled : table.clip)[static_cast<std::size_t>(type)];
}

}  // namespace

ClipParameters clip_parameters(DataType type, const Scalar& min, const Scalar& max,
                               const std::optional<ScaleBias>& scale_bias) {
  ClipParameters parameters;
  set_bounds(parameters, type, min, max);
  if (scale_bias.has_value()) {
    parameters.scale = scale_bias->scale;
    parameters.bias = scale_bias->bias;
  }
  return parameters;
}

OperatorPlan plan_clip(const ConstTensorView& input, const ClipParameters& parameters,
                       const TensorView& output) {
  return {make_nest(output, &input, 1), kernel_for(parameters, input.type), parameters};
}

void clip(const ConstTensorView& input, const Scalar& min, const Scalar& max,
          const std::optional<ScaleBias>& scale_bias, const TensorView& output) {
  const FloatEnvironment environment;
  const ClipParameters parameters = clip_parameters(input.type, min, max, scale_bias);
  const RowKernel kernel = kernel_for(parameters, input.type);
  if (run_if_plain(input, output, kernel, &parameters)) return;
  require_input(kClip, input);
  require_output(kClip, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable(input, output);
  plan_clip(readable.view(), parameters, output).run();
}

}  // namespace dmlops
