// The operands of moments down columns that have an element for each element of the input.
#pragma once

#include "kernels/normalization/column_operand.hpp"
#include "kernels/normalization/moment_operands.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T, class Formula>
class MomentColumnOperands {
 protected:
  MomentColumnOperands(const Reduction& groups, const Formula& formula)
      : groups_(groups),
        formula_(formula),
        block_(groups, true),
        second_(groups, Formula::kSecond),
        scale_(groups, Formula::kScale),
        bias_(groups, Formula::kBias) {}

  // True if groups that follow each other are adjacent in all operands. Runs of groups that end
  // within a vector are combined instead, unless they are long or, where vectors may overlap, have
  // many elements.
  bool is_adjacent() const {
    constexpr std::int64_t kLong = 256, kManyElements = 512;
    const ReductionNest& kept = groups_.kept;
    const std::int64_t run = kept.rank > 0 ? kept.sizes[0] : 0;
    const bool is_large = block_.overlaps()
                              ? run > kFloatLanes && run * block_.count() >= kManyElements
                              : run >= kLong;
    const bool whole = kept.rank <= 1 || run % kFloatLanes == 0 || is_large;
    return whole && block_.is_adjacent() && second_.is_adjacent() && scale_.is_adjacent() &&
           bias_.is_adjacent() && kept.strides[0][0] == sizeof(T);
  }

  // Selects the columns that are selected in the input, in the other operands. Vectors may overlap
  // unless results replace packed elements of the input, which would be read again.
  void select_others(std::int64_t first, std::int64_t columns) {
    ColumnOperand<T>* const others[] = {&second_, &scale_, &bias_};
    for (ColumnOperand<T>* const operand : others) operand->select(first, columns);
    if (!block_.in_place() && !block_.stores_in_place()) {
      block_.end_overlap();
      for (ColumnOperand<T>* const operand : others) operand->end_overlap();
    }
    in_place_ = block_.in_place();
    for (const ColumnOperand<T>* const operand : others)
      in_place_ = in_place_ && operand->in_place();
  }

  // Returns the first column of the vector whose numbers are at c.
  DMLOPS_INLINE std::int64_t column(std::int64_t c) const { return block_.column(c); }

  // Loads `count` rows from `begin` on of the operands that sweep s reads; kSweeps: the results.
  void load_rows(int s, std::int64_t begin, std::int64_t count, const RowLanes& lanes = {}) {
    const unsigned int operands = formula_.reads(s);
    if (has_bit(operands, Formula::kSecond)) second_.load(begin, count, lanes);
    if (has_bit(operands, 1))
      x_ = block_.in_place() ? block_.rows_from(begin) : block_.load_rows(begin, lanes);
  }
  void load_parameters(std::int64_t begin, std::int64_t count) {
    scale_.load(begin, count);
    bias_.load(begin, count);
  }

  // The loaded rows, from the vector of columns at c on, a value of column().
  struct OperandRows {
    ColumnRows x, second, scale, bias;
  };
  DMLOPS_INLINE OperandRows rows_at(std::int64_t c) const {
    return {x_.from(c * std::int64_t{sizeof(T)}), second_.rows_at(c), scale_.rows_at(c),
            bias_.rows_at(c)};
  }

  // Row r of such rows.
  struct At {
    using W = typename Formula::W;

    const OperandRows& rows;
    std::int64_t r;

    DMLOPS_INLINE f32x x() const { return load<f32x>(row_of<T>(rows.x, r)); }
    DMLOPS_INLINE auto wide_x() const { return W::load(row_of<T>(rows.x, r), 0, kFloatLanes); }
    template <class V>
    static V existing(V v) {
      return v;
    }
    DMLOPS_INLINE f32x second() const { return load<f32x>(row_of<T>(rows.second, r)); }
    DMLOPS_INLINE auto wide_second() const {
      return W::load(row_of<T>(rows.second, r), 0, kFloatLanes);
    }
    DMLOPS_INLINE f32x scale() const { return load<f32x>(row_of<T>(rows.scale, r)); }
    DMLOPS_INLINE f32x bias() const { return load<f32x>(row_of<T>(rows.bias, r)); }
  };

  const Reduction& groups_;
  const Formula& formula_;
  ColumnBlock<T> block_;  // of the input
  ColumnOperand<T> second_, scale_, bias_;
  bool in_place_ = false;  // true if the selected groups are in place in all operands
  ColumnRows x_ = {};      // the loaded rows of the input
};

}  // namespace dmlops::DMLOPS_TARGET
