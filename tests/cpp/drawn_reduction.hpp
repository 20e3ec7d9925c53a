// Reductions of random operands, and their results in long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "draw.hpp"
#include "laid_out_tensor.hpp"

namespace dmlops {

// The index into a tensor of `inner` sizes, each 1 or the outer's, for an index into `outer`.
inline std::size_t inner_index(std::size_t i, const Sizes& outer, const Sizes& inner) {
  std::size_t result = 0, factor = 1;
  for (std::size_t d = outer.size(); d-- > 0;) {
    const auto size = static_cast<std::size_t>(outer[d]);
    if (inner[d] != 1) result += i % size * factor;
    factor *= static_cast<std::size_t>(inner[d]);
    i /= size;
  }
  return result;
}

// Exact results, and the largest intermediate of each, to which its error is relative.
struct ExactNumbers {
  explicit ExactNumbers(std::size_t count) : values(count), largest(count) {}

  void set(std::size_t i, long double value, std::initializer_list<long double> intermediates) {
    values[i] = value;
    for (const long double each : intermediates) largest[i] = std::max(largest[i], std::fabs(each));
  }

  std::vector<long double> values, largest;
};

// Random operands: of the input's sizes, or with an element for each group.
struct DrawnReduction {
  explicit DrawnReduction(unsigned int seed) : draw(seed) {}

  Draw draw;
  DataType type = draw.integer(0, 1) == 0 ? DataType::float32 : DataType::float16;
  Sizes sizes = draw.sizes(), channels = draw.some_of(sizes);
  double mean = draw.integer(0, 1) == 0 ? 0 : 100;
  Tensor x{type, sizes, draw.values(product(sizes), mean, 3), draw.strides(sizes)};
  Tensor dy{type, sizes, draw.values(product(sizes), 0.5, 1), draw.strides(sizes)};
  Tensor scale{type, channels, positive(1), draw.strides(channels)};
  Tensor bias{type, channels, positive(1), draw.strides(channels)};
  Tensor variance{type, channels, positive(2), draw.strides(channels)};
  Sizes output_strides = draw.strides(sizes), group_strides = draw.strides(channels);

  // The reduced axes.
  std::vector<std::int64_t> axes() const {
    std::vector<std::int64_t> result;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (channels[d] == 1) result.push_back(static_cast<std::int64_t>(d));
    }
    return result;
  }

 private:
  // Scales, variances and the like: an element for each group.
  Numbers positive(double center) {
    Numbers values = draw.values(product(channels), center, 0.2);
    for (double& value : values) value = std::max(value, 0.125);
    return values;
  }
};

constexpr float kReductionEpsilon = 0.25f;

// Sums over a group's elements.
struct GroupSums {
  long double count = 0, mean = 0, variance = 0;
  long double largest = -1e30L, exponentials = 0;
  long double dy = 0, dy_size = 0, product = 0, product_size = 0;  // of dy, and of dy * (x - mean)
  std::size_t first_largest = 0;
};

// The sums of the groups; `group` is that of each element.
inline std::vector<GroupSums> sums_of(const Numbers& x, const Numbers& dy,
                                      const std::vector<std::size_t>& group, std::size_t groups) {
  std::vector<GroupSums> result(groups);
  for (std::size_t i = 0; i < x.size(); ++i) {
    GroupSums& sums = result[group[i]];
    sums.count += 1;
    sums.mean += x[i];
    if (x[i] <= sums.largest) continue;
    sums.largest = x[i];
    sums.first_largest = i;
  }
  for (GroupSums& sums : result) sums.mean /= sums.count;
  for (std::size_t i = 0; i < x.size(); ++i) {
    GroupSums& sums = result[group[i]];
    const long double deviation = x[i] - sums.mean;
    sums.variance += deviation * deviation / sums.count;
    sums.exponentials += std::exp(x[i] - sums.largest);
    sums.dy += dy[i];
    sums.dy_size += std::fabs(dy[i]);
    sums.product += dy[i] * deviation;
    sums.product_size += std::fabs(dy[i] * deviation);
  }
  return result;
}

struct ExpectedReduction {
  ExpectedReduction(std::size_t count, std::size_t groups)
      : softmax(count),
        hardmax(count),
        normalized(count),
        trained(count),
        training_gradient(count),
        gradient(count),
        mean(groups),
        variance(groups),
        scale_gradient(groups),
        bias_gradient(groups) {}

  ExactNumbers softmax, hardmax, normalized, trained, training_gradient, gradient;
  ExactNumbers mean, variance, scale_gradient, bias_gradient;
};

// The results in long double. The gradients are given the bias as the mean.
inline ExpectedReduction expected_of(const DrawnReduction& operands) {
  const Numbers x = operands.x.get(), dy = operands.dy.get(), scale = operands.scale.get(),
                bias = operands.bias.get(), variance = operands.variance.get();
  std::vector<std::size_t> group(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    group[i] = inner_index(i, operands.sizes, operands.channels);
  const std::vector<GroupSums> all = sums_of(x, dy, group, scale.size());
  const auto epsilon = static_cast<long double>(kReductionEpsilon);
  ExpectedReduction result(x.size(), scale.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t g = group[i];
    const GroupSums& sums = all[g];
    const long double deviation = x[i] - sums.mean, given = variance[g] + epsilon;
    const long double scaled = deviation / std::sqrt(sums.variance + epsilon) * scale[g];
    const long double factor = scale[g] / std::sqrt(given), center = sums.dy / sums.count,
                      slope = deviation * sums.product / sums.count / given;
    result.softmax.set(i, std::exp(x[i] - sums.largest) / sums.exponentials, {});
    result.hardmax.set(i, sums.first_largest == i ? 1 : 0, {});
    result.normalized.set(i, scaled + bias[g], {scaled, bias[g]});
    result.trained.set(i, scaled + bias[g] + dy[i], {scaled, bias[g], dy[i]});
    result.training_gradient.set(i, factor * (dy[i] - center - slope),
                                 {factor * dy[i], factor * center, factor * slope});
    result.gradient.set(i, factor * dy[i], {});
  }
  for (std::size_t g = 0; g < all.size(); ++g) {
    const GroupSums& sums = all[g];
    const long double inverse = 1 / std::sqrt(variance[g] + epsilon),
                      shift = (sums.mean - bias[g]) * sums.dy;
    result.mean.set(g, sums.mean, {});
    result.variance.set(g, sums.variance, {});
    result.scale_gradient.set(g, (sums.product + shift) * inverse,
                              {sums.product_size * inverse, shift * inverse});
    result.bias_gradient.set(g, sums.dy, {sums.dy_size});
  }
  return result;
}

}  // namespace dmlops
