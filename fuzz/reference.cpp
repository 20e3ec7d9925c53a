// The operators' definitions, one element at a time in double, and the error that each may have.
#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "activation_reference.hpp"
#include "core/float16.hpp"
#include "ranges.hpp"

namespace dmlops::fuzz {
namespace {

double ulp(double value, int digits, int min_exponent) {
  if (!std::isfinite(value)) return 0;
  const int exponent = value == 0 ? min_exponent : std::max(std::ilogb(value), min_exponent);
  return std::ldexp(1, exponent - digits);
}
double ulp32(double value) { return ulp(value, 23, -126); }
double ulp16(double value) { return ulp(value, 10, -14); }

}  // namespace

double arithmetic_error(double value, double ulps, DataType type, double of_float16) {
  return type == DataType::float16 ? of_float16 * ulp16(value) : ulps * ulp32(value);
}

Range around(double value, double error) { return {value - error, value + error}; }

namespace {

bool within(double actual, const Range& range, DataType type) {
  if (range.any) return true;
  if (std::isnan(range.low) || std::isnan(range.high)) return std::isnan(actual);
  const bool half = type == DataType::float16;
  const double low = half ? range.low - 0.5 * ulp16(range.low) : range.low;
  const double high = half ? range.high + 0.5 * ulp16(range.high) : range.high;
  // The smallest value that rounds to infinity: half an ulp above the largest finite number.
  const double overflow = half ? 65520.0 : 0x1.ffffffp127;
  if (std::isinf(actual)) return actual > 0 ? high >= overflow : low <= -overflow;
  if (std::isnan(actual)) return false;
  return low <= actual && actual <= high;
}

template <class T>
T bits_of(ScalarUnion scalar) {
  T value;
  std::memcpy(&value, &scalar.bits, sizeof value);
  return value;
}

struct Limits {
  __int128 low, high;
};

Limits limits(DataType type) {
  const int bits = static_cast<int>(8 * element_size(type));
  const bool is_signed = type == DataType::int8 || type == DataType::int16 ||
                         type == DataType::int32 || type == DataType::int64;
  const __int128 one = 1;
  return is_signed ? Limits{-(one << (bits - 1)), (one << (bits - 1)) - 1}
                   : Limits{0, (one << bits) - 1};
}

// Truncates and saturates; NaN becomes 0.
__int128 truncated(double value, DataType type) {
  const auto [low, high] = limits(type);
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(low)) return low;
  if (value >= static_cast<double>(high)) return high;
  return static_cast<__int128>(value);
}

__int128 integer_scalar(ScalarUnion scalar, DataType type) {
  const auto bits = static_cast<int>(8 * element_size(type));
  const auto low = static_cast<unsigned __int128>(scalar.bits) &
                   ((static_cast<unsigned __int128>(1) << bits) - 1);
  const auto value = static_cast<__int128>(low);
  return value > limits(type).high ? value - (static_cast<__int128>(1) << bits) : value;
}

double floating_scalar(ScalarUnion scalar, DataType type) {
  if (type == DataType::float16) return to_double(bits_of<float16>(scalar));
  return static_cast<double>(bits_of<float>(scalar));
}

// Converts a FLOAT to the tensor's type.
double bound(float value, DataType type) {
  const auto wide = static_cast<double>(value);
  return type == DataType::float16 && std::isfinite(wide) ? to_double(to_float16(wide)) : wide;
}

bool scales(const OperatorDesc& desc) {
  return desc.scale_bias && (desc.scale_bias->scale != 1 || desc.scale_bias->bias != 0);
}

double scaled(const OperatorDesc& desc, double x) {
  return std::fma(x, static_cast<double>(desc.scale_bias->scale),
                  static_cast<double>(desc.scale_bias->bias));
}

Range clip(const OperatorDesc& desc, DataType type, double x) {
  const bool exact = desc.type == OperatorType::element_wise_clip1;
  const double min = exact ? floating_scalar(desc.scalars[0], type) : bound(desc.numbers[0], type);
  const double max = exact ? floating_scalar(desc.scalars[1], type) : bound(desc.numbers[1], type);
  Range result = around(x, 0);
  if (scales(desc)) {
    const double g = scaled(desc, x);
    result = around(g, 0.5001 * ulp32(g));
  }
  for (double* end : {&result.low, &result.high}) {
    if (std::isnan(*end)) continue;
    if (*end > max) *end = max;  // a NaN is no bound
    if (*end < min) *end = min;
  }
  return result;
}

__int128 clip(const OperatorDesc& desc, DataType type, __int128 x) {
  const bool exact = desc.type == OperatorType::element_wise_clip1;
  const auto [low, high] = limits(type);
  const auto whole = [&](int i, __int128 none) {
    const float value = desc.numbers[static_cast<std::size_t>(i)];
    if (exact) return integer_scalar(desc.scalars[static_cast<std::size_t>(i)], type);
    return std::isnan(value) ? none : truncated(static_cast<double>(value), type);
  };
  if (scales(desc)) x = truncated(scaled(desc, static_cast<double>(x)), type);
  return std::max(whole(0, low), std::min(x, whole(1, high)));
}

// Between the bounds, both excluded, the gradient passes.
bool passes(const OperatorDesc& desc, DataType type, double x) {
  if (desc.type == OperatorType::activation_relu_grad) return x > 0;
  const bool exact = desc.type == OperatorType::element_wise_clip_grad1;
  const double min = exact ? floating_scalar(desc.scalars[0], type) : bound(desc.numbers[0], type);
  const double max = exact ? floating_scalar(desc.scalars[1], type) : bound(desc.numbers[1], type);
  return !(x <= min) && !(x >= max);  // a NaN is no bound
}

bool passes(const OperatorDesc& desc, DataType type, __int128 x) {
  if (desc.type == OperatorType::activation_relu_grad) return x > 0;
  const bool exact = desc.type == OperatorType::element_wise_clip_grad1;
  const auto [low, high] = limits(type);
  const auto whole = [&](std::size_t i, __int128 none) {
    if (exact) return integer_scalar(desc.scalars[i], type);
    const auto value = std::trunc(static_cast<double>(desc.numbers[i]));
    if (std::isnan(value)) return none;
    // A bound beyond the type is not reached.
    return static_cast<__int128>(std::max(-0x1p70, std::min(value, 0x1p70)));
  };
  return x > whole(0, low - 1) && x < whole(1, high + 1);
}

// The operators of two tensors.
Range of_two(const OperatorDesc& desc, DataType type, double x, double other) {
  if (desc.type == OperatorType::activation_parameterized_relu) {
    if (x >= 0) return around(x, 0);
    const double product = x * other;
    return around(product, 0.5001 * ulp32(product));
  }
  if (std::isnan(x)) return {x, x};
  return around(passes(desc, type, x) ? other : 0, 0);
}

__int128 of_two(const OperatorDesc& desc, DataType type, __int128 x, __int128 other) {
  if (desc.type != OperatorType::activation_parameterized_relu)
    return passes(desc, type, x) ? other : 0;
  const auto [low, high] = limits(type);
  return x >= 0 ? x : std::max(low, std::min(x * other, high));
}

}  // namespace

