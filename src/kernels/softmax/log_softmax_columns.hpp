// log_softmax down columns.
#pragma once

#include "kernels/softmax/columns.hpp"
#include "kernels/softmax/log_softmax_group.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
class ColumnBatch : GroupBatch<ColumnBatch<T>, T, kSoftmaxColumns> {
  using Base = GroupBatch<ColumnBatch<T>, T, kSoftmaxColumns>;
  friend Base;

 public:
  explicit ColumnBatch(const Reduction& groups) : block_(groups) {}

  void run() {
    block_.for_each_selection([this](std::int64_t, std::int64_t columns) { Base::run(columns); });
  }

 private:
  using Base::log_sum_exp_;

  std::int64_t elements() const { return block_.count(); }

  void find_maxima() { find_column_maxima(block_, log_sum_exp_.largest); }

  void add_plain() {
    sums_.template add_up<Largest>(
        block_, [](std::int64_t) { return PlainTerms<T>(); },
        [&](std::int64_t c, const LaneSums<T>& sums, const Largest& seen) DMLOPS_LAMBDA_INLINE {
          sums.store_to(log_sum_exp_.plain_sum + c);
          store(log_sum_exp_.largest + c, seen.largest);
        });
  }

  void add_excluding_max() {
    sums_.template add_up<NonMaxCount>(
        block_,
        [&](std::int64_t c) { return TermsExcludingMax<T>(load<f32x>(log_sum_exp_.largest + c)); },
        [&](std::int64_t c, const LaneSums<T>& sums, const NonMaxCount& below_max)
            DMLOPS_LAMBDA_INLINE {
              const i32x maxima = static_cast<std::int32_t>(block_.count()) - below_max.count;
              sums.store_to(log_sum_exp_.sum_excluding_maxima + c);
              store(log_sum_exp_.max_count + c, __builtin_convertvector(maxima, f32x));
            });
  }

  void finish() {
    write_columns(block_, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const Difference<T> difference(load<f32x>(log_sum_exp_.high + c),
                                     load<f32x>(log_sum_exp_.low + c));
      return [=](f32x x) DMLOPS_LAMBDA_INLINE { return difference.of(x); };
    });
  }

  SoftmaxBlock<T> block_;
  ColumnSums<T> sums_;
};

}  // namespace dmlops::DMLOPS_TARGET
