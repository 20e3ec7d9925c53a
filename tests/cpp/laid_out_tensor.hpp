// A tensor in memory of its own, in any layout, with canaries around and between its elements.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "core/float16.hpp"
#include "dmlops/tensor.hpp"

namespace dmlops {

using Numbers = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

inline std::int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

class Tensor {
 public:
  Tensor(DataType type, const Sizes& sizes)
      : Tensor(type, sizes, Numbers(static_cast<std::size_t>(product(sizes)), -77)) {}
  Tensor(DataType type, const Sizes& sizes, const Numbers& values, const Sizes& strides = {})
      : view_(nullptr, type, static_cast<int>(sizes.size()), {}, {}) {
    const auto item = static_cast<std::int64_t>(element_size(type));
    std::int64_t low = 0, high = item, dense = item;
    for (std::size_t d = sizes.size(); d-- > 0;) {
      view_.sizes[d] = sizes[d];
      view_.strides[d] = strides.empty() ? dense : strides[d] * item;
      dense *= sizes[d];
      const std::int64_t reach = (sizes[d] - 1) * view_.strides[d];
      (reach < 0 ? low : high) += reach;
    }
    memory_.assign(static_cast<std::size_t>(high - low) + 2 * kMargin, '\x5a');
    view_.data = memory_.data() + kMargin - low;
    set(values);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  const TensorView& view() const { return view_; }

  void set(const Numbers& values) {
    for_each([&](char* place, std::size_t i) {
      if (view_.type == DataType::float16) {
        const float16 value = to_float16(values[i]);
        std::memcpy(place, &value, sizeof value);
      } else {
        const auto value = static_cast<float>(values[i]);
        std::memcpy(place, &value, sizeof value);
      }
    });
  }
  Numbers get() const {
    Numbers values;
    for_each([&](char* place, std::size_t) {
      if (view_.type == DataType::float16) {
        float16 value;
        std::memcpy(&value, place, sizeof value);
        values.push_back(to_double(value));
      } else {
        float value = 0;
        std::memcpy(&value, place, sizeof value);
        values.push_back(static_cast<double>(value));
      }
    });
    return values;
  }
  // True if nothing but elements was written.
  bool intact() const {
    std::vector<char> copy = memory_;
    for_each([&](char* place, std::size_t) {
      std::memset(copy.data() + (place - memory_.data()), '\x5a', element_size(view_.type));
    });
    return std::all_of(copy.begin(), copy.end(), [](char byte) { return byte == '\x5a'; });
  }

 private:
  static constexpr std::int64_t kMargin = 128;

  template <class Visit>
  void for_each(const Visit& visit) const {
    const auto rank = static_cast<std::size_t>(view_.rank);
    Sizes index(rank, 0);
    char* place = static_cast<char*>(view_.data);
    for (std::size_t i = 0;; ++i) {
      visit(place, i);
      std::size_t d = rank;
      while (d-- > 0) {
        place += view_.strides[d];
        if (++index[d] < view_.sizes[d]) break;
        place -= view_.strides[d] * view_.sizes[d];
        index[d] = 0;
      }
      if (d == SIZE_MAX) return;
    }
  }

  std::vector<char> memory_;
  TensorView view_;
};

}  // namespace dmlops
