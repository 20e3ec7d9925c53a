// log_softmax down columns.
#pragma once

#include "kernels/softmax/columns.hpp"
#include "kernels/softmax/log_softmax_group.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
class ColumnBatch : GroupBatch<ColumnBatch<T>, T, kColumns> {
  using Base = GroupBatch<ColumnBatch<T>, T, kColumns>;
  friend Base;

 public:
  ColumnBatch(const Reduction& groups, const ElementLoops& in, const ElementLoops& out)
      : block_(groups, in, out) {}

  // Computes the groups [first, end).
  void run(std::int64_t first, std::int64_t end) {
    block_.for_each_selection(first, end, [this](std::int64_t columns) { Base::run(columns); });
  }

 private:
  using Base::log_sum_exp_;

  static constexpr int kVectors = kColumns / kLanes<f32x>;

  std::int64_t elements() const { return block_.count(); }

  void find_maxima() { find_column_maxima(block_, log_sum_exp_.largest); }

  template <bool kInRange>
  void add_plain() {
    Range seen[kVectors];
    sums_.add_up(
        block_, [](std::int64_t) { return PlainTerms<T, kInRange>(); }, seen,
        log_sum_exp_.plain_sum);
    for_each_vector(block_.columns(), [&](std::int64_t c) {
      store(log_sum_exp_.smallest + c, seen[c / kLanes<f32x>].smallest);
      store(log_sum_exp_.largest + c, seen[c / kLanes<f32x>].largest);
    });
  }

  void add_excluding_max() {
    NonMaxCount seen[kVectors];
    sums_.add_up(
        block_,
        [&](std::int64_t c) { return TermsExcludingMax<T>(load<f32x>(log_sum_exp_.largest + c)); },
        seen, log_sum_exp_.sum_excluding_maxima);
    const i32x count = splat<i32x>(static_cast<std::int32_t>(block_.count()));
    for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const i32x maxima = count - seen[c / kLanes<f32x>].count;
      store(log_sum_exp_.max_count + c, __builtin_convertvector(maxima, f32x));
    });
  }

  void finish() {
    if (log_sum_exp_.all_in_range(block_.columns())) {
      finish_columns<true>();
    } else {
      finish_columns<false>();
    }
  }

  template <bool kInRange>
  void finish_columns() {
    write_columns<4>(block_, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const Difference<T> difference(load<f32x>(log_sum_exp_.high + c),
                                     load<f32x>(log_sum_exp_.low + c));
      return [=](f32x x) DMLOPS_LAMBDA_INLINE { return difference.template of<kInRange>(x); };
    });
  }

  ColumnBlock<T> block_;
  ColumnSums<T> sums_;
};

}  // namespace dmlops::DMLOPS_TARGET
