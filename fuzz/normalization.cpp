// Normalization by the input's own moments, and the gradient of the input, in double.
#include <algorithm>
#include <cmath>

#include "ranges.hpp"

namespace dmlops::fuzz {
namespace {

// The reduced axes: those of the descriptor, or those along which a tensor has size 1.
unsigned int reduced_axes(const OperatorDesc& desc, const OperatorInfo& op) {
  const BufferTensorDesc& tensor = *desc.tensors[0];
  unsigned int reduced = 0;
  if (op.family != Family::mean_variance_normalization) {
    const BufferTensorDesc& like =
        *desc.tensors[op.family == Family::batch_normalization_training ? 1 : 2];
    for (std::uint32_t d = 0; d < tensor.dimension_count; ++d) {
      if (like.sizes[d] == 1) reduced |= 1u << d;
    }
  } else if (op.has(FieldKind::axes)) {
    for (const std::uint32_t axis : desc.axes) reduced |= 1u << axis;
  } else {
    reduced = boolean_of(desc, "cross_channel", false) ? 0b1110u : 0b1100u;
  }
  return reduced;
}

// True for numbers whose products, of a few factors, stay within float32's range.
bool moderate(const Values& values) {
  return std::all_of(values.floating.begin(), values.floating.end(), [](double value) {
    return value == 0 || (std::abs(value) > 0x1p-20 && std::abs(value) < 0x1p20);
  });
}

// A result, its largest intermediate, and the error propagated from the sums.
struct Exact {
  double result, largest, of_sums;
};

class Normalization {
 public:
  Normalization(const OperatorDesc& desc, const OperatorInfo& op, const std::vector<Values>& inputs)
      : desc_(desc), op_(op), inputs_(inputs) {}

  // False for sums of moderate numbers that cancel, which have no error bound of their own.
  bool set_group(const std::vector<std::size_t>& members) {
    sums_ = Sums();
    const auto count = static_cast<double>(members.size());
    for (const std::size_t i : members) {
      const double value = x(i), g = gradient(i);
      sums_.mean += use_mean_ ? value / count : 0;
      sums_.size += std::abs(value) / count;
      sums_.square += value * value / count;
      sums_.gradient_size += std::abs(g) / count;
      sums_.gradient_square += g * g / count;
    }
    double variance = 0;
    for (const std::size_t i : members) {
      const double deviation = x(i) - sums_.mean;
      variance += deviation * deviation / count;
      sums_.gradient += gradient(i) / count;
      sums_.product += gradient(i) * deviation / count;
    }
    if (!forward_) variance = operand(3, members[0], 0);
    variance += epsilon_;
    if (variance < 0x1p-10 * sums_.mean * sums_.mean || variance <= 0) return false;
    inverse_ = use_variance_ ? 1 / std::sqrt(variance) : 1;
    return true;
  }

  Exact element(std::size_t i) const { return forward_ ? output(i) : input_gradient(i); }

 private:
  // Means over a group; sizes are those of magnitudes.
  struct Sums {
    double mean = 0, size = 0, square = 0;
    double gradient = 0, gradient_size = 0, gradient_square = 0;
    double product = 0;  // of the gradient and the deviation
  };

  double operand(std::size_t k, std::size_t i, double none) const {
    if (!desc_.tensors[k]) return none;
    return inputs_[k].floating[position(*desc_.tensors[k], *desc_.tensors[0], i)];
  }
  double x(std::size_t i) const { return inputs_[0].floating[i]; }
  double gradient(std::size_t i) const { return forward_ ? 0 : operand(1, i, 0); }

  Exact output(std::size_t i) const {
    const double scale = operand(1, i, 1), bias = operand(2, i, 0);
    const double added = of_moments_ ? 0 : operand(3, i, 0);
    const double normalized = scale * inverse_ * (x(i) - sums_.mean);
    const double result = normalized + bias + added;
    const double largest =
        std::max({std::abs(normalized), std::abs(bias), std::abs(added),
                  use_variance_ ? 0 : std::abs(scale * sums_.mean), std::abs(result)});
    return {result, largest, std::abs(scale * inverse_) * 0x1p-43 * sums_.size};
  }

  Exact input_gradient(std::size_t i) const {
    const bool training = op_.family == Family::batch_normalization_training_grad;
    const double factor = operand(4, i, 0) * inverse_, g = gradient(i);
    const double deviation = x(i) - sums_.mean;
    const double shift = training ? deviation * sums_.product * inverse_ * inverse_ : 0;
    const double center = training ? sums_.gradient : 0;
    const double result = factor * (g - center - shift);
    const double largest = std::max({std::abs(factor * g), std::abs(factor * center),
                                     std::abs(factor * shift), std::abs(result)});
    if (!training) return {result, largest, 0};
    const bool is_half = desc_.tensors[0]->data_type == DataType::float16;
    const double of_sum = is_half ? 0x1p-19 : 0x1p-43;
    const double of_product =
        (is_half ? 0x1p-17 : 0x1p-43) * std::sqrt(sums_.square * sums_.gradient_square);
    const double of_shift =
        inverse_ * inverse_ *
        (std::abs(deviation) * of_product + std::abs(sums_.product) * of_sum * sums_.size);
    return {result, largest, std::abs(factor) * (of_sum * sums_.gradient_size + of_shift)};
  }

  const OperatorDesc& desc_;
  const OperatorInfo& op_;
  const std::vector<Values>& inputs_;
  const double epsilon_ = static_cast<double>(desc_.numbers[0]);
  const bool of_moments_ = op_.family == Family::mean_variance_normalization;
  const bool forward_ = of_moments_ || op_.family == Family::batch_normalization_training;
  const bool use_mean_ = boolean_of(desc_, "use_mean", true);
  const bool use_variance_ =
      boolean_of(desc_, "use_variance", true) && boolean_of(desc_, "normalize_variance", true);
  Sums sums_;
  double inverse_ = 1;
};

}  // namespace

// The output of normalization by the input's moments, and the input's gradient. Requires moderate
// numbers, which excludes NaN.
void check_normalization(const OperatorDesc& desc, const OperatorInfo& op,
                         const std::vector<Values>& inputs, const std::vector<double>& actual) {
  const BufferTensorDesc& tensor = *desc.tensors[0];
  if (!std::all_of(inputs.begin(), inputs.end(), moderate)) return;
  if (desc.numbers[0] != 0 && !(desc.numbers[0] > 0x1p-20f)) return;
  Normalization normalization(desc, op, inputs);
  for (const std::vector<std::size_t>& members :
       groups(tensor, reduced_axes(desc, op), inputs[0].floating.size())) {
    if (!normalization.set_group(members)) continue;
    for (const std::size_t i : members) {
      const Exact exact = normalization.element(i);
      const double rounding = arithmetic_error(exact.largest, 2, tensor.data_type, 0.001);
      Range range = around(exact.result, rounding + exact.of_sums);
      if (desc.fused_activation != nullptr) range = activation(*desc.fused_activation, range);
      require(actual[i], range, tensor.data_type, i);
    }
  }
}

}  // namespace dmlops::fuzz
