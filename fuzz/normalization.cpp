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

}  // namespace

// The output of normalization by the input's moments, and the input's gradient. Requires moderate
// numbers, which excludes NaN.
void check_normalization(const OperatorDesc& desc, const OperatorInfo& op,
                         const std::vector<Values>& inputs, const std::vector<double>& actual) {
  const BufferTensorDesc& tensor = *desc.tensors[0];
  const DataType type = tensor.data_type;
  if (!std::all_of(inputs.begin(), inputs.end(), moderate)) return;
  const auto operand = [&](std::size_t k, std::size_t i, double none) {
    if (!desc.tensors[k]) return none;
    return inputs[k].floating[position(*desc.tensors[k], tensor, i)];
  };
  const auto epsilon = static_cast<double>(desc.numbers[0]);
  if (!(epsilon == 0 || epsilon > 0x1p-20)) return;
  const std::vector<double>& x = inputs[0].floating;
  const bool of_moments = op.family == Family::mean_variance_normalization;
  const bool use_mean = boolean_of(desc, "use_mean", true);
  const bool use_variance =
      boolean_of(desc, "use_variance", true) && boolean_of(desc, "normalize_variance", true);
  const bool forward = of_moments || op.family == Family::batch_normalization_training;
  for (const std::vector<std::size_t>& members : groups(tensor, reduced_axes(desc, op), x.size())) {
    const auto count = static_cast<double>(members.size());
    double mean = 0, variance = 0, mean_gradient = 0, product = 0;
    // Means of the magnitudes of elements and gradients, and of their squares.
    double size = 0, size_of_gradient = 0, square = 0, square_of_gradient = 0;
    for (const std::size_t i : members) {
      mean += use_mean ? x[i] / count : 0;
      const double g = forward ? 0 : operand(1, i, 0);
      size += std::abs(x[i]) / count;
      size_of_gradient += std::abs(g) / count;
      square += x[i] * x[i] / count;
      square_of_gradient += g * g / count;
    }
    for (const std::size_t i : members) variance += (x[i] - mean) * (x[i] - mean) / count;
    if (!forward) {
      for (const std::size_t i : members) {
        mean_gradient += operand(1, i, 0) / count;
        product += operand(1, i, 0) * (x[i] - mean) / count;
      }
      variance = operand(3, members[0], 0);
    }
    // A sum of moderate numbers that cancels has no error bound of its own.
    if (variance + epsilon < 0x1p-10 * mean * mean || variance + epsilon <= 0) continue;
    const double inverse = use_variance ? 1 / std::sqrt(variance + epsilon) : 1;
    for (const std::size_t i : members) {
      double result, largest;
      double of_sums = 0;  // the error propagated from the sums
      if (forward) {
        const double scale = operand(1, i, 1), bias = operand(2, i, 0);
        const double added = of_moments ? 0 : operand(3, i, 0);
        const double normalized = scale * inverse * (x[i] - mean);
        result = normalized + bias + added;
        largest = std::max({std::abs(normalized), std::abs(bias), std::abs(added),
                            use_variance ? 0 : std::abs(scale * mean), std::abs(result)});
        of_sums = std::abs(scale * inverse) * 0x1p-43 * size;
      } else {
        const double factor = operand(4, i, 0) * inverse, g = operand(1, i, 0);
        const bool training = op.family == Family::batch_normalization_training_grad;
        const double shift = training ? (x[i] - mean) * product * inverse * inverse : 0;
        const double center = training ? mean_gradient : 0;
        result = factor * (g - center - shift);
        largest = std::max({std::abs(factor * g), std::abs(factor * center),
                            std::abs(factor * shift), std::abs(result)});
        const bool is_half = type == DataType::float16;
        const double of_sum = is_half ? 0x1p-19 : 0x1p-43;
        const double of_product =
            (is_half ? 0x1p-17 : 0x1p-43) * std::sqrt(square * square_of_gradient);
        if (training) {
          of_sums = std::abs(factor) *
                    (of_sum * size_of_gradient +
                     inverse * inverse *
                         (std::abs(x[i] - mean) * of_product + std::abs(product) * of_sum * size));
        }
      }
      Range range = around(result, arithmetic_error(largest, 2, type, 0.001) + of_sums);
      if (desc.fused_activation != nullptr) range = activation(*desc.fused_activation, range);
      require(actual[i], range, type, i);
    }
  }
}

}  // namespace dmlops::fuzz
