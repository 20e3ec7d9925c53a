// log_softmax down columns.
#pragma once

#include "kernels/softmax/columns.hpp"
#include "kernels/softmax/log_softmax_group.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
class LogSoftmaxColumns : GroupBatch<LogSoftmaxColumns<T>, T, kSoftmaxColumns> {
  using Base = GroupBatch<LogSoftmaxColumns<T>, T, kSoftmaxColumns>;
  friend Base;

 public:
  explicit LogSoftmaxColumns(const Reduction& groups) : block_(groups, 320) {}

  void run() {
    block_.for_each_selection([this] {
      if constexpr (std::is_same_v<T, float>) {
        if (is_short_ && inexact_ <= exact_ + kSoftmaxColumns / kFloatLanes) return compute_short();
      }
      Base::run(block_.lanes());
    });
  }

 private:
  using Base::log_sum_exp_;

  std::int64_t elements() const { return block_.count(); }

  // Computes short groups from the sums excluding one maximum: of each element and the maximum so
  // far, the smaller one adds its term. Sums of up to 16 terms within a factor of 2^24 of each
  // other are exact in float64, in any order. Vectors with larger factors are added up by
  // add_plain(), and those for which its sum does not suffice by add_excluding_max(). If most
  // vectors have larger factors, further groups are not tried.
  void compute_short() {
    constexpr float kExactRange = 16;
    const std::int64_t columns = block_.lanes();
    const auto x = block_.view(0);
    bool exact[kSoftmaxColumns / kFloatLanes], all_exact = true;  // by vector
    for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const std::int64_t column = block_.column(c);
      const auto element = [&](std::int64_t r) DMLOPS_LAMBDA_INLINE {
        block_.prefetch_next(r, column);
        return load_columns<T>(x, r, column);
      };
      f32x largest = element(0), smallest = largest;
      LaneSums<T> sum = {};
      for (std::int64_t r = 1; r < elements(); ++r) {
        const f32x v = element(r), smaller = min(v, largest);  // NaN if v is NaN
        largest = max(largest, v);
        smallest = min(smallest, smaller);
        sum += PlainTerms<T>::exp(smaller);
      }
      store(log_sum_exp_.largest + c, largest);
      store(smallest_ + c, smallest);
      sum.store_to(log_sum_exp_.plain_sum + c);
      const i32x in_range = largest - smallest <= kExactRange;
      bool& exact_here = exact[c / kFloatLanes];
      exact_here = !any_lane(~in_range);
      all_exact = all_exact && exact_here;
      ++(exact_here ? exact_ : inexact_);
    });
    if (!all_exact && elements() > 2) {  // the smaller one of two terms does not suffice, anyway
      const auto is_inexact = [&](std::int64_t c) { return !exact[c / kFloatLanes]; };
      add_plain(is_inexact);
      for_each_vector(columns, [&](std::int64_t c) {
        if (is_inexact(c)) log_sum_exp_.subtract_max(c);
      });
    }
    if (!log_sum_exp_.take_plain_excluding_max(columns)) {
      add_excluding_max([this](std::int64_t c) { return log_sum_exp_.lacks_sum(c); });
      log_sum_exp_.take_excluding_max(columns);
    }
    log_sum_exp_.compute(columns);
    finish();
  }

  void find_maxima() { find_column_maxima(block_, log_sum_exp_.largest); }

  template <class IsNeeded = EveryVector>
  void add_plain(const IsNeeded& is_needed = {}) {
    sums_.template add_up<Range<T>>(
        block_, [](std::int64_t) { return PlainTerms<T>(); },
        [&](std::int64_t c, const LaneSums<T>& sums, const Range<T>& seen) DMLOPS_LAMBDA_INLINE {
          sums.store_to(log_sum_exp_.plain_sum + c);
          store(log_sum_exp_.largest + c, seen.largest);
          if constexpr (std::is_same_v<T, float>) store(smallest_ + c, seen.smallest);
        },
        is_needed);
  }

  template <class IsNeeded = EveryVector>
  void add_excluding_max(const IsNeeded& is_needed = {}) {
    sums_.template add_up<NonMaxCount>(
        block_,
        [&](std::int64_t c) { return TermsExcludingMax<T>(load<f32x>(log_sum_exp_.largest + c)); },
        [&](std::int64_t c, const LaneSums<T>& sums,
            const NonMaxCount& below_max) DMLOPS_LAMBDA_INLINE {
          // As unsigned numbers, of up to 2^32 elements.
          const i32x maxima = static_cast<std::int32_t>(block_.count()) - below_max.count;
          sums.store_to(log_sum_exp_.sum_excluding_maxima + c);
          store(log_sum_exp_.max_count + c, __builtin_convertvector(bit_cast<u32x>(maxima), f32x));
        },
        is_needed);
  }

  void finish() {
    if constexpr (std::is_same_v<T, float>) {
      bool in_range = true;
      for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        in_range = in_range && Difference<T>::are_in_range(load<f32x>(smallest_ + c),
                                                           load<f32x>(log_sum_exp_.high + c));
      });
      if (in_range) return write<true>();
    }
    write<false>();
  }

  template <bool kInRange>
  DMLOPS_INLINE void write() {
    write_columns(block_, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const Difference<T> difference(load<f32x>(log_sum_exp_.high + c),
                                     load<f32x>(log_sum_exp_.low + c));
      return [=](f32x x, std::int64_t)
                 DMLOPS_LAMBDA_INLINE { return difference.template of<kInRange>(x); };
    });
  }

  SoftmaxBlock<T> block_;
  const bool is_short_ = elements() > 1 && elements() <= kSumLanes;
  std::int64_t exact_ = 0, inexact_ = 0;  // vectors that compute_short() has met
  ColumnSums<T> sums_;
  alignas(kVectorBytes) float smallest_[kSoftmaxColumns];  // for float32
};

}  // namespace dmlops::DMLOPS_TARGET
