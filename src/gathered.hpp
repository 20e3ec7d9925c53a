// Transpositions of many small dimensions, as rows whose places are looked up.
#pragma once

#include "plan.hpp"

namespace dmlops {

// Short rows of scattered elements, as a transposition of many small dimensions has them, spend
// their time between the rows. Dimensions across which the output is dense become one row, whose
// elements the input has at offsets from a table. Of the others, those across which the input is
// dense become one dimension, whose rows the output has at offsets from a second table: together
// these are a transposition of two large dimensions.
class Gathered {
 public:
  static bool worth(const Plan& plan) {
    const std::int64_t size = plan.element_size;
    return size != 0 && plan.rank > 2 && plan.operands == 2 && plan.sizes[0] < kShort &&
           plan.strides[0][0] == size && plan.strides[1][0] != size && plan.strides[1][0] != 0;
  }

  explicit Gathered(const Plan& plan) : plan_(plan) {
    Chain row{0}, column{1};
    // Either should be long enough for whole cache lines, so the shorter one grows first.
    while (row.length < kShort && extend(row, plan)) continue;
    if (row.rank < 2) return;
    while (column.length <= row.length ? extend(column, plan) || extend(row, plan)
                                       : extend(row, plan) || extend(column, plan)) {
    }
    plan_.rank = 0;
    append(row.length, plan, row.dimensions[0]);
    plan_.offsets = fill(offsets_, row, plan, 1);
    if (column.rank > 0) append(column.length, plan, column.dimensions[0]);
    if (column.rank > 1) {
      plan_.row_offsets = fill(row_offsets_, column, plan, 0);
      plan_.strides[0][1] = 0;
    }
    for (int d = 0; d < plan.rank; ++d) {
      if (!taken_[d]) append(plan.sizes[d], plan, d);
    }
  }
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;

  const Plan& plan() const { return plan_; }

 private:
  static constexpr std::int64_t kShort = 32, kCapacity = 1024;

  // Dimensions that an operand has dense, one after another.
  struct Chain {
    int operand;
    int rank = 0;
    std::int64_t length = 1;
    int dimensions[kMaxRank] = {};

    explicit Chain(int operand_) : operand(operand_) {}
  };

  // A single dimension needs no table and may be of any length.
  bool extend(Chain& chain, const Plan& plan) {
    for (int d = 0; d < plan.rank; ++d) {
      if (taken_[d] || plan.strides[chain.operand][d] != chain.length * plan.element_size) continue;
      if (chain.rank > 0 && chain.length * plan.sizes[d] > kCapacity) continue;
      taken_[d] = true;
      chain.dimensions[chain.rank++] = d;
      chain.length *= plan.sizes[d];
      return true;
    }
    return false;
  }

  void append(std::int64_t size, const Plan& plan, int d) {
    plan_.sizes[plan_.rank] = size;
    for (int k = 0; k < plan.operands; ++k) plan_.strides[k][plan_.rank] = plan.strides[k][d];
    ++plan_.rank;
  }

  // Where an operand has the elements of a chain. Each dimension repeats what the inner ones have.
  static const std::int64_t* fill(std::int64_t* offsets, const Chain& chain, const Plan& plan,
                                  int operand) {
    offsets[0] = 0;
    std::int64_t filled = 1;
    for (int i = 0; i < chain.rank; ++i) {
      const int d = chain.dimensions[i];
      const std::int64_t total = filled * plan.sizes[d], stride = plan.strides[operand][d];
      for (std::int64_t k = filled; k < total; ++k) offsets[k] = offsets[k - filled] + stride;
      filled = total;
    }
    return offsets;
  }

  Plan plan_;
  bool taken_[kMaxRank] = {};
  std::int64_t offsets_[kCapacity], row_offsets_[kCapacity];
};

}  // namespace dmlops
