// An operand of groups down columns.
#pragma once

#include "kernels/blocks/column_block.hpp"

namespace dmlops::DMLOPS_TARGET {

// The elements of the selected groups in an operand, as rows with an element of each group.
// Elements that are broadcast to their group are a single row, and a row of elements that are
// broadcast to all groups is a single vector.
template <class T>
class ColumnOperand {
 public:
  ColumnOperand(const Reduction& groups, int operand)
      : exists_(operand != 0 && groups.data[operand] != nullptr),
        uniform_(has_no_strides(groups.elements, operand)),
        shared_(has_no_strides(groups.kept, operand)),
        block_(groups, operand,
               uniform_ ? ElementLoops{1, kOne, kOne + 1} : element_loops(groups, operand), true) {}

  void select(std::int64_t first, std::int64_t columns) {
    if (exists_ && !shared_) block_.select(first, columns);
  }
  void end_overlap() {
    if (exists_ && !shared_) block_.end_overlap();
  }
  // True unless elements of the groups must be packed: a single row may be packed by itself.
  bool in_place() const { return !exists_ || uniform_ || shared_ || block_.in_place(); }
  // True if any number of adjacent groups is in place.
  bool is_adjacent() const { return !exists_ || shared_ || block_.is_adjacent(); }

  // Loads `count` rows from element `begin` of the groups on, or refers to them in place.
  void load(std::int64_t begin, std::int64_t count, const RowLanes& lanes = {}) {
    if (!exists_) return;
    if (shared_) {
      rows_ = block_.load_shared(uniform_ ? 0 : begin, uniform_ ? 1 : count);
    } else {
      const std::int64_t row = uniform_ ? 0 : begin;
      rows_ = block_.in_place() ? block_.rows_from(row)
                                : block_.load_rows(row, uniform_ ? RowLanes() : lanes);
    }
    if (uniform_) rows_.pitch = 0;
  }
  // Returns the loaded rows from column c on.
  DMLOPS_INLINE ColumnRows rows_at(std::int64_t c) const {
    return rows_.from(shared_ ? 0 : c * std::int64_t{sizeof(T)});
  }

 private:
  static constexpr std::int64_t kOne[] = {1, 0};  // the size and the stride of one element

  const bool exists_, uniform_, shared_;
  ColumnBlock<T> block_;
  ColumnRows rows_ = {};
};

}  // namespace dmlops::DMLOPS_TARGET
