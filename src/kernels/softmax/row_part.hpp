// A dense row in parts, each computed by a thread: whole blocks of the sums, in three stages.
//
// Stage 0 finds the extrema, and computes sums that do not depend on them. Stage 1 computes the
// sums that do, and stage 2 the results. A stage begins when all parts have finished the one
// before. Each part combines the sums of all parts, in the same order.
#pragma once

#include "kernels/blocks/group_layout.hpp"
#include "kernels/simd/math.hpp"
#include "kernels/softmax/lane_sums.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
class RowPart {
 public:
  static constexpr int kResultStage = 2;

  explicit RowPart(const Reduction& group)
      : count_(group.elements.sizes[0]),
        numbers_(static_cast<RowPartNumbers*>(group.part_sums)),
        lanes_(reinterpret_cast<Lanes>(numbers_ + kMaxRowParts)),
        part_(group.part),
        parts_(group.parts) {
    GroupOffsets<1> offsets(group.kept);
    offsets.select(group.first, 1);
    input_ = reinterpret_cast<const T*>(group.data[1] + offsets.input.runs[0].offset);
    output_ = reinterpret_cast<T*>(group.data[0] + offsets.output.runs[0].offset);
    first_ = blocks() * part_ / parts_;
    end_ = blocks() * (part_ + 1) / parts_;
  }

  std::int64_t count() const { return count_; }  // elements of the group
  // The elements of the part, from begin() on.
  std::int64_t begin() const { return first_ * kSumBlock; }
  std::int64_t length() const { return min(count_, end_ * kSumBlock) - begin(); }
  const T* input() const { return input_ + begin(); }
  T* output() const { return output_ + begin(); }
  RowPartNumbers& numbers() { return numbers_[part_]; }

  // Calls visit(elements, their number, lanes of sum s) for each block of the part.
  template <class Visit>
  void for_each_block(int s, const Visit& visit) {
    for (std::int64_t b = first_; b < end_; ++b)
      visit(input_ + b * kSumBlock, min(kSumBlock, count_ - b * kSumBlock), lanes(s)[b]);
  }

  // Calls visit(numbers) for each part, in order.
  template <class Visit>
  void for_each_part(const Visit& visit) const {
    for (int p = 0; p < parts_; ++p) visit(numbers_[p]);
  }
  // Finds the extrema of the group; ignores NaN.
  void set_extrema(float& smallest, float& largest) const {
    smallest = kInfinity;
    largest = -kInfinity;
    for_each_part([&](const RowPartNumbers& numbers) {
      if (numbers.smallest < smallest) smallest = numbers.smallest;
      if (numbers.largest > largest) largest = numbers.largest;
    });
  }

  // Returns the count of all parts.
  std::int64_t all_non_max() const {
    std::int64_t total = 0;
    for_each_part([&](const RowPartNumbers& numbers) { total += numbers.non_max_count; });
    return total;
  }

  // Returns sum s over the group.
  double sum(int s) const {
    double total[kSumLanes];
    std::memcpy(total, lanes(s)[0], sizeof total);
    for (std::int64_t b = 1; b < blocks(); ++b) {
      for (int j = 0; j < kSumLanes; ++j) total[j] += lanes(s)[b][j];
    }
    return add_lanes(kSumLanes, [&](int lane) { return total[lane]; });
  }

 private:
  using Lanes = double (*)[kSumLanes];

  // The lanes of sum s of each block.
  Lanes lanes(int s) const { return lanes_ + s * blocks(); }
  std::int64_t blocks() const { return row_blocks(count_); }

  const std::int64_t count_;
  RowPartNumbers* const numbers_;  // of each part
  const Lanes lanes_;
  const int part_, parts_;
  std::int64_t first_, end_;  // blocks of the part
  const T* input_;
  T* output_;
};

}  // namespace dmlops::DMLOPS_TARGET
