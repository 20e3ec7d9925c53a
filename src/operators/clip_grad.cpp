// clip_grad and relu_grad: converts the bounds to the interval in which the gradient passes, and
// runs the kernel.
#include <limits>
#include <type_traits>

#include "core/float_environment.hpp"
#include "core/isa.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/overlap.hpp"
#include "operators/plan.hpp"
#include "operators/scalars.hpp"

namespace dmlops {
namespace {

constexpr const char* kClipGrad = "clip_grad";
constexpr const char* kReluGrad = "relu_grad";

// Returns the interval of the integers from `first` to `last`, whose low bits kernels use.
template <class T>
ClipGradParameters interval(T first, T last) {
  using U = std::make_unsigned_t<T>;
  const std::uint64_t begin = static_cast<U>(first), end = static_cast<U>(last);
  return {begin, end - begin, first > last};
}
constexpr ClipGradParameters kNowhere = {0, 0, true};

// Returns the integers strictly between the bounds, which may lie outside the range of T.
template <class T>
ClipGradParameters between(const Scalar& min, const Scalar& max) {
  T first = std::numeric_limits<T>::min(), last = std::numeric_limits<T>::max();
  const T lowest = first, highest = last;
  bool empty = false;
  if (is_given(min)) {
    require_whole(kClipGrad, "min", min);
    const int where = side<T>(min);
    empty = where > 0 || (where == 0 && value_of<T>(min) == highest);
    if (where == 0 && !empty) first = static_cast<T>(value_of<T>(min) + 1);
  }
  if (is_given(max)) {
    require_whole(kClipGrad, "max", max);
    const int where = side<T>(max);
    empty = empty || where < 0 || (where == 0 && value_of<T>(max) == lowest);
    if (where == 0 && !empty) last = static_cast<T>(value_of<T>(max) - 1);
  }
  return empty ? kNowhere : interval(first, last);
}

// Converts the bits of a float as large as I to an integer, in the order of the floats.
template <class I>
std::int64_t key(std::uint64_t bits) {
  const auto value = std::int64_t{static_cast<I>(bits)};
  return value >= 0 ? value : value ^ std::int64_t{std::numeric_limits<I>::max()};
}

// Returns the floats strictly between the bounds, which are rounded to the tensor's type.
template <class I>
ClipGradParameters between_floats(DataType type, const Scalar& min, const Scalar& max) {
  const ClipParameters bounds = clip_parameters(type, min, max, std::nullopt);
  std::int64_t first = key<I>(bounds.min_bits), last = key<I>(bounds.max_bits);
  // Both zeros are equal to a bound of 0.
  if (is_given(min)) first = first == -1 ? 1 : first + 1;
  if (is_given(max)) last = last == 0 ? -2 : last - 1;
  return interval(first, last);
}

// Checks the tensors, and runs the kernel.
void run_checked(const char* op, const ConstTensorView& input, const ConstTensorView& gradient,
                 const ClipGradParameters& parameters, const TensorView& output) {
  require_input(op, input);
  require_like(op, "input_gradient", gradient, input, "input");
  require_output(op, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable[] = {{input, output}, {gradient, output}};
  plan_clip_grad(readable[0].view(), readable[1].view(), parameters, output).run();
}

}  // namespace

ClipGradParameters clip_grad_parameters(DataType type, const Scalar& min, const Scalar& max) {
  const FloatEnvironment environment;
  if (type == DataType::float32) return between_floats<std::int32_t>(type, min, max);
  if (type == DataType::float16) return between_floats<std::int16_t>(type, min, max);
  return visit_integer(type, [&](auto integer) { return between<decltype(integer)>(min, max); });
}

ClipGradParameters relu_grad_parameters(DataType type) {
  return clip_grad_parameters(type, Scalar(std::int64_t{0}), {});
}

OperatorPlan plan_clip_grad(const ConstTensorView& input, const ConstTensorView& gradient,
                            const ClipGradParameters& parameters, const TensorView& output) {
  ConstTensorView inputs[] = {input, gradient};
  return plan_elementwise(inputs, kernels().clip_grad[static_cast<std::size_t>(input.type)],
                          parameters, output);
}

void clip_grad(const ConstTensorView& input, const ConstTensorView& gradient, const Scalar& min,
               const Scalar& max, const TensorView& output) {
  require_type(kClipGrad, input.type, kNumbers64);
  run_checked(kClipGrad, input, gradient, clip_grad_parameters(input.type, min, max), output);
}

void relu_grad(const ConstTensorView& input, const ConstTensorView& gradient,
               const TensorView& output) {
  require_type(kReluGrad, input.type, kSigned32);
  run_checked(kReluGrad, input, gradient, relu_grad_parameters(input.type), output);
}

}  // namespace dmlops
