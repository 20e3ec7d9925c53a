// softmax down columns.
#pragma once

#include "kernels/softmax/columns.hpp"
#include "kernels/softmax/softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
class SoftmaxColumns {
 public:
  explicit SoftmaxColumns(const Reduction& groups) : block_(groups) {}

  void run() {
    block_.for_each_selection([this](std::int64_t, std::int64_t columns) { run(columns); });
  }

 private:
  void run(std::int64_t columns) {
    if (plain_) {
      LargestAbs largest;
      const auto terms = [](std::int64_t) DMLOPS_LAMBDA_INLINE { return PlainGroupTerms<T>(); };
      sums_.template add_up<LargestAbs>(block_, terms,
                                        [&](std::int64_t c, const LaneSums<T>& sums,
                                            const LargestAbs& seen) DMLOPS_LAMBDA_INLINE {
                                          sums.store_to(reciprocals_.sum + c);
                                          largest += seen.largest;
                                        });
      plain_ = reciprocals_.compute(columns, false) && are_plain<T>(largest);
      if (plain_) return finish(terms);
    }
    find_column_maxima(block_, tops_);
    const auto terms = [&](std::int64_t c)
                           DMLOPS_LAMBDA_INLINE { return GroupTerms<T>(load<f32x>(tops_ + c)); };
    sums_.template add_up<NothingSeen>(
        block_, terms,
        [&](std::int64_t c, const LaneSums<T>& sums, const NothingSeen&)
            DMLOPS_LAMBDA_INLINE { sums.store_to(reciprocals_.sum + c); });
    reciprocals_.compute(columns, true);
    finish(terms);
  }

  template <class MakeTerms>
  DMLOPS_INLINE void finish(const MakeTerms& make_terms) {
    write_columns(block_, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const auto terms = make_terms(c);
      const f32x high = load<f32x>(reciprocals_.high + c), low = load<f32x>(reciprocals_.low + c);
      return [=](f32x x) DMLOPS_LAMBDA_INLINE { return terms.last(terms(x).times(high, low)); };
    });
  }

  SoftmaxBlock<T> block_;
  ColumnSums<T> sums_;
  Reciprocals<T, kSoftmaxColumns> reciprocals_ = {};
  alignas(kVectorBytes) float tops_[kSoftmaxColumns];
  bool plain_ = true;  // until an element is beyond PlainGroupTerms::kLargest
};

}  // namespace dmlops::DMLOPS_TARGET
