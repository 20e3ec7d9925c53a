// A dense row in parts: each has some blocks of the row's sums, and is computed by a thread.
#pragma once

#include "kernels/blocks/group_layout.hpp"
#include "kernels/blocks/group_parts.hpp"
#include "kernels/simd/math.hpp"
#include "kernels/softmax/lane_sums.hpp"

namespace dmlops::DMLOPS_TARGET {

// The elements of a part, and the numbers that it finds.
template <class T>
struct RowPart {
  const T* input;
  T* output;
  std::int64_t begin, length;  // of the elements in the row
  float smallest, largest;     // ignore NaN
  std::int64_t index;          // of the largest element
  std::int64_t non_max_count;
  double* lanes;  // of its first block's sum

  // Calls visit(elements, their number, lanes of the sum) for each block.
  template <class Visit>
  void for_each_block(const Visit& visit) const {
    for (std::int64_t i = 0; i < length; i += kSumBlock)
      visit(input + i, min(kSumBlock, length - i), lanes + i / kSumBlock * kSumLanes);
  }
};

template <class T>
class RowParts {
 public:
  explicit RowParts(const Reduction& row)
      : row_(row), count_(row.elements.sizes[0]), sums_(row, count_, kSumLanes) {
    OperandGroups<1> input, output;
    input.select(row.kept, 1, row.first, 1);
    output.select(row.kept, 0, row.first, 1);
    const std::int64_t blocks = sum_blocks(count_);
    for (int p = 0; p < row.parts; ++p) {
      const std::int64_t first = blocks * p / row.parts, begin = first * kSumBlock;
      RowPart<T>& part = parts_[p];
      part.input = reinterpret_cast<const T*>(row.data[1] + input.runs[0].offset) + begin;
      part.output = reinterpret_cast<T*>(row.data[0] + output.runs[0].offset) + begin;
      part.begin = begin;
      part.length = min(count_, blocks * (p + 1) / row.parts * kSumBlock) - begin;
      part.lanes = sums_.lanes(0, first);
    }
  }

  // Calls compute(part) for each part, by several threads.
  template <class Compute>
  void for_each(const Compute& compute) {
    for_each_part(row_, row_.parts, [&](int p) {
      RowPart<T> part = parts_[p];
      compute(part);
      parts_[p] = part;
    });
  }
  // Calls visit(part) for each part, in order.
  template <class Visit>
  void combine(const Visit& visit) const {
    for (int p = 0; p < row_.parts; ++p) visit(parts_[p]);
  }

  // Finds the extrema of the row; ignores NaN.
  void set_extrema(float& smallest, float& largest) const {
    smallest = kInfinity;
    largest = -kInfinity;
    combine([&](const RowPart<T>& part) {
      if (part.smallest < smallest) smallest = part.smallest;
      if (part.largest > largest) largest = part.largest;
    });
  }
  std::int64_t max_count() const {
    std::int64_t count = count_;
    combine([&](const RowPart<T>& part) { count -= part.non_max_count; });
    return count;
  }
  // Returns the sum over the row.
  double sum() const {
    sums_.add_up();
    return add_lanes(kSumLanes, [&](std::int64_t lane) { return sums_.total(0)[lane]; });
  }

 private:
  const Reduction& row_;
  const std::int64_t count_;
  const BlockSums sums_;
  RowPart<T> parts_[kMaxParts];
};

}  // namespace dmlops::DMLOPS_TARGET