Range activation(const OperatorDesc& desc, const Range& x) {
  const Activation type = find_operator(desc.type)->activation;
  // With the rounding errors of the formula in double.
  const double ulps = kActivationRows[static_cast<std::size_t>(type)].ulps + 0.0001;
  const auto a = static_cast<double>(desc.numbers[0]), b = static_cast<double>(desc.numbers[1]);
  if (x.any || std::isnan(x.low)) return x;
  Range result = {HUGE_VAL, -HUGE_VAL};
  // Every activation but gelu is monotonic between these points: at 0 the slope may change its
  // sign, and shrink jumps at b and -b. gelu's minimum is flat within an ulp.
  std::vector<double> ends = {x.low, (x.low + x.high) / 2, x.high};
  for (const double point : {0.0, b, -b}) {
    for (const double side :
         {point, std::nextafter(point, -HUGE_VAL), std::nextafter(point, HUGE_VAL)})
      ends.push_back(std::max(x.low, std::min(x.high, side)));
  }
  for (const double end : ends) {
    const double value = activation_formula(type, a, b, end);
    if (std::isnan(value)) return {value, value, x.low != x.high};
    const double error = ulps * ulp32(value);
    result.low = std::min(result.low, value - error);
    result.high = std::max(result.high, value + error);
  }
  return result;
}

