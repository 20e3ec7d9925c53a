// Random sizes, layouts and values.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>

#include "laid_out_tensor.hpp"

namespace dmlops {

class Draw {
 public:
  explicit Draw(unsigned int seed) : random_(seed) {}

  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  Sizes sizes() {
    const std::int64_t rank = integer(1, 4);
    Sizes result;
    std::int64_t left = 6000;
    for (std::int64_t d = 0; d < rank; ++d) {
      const std::int64_t most = std::min<std::int64_t>(left, integer(0, 3) == 0 ? 1500 : 20);
      result.push_back(integer(1, std::max<std::int64_t>(most, 1)));
      left /= result.back();
    }
    return result;
  }
  // Of elements that do not overlap: permuted, stepped, reversed.
  Sizes strides(const Sizes& sizes) {
    Sizes order(sizes.size()), result(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    std::int64_t step = 1;
    for (const std::int64_t d : order) {
      const auto axis = static_cast<std::size_t>(d);
      if (integer(0, 3) == 0) step *= integer(1, 3);
      result[axis] = integer(0, 4) == 0 ? -step : step;
      step *= sizes[axis];
    }
    return result;
  }
  Numbers values(std::int64_t count, double mean, double deviation) {
    std::normal_distribution<double> distribution(mean, deviation);
    Numbers result;
    for (std::int64_t i = 0; i < count; ++i) result.push_back(distribution(random_));
    return result;
  }
  Sizes some_of(const Sizes& sizes) {  // each size or 1
    Sizes result;
    for (const std::int64_t size : sizes) result.push_back(integer(0, 1) == 0 ? size : 1);
    return result;
  }

 private:
  std::mt19937 random_;
};

}  // namespace dmlops
