// clip: converts the bounds to the tensor's type, and runs the kernel.
#include <limits>

#include "core/float16.hpp"
#include "core/float_environment.hpp"
#include "core/isa.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/overlap.hpp"
#include "operators/plan.hpp"
#include "operators/scalars.hpp"
#include "traversal/plain.hpp"

namespace dmlops {
namespace {

constexpr const char* kClip = "clip";

// Converts a bound to T; `none` is the bound if there is none. Integers saturate.
template <class T>
std::uint64_t bound_bits(const Scalar& bound, const char* argument, T none) {
  if (!is_given(bound)) return to_bits(none);
  if constexpr (std::is_same_v<T, float>) {
    return to_bits(value_of<float>(bound));  // rounded once
  } else if constexpr (std::is_same_v<T, float16>) {
    return to_bits(to_float16(value_of<double>(bound)));
  } else {
    using Limits = std::numeric_limits<T>;
    require_whole(kClip, argument, bound);
    const int where = side<T>(bound);
    return to_bits(where < 0 ? Limits::min() : where > 0 ? Limits::max() : value_of<T>(bound));
  }
}

template <class T>
void set_bounds(ClipParameters& parameters, const Scalar& min, const Scalar& max, T lowest,
                T highest) {
  parameters.min_bits = bound_bits<T>(min, "min", lowest);
  parameters.max_bits = bound_bits<T>(max, "max", highest);
}

void set_bounds(ClipParameters& parameters, DataType type, const Scalar& min, const Scalar& max) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  require_type(kClip, type, kNumbers64);
  if (type == DataType::float32)
    return set_bounds<float>(parameters, min, max, -infinity, infinity);
  if (type == DataType::float16)
    return set_bounds<float16>(parameters, min, max, float16::from_bits(0xfc00),
                               float16::from_bits(0x7c00));
  visit_integer(type, [&](auto integer) {
    using Limits = std::numeric_limits<decltype(integer)>;
    set_bounds(parameters, min, max, Limits::min(), Limits::max());
  });
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