namespace {

__int128 activation(const OperatorDesc& desc, DataType type, __int128 x) {
  if (desc.type == OperatorType::activation_relu) return x < 0 ? 0 : x;
  const auto a = static_cast<double>(desc.numbers[0]), b = static_cast<double>(desc.numbers[1]);
  return truncated(activation_formula(Activation::shrink, a, b, static_cast<double>(x)), type);
}

// Three roundings to float32: of the difference, of the bias with the product's low half, and of
// the sum. Below 2 ulp of the largest intermediate, also if the sum reaches a power of two. For
// float16 the factor is rounded to float32, too.
Range normalized(double x, double mean, double variance, double scale, double bias, double epsilon,
                 DataType type) {
  const double difference = x - mean, sum = variance + epsilon;
  const double factor = scale / std::sqrt(sum);
  const double product = factor * difference, result = product + bias;
  const double largest = std::max({std::abs(product), std::abs(bias), std::abs(result)});
  const auto ordinary = [](double value) {
    return value == 0 || (std::abs(value) > 0x1p-120 && std::abs(value) < 0x1p120);
  };
  Range range = around(result, arithmetic_error(largest, 2, type));
  const bool cancels = std::abs(sum) <= 0x1p-10 * std::abs(epsilon);
  range.any = !ordinary(difference) || !ordinary(factor) || !ordinary(product) || !ordinary(bias) ||
              cancels;
  return range;
}

}  // namespace

std::size_t position(const BufferTensorDesc& tensor, const BufferTensorDesc& like,
                     std::size_t index) {
  std::size_t result = 0, step = 1;
  for (std::size_t d = like.dimension_count; d-- > 0;) {
    const std::size_t i = index % like.sizes[d];
    index /= like.sizes[d];
    if (tensor.sizes[d] != 1) result += i * step;
    step *= tensor.sizes[d];
  }
  return result;
}

void require(double actual, const Range& range, DataType type, std::size_t index) {
  if (within(actual, range, type)) return;
  std::fprintf(stderr, "element %zu is %a, not from %a to %a\n", index, actual, range.low,
               range.high);
  std::abort();
}

std::vector<std::vector<std::size_t>> groups(const BufferTensorDesc& tensor, unsigned int reduced,
                                             std::size_t elements) {
  BufferTensorDesc kept = tensor;
  std::size_t count = 1;
  for (std::size_t d = 0; d < tensor.dimension_count; ++d) {
    if ((reduced >> d & 1u) != 0) kept.sizes[d] = 1;
    count *= kept.sizes[d];
  }
  std::vector<std::vector<std::size_t>> result(count);
  for (std::size_t i = 0; i < elements; ++i) result[position(kept, tensor, i)].push_back(i);
  return result;
}

namespace {

// Softmax, its logarithm, or hardmax.
void check_softmax(const OperatorDesc& desc, const OperatorInfo& op, const std::vector<double>& x,
                   const std::vector<double>& actual) {
  const BufferTensorDesc& tensor = *desc.tensors[0];
  unsigned int reduced = 0;
  if (op.has(FieldKind::axes)) {
    for (const std::uint32_t axis : desc.axes) reduced |= 1u << axis;
  } else {
    reduced = 1u << (tensor.dimension_count - 1);
  }
  for (const std::vector<std::size_t>& members : groups(tensor, reduced, x.size())) {
    std::size_t top = members[0];
    bool undefined = false;
    for (const std::size_t i : members) {
      undefined = undefined || std::isnan(x[i]);
      if (x[i] > x[top] || (std::isnan(x[i]) && !std::isnan(x[top]))) top = i;
    }
    if (op.family == Family::hardmax) {
      for (const std::size_t i : members) {
        const double value = i == top ? 1 : 0;
        require(actual[i], {value, value}, tensor.data_type, i);
      }
      continue;
    }
    undefined = undefined || std::isinf(x[top]);
    double sum_excluding_max = 0;
    for (const std::size_t i : members) sum_excluding_max += i == top ? 0 : std::exp(x[i] - x[top]);
    const double logarithm = std::log1p(sum_excluding_max);
    for (const std::size_t i : members) {
      const double difference = x[i] - x[top], value = difference - logarithm;
      if (op.family == Family::softmax) {
        const double share = std::exp(difference) / (1 + sum_excluding_max);
        const double rounded = static_cast<float>(share);
        Range range = around(share, arithmetic_error(rounded, 2, tensor.data_type, 0.02));
        range.high = std::min(range.high, 1.0);
        if (undefined) range = {NAN, NAN};
        require(actual[i], range, tensor.data_type, i);
        continue;
      }
      const double larger = std::max(std::abs(difference), logarithm);
      const double of_float16 = members.size() < 128 ? 0.001 : 0.02;
      const double error = value > -0.1 ? arithmetic_error(value, 8, tensor.data_type, of_float16)
                                        : arithmetic_error(larger, 2, tensor.data_type, of_float16);
      const Range range = undefined ? Range{NAN, NAN} : around(value, error);
      require(actual[i], range, tensor.data_type, i);
    }
  }
}

}  // namespace

Values read(const BufferTensorDesc& tensor, const char* memory) {
  Values values;
  std::size_t count = 1;
  for (std::size_t d = 0; d < tensor.dimension_count; ++d) count *= tensor.sizes[d];
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t remaining = i, offset = 0, packed = 1;
    for (std::size_t d = tensor.dimension_count; d-- > 0;) {
      const std::size_t k = remaining % tensor.sizes[d];
      remaining /= tensor.sizes[d];
      offset += k * (tensor.strides ? (*tensor.strides)[d] : packed);
      packed *= tensor.sizes[d];
    }
    ScalarUnion element;
    const std::size_t size = element_size(tensor.data_type);
    std::memcpy(&element.bits, memory + offset * size, size);
    if (is_floating_point(tensor.data_type)) {
      values.floating.push_back(floating_scalar(element, tensor.data_type));
    } else {
      values.integer.push_back(integer_scalar(element, tensor.data_type));
    }
  }
  return values;
}

void check_result(const OperatorDesc& desc, const std::vector<Values>& inputs,
                  const Values& actual) {
  const BufferTensorDesc& tensor = *desc.tensors[0];
  const DataType type = tensor.data_type;
  const OperatorInfo& op = *find_operator(desc.type);
  switch (op.family) {
    case Family::log_softmax:
    case Family::softmax:
    case Family::hardmax:
      return check_softmax(desc, op, inputs[0].floating, actual.floating);
    case Family::mean_variance_normalization:
    case Family::batch_normalization_training:
    case Family::batch_normalization_grad:
    case Family::batch_normalization_training_grad:
      return check_normalization(desc, op, inputs, actual.floating);
    default:
      break;
  }
  const bool two = op.inputs == 2;
  for (std::size_t i = 0; i < actual.integer.size(); ++i) {
    const __int128 x = inputs[0].integer[i];
    const __int128 expected = two ? of_two(desc, type, x, inputs[1].integer[i])
                              : op.family == Family::clip ? clip(desc, type, x)
                                                          : activation(desc, type, x);
    if (actual.integer[i] != expected) std::abort();
  }
  for (std::size_t i = 0; i < actual.floating.size(); ++i) {
    const double x = inputs[0].floating[i];
    Range range = {x, x};
    if (two) {
      range = of_two(desc, type, x, inputs[1].floating[i]);
    } else if (op.family == Family::clip) {
      range = clip(desc, type, x);
    } else if (op.family == Family::batch_normalization) {
      double v[5];
      for (std::size_t k = 0; k < 5; ++k) {
        v[k] = inputs[k].floating[position(*desc.tensors[k], tensor, i)];
      }
      range = normalized(v[0], v[1], v[2], v[3], v[4], static_cast<double>(desc.numbers[0]), type);
      if (desc.fused_activation != nullptr) range = activation(*desc.fused_activation, range);
    } else {
      range = activation(desc, range);
    }
    require(actual.floating[i], range, type, i);
  }
}

}  // namespace dmlops::fuzz
