// softmax down columns.
#pragma once

#include "kernels/softmax/columns.hpp"
#include "kernels/softmax/softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
class SoftmaxColumns {
 public:
  explicit SoftmaxColumns(const Reduction& groups) : block_(groups, 128) {}

  void run() {
    block_.for_each_selection([this] { run_selection(); });
  }

 private:
  void run_selection() {
    if (plain_) {
      const auto terms = [](std::int64_t) DMLOPS_LAMBDA_INLINE { return PlainGroupTerms<T>(); };
      const LargestAbs largest = add_up<LargestAbs>(terms);
      plain_ = term_sums_.compute(block_.lanes(), false) &&
               finish_plain<T>(fold(largest.largest, Maximum()), block_.count(), [&](auto plain) {
                 finish([=](std::int64_t) DMLOPS_LAMBDA_INLINE { return plain; });
               });
      if (plain_) return;
    }
    find_column_maxima(block_, tops_);
    const auto terms = [&](std::int64_t c)
                           DMLOPS_LAMBDA_INLINE { return GroupTerms<T>(load<f32x>(tops_ + c)); };
    add_up<NothingSeen>(terms);
    term_sums_.compute(block_.lanes(), true);
    finish(terms);
  }

  // Adds the terms of all groups up, and keeps those of short groups.
  template <class Seen, class MakeTerms>
  DMLOPS_INLINE Seen add_up(const MakeTerms& make_terms) {
    Seen all;
    const auto store_sum = [&](std::int64_t c, const LaneSums<T>& sums, const Seen& seen)
                               DMLOPS_LAMBDA_INLINE {
                                 sums.store_to(term_sums_.sum + c);
                                 all += seen;
                               };
    if (!keeps_) {
      sums_.template add_up<Seen>(block_, make_terms, store_sum);
      return all;
    }
    const auto x = block_.view(0);
    const std::int64_t rows = block_.count();
    for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const auto terms = make_terms(c);
      const std::int64_t column = block_.column(c);
      Seen seen;
      for (std::int64_t r = 0; r < rows; ++r) {
        block_.prefetch_next(r, column);
        const f32x v = load_columns<T>(x, r, column);
        seen += v;
        terms(v).store_to(kept_[r][0] + c, kept_[r][kNumbers - 1] + c);
      }
      const auto term = [&](std::int64_t r) DMLOPS_LAMBDA_INLINE { return kept(r, c).rounded(); };
      const auto lane = [&](std::int64_t r)
                            DMLOPS_LAMBDA_INLINE { return LaneSums<T>::of(term(r)); };
      const auto lane_sum = [&](std::int64_t first) DMLOPS_LAMBDA_INLINE {
        LaneSums<T> sum = lane(first);
        for (std::int64_t r = first + kSumLanes; r < rows; r += kSumLanes) sum += term(r);
        return sum;
      };
      // With a term in each lane, all sums stay in registers.
      store_sum(
          c, rows <= kSumLanes ? add_lanes(rows, lane) : ColumnSums<T>::block_sum(rows, lane_sum),
          seen);
    });
    return all;
  }

  template <class MakeTerms>
  DMLOPS_INLINE void finish(const MakeTerms& make_terms) {
    keeps_ ? write<true>(make_terms) : write<false>(make_terms);
  }

  template <bool kKept, class MakeTerms>
  DMLOPS_INLINE void write(const MakeTerms& make_terms) {
    write_columns(block_, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const auto terms = make_terms(c);
      const TermSum sum = term_sums_.of_vector(c);
      return [=](f32x x, std::int64_t row) DMLOPS_LAMBDA_INLINE {
        SoftmaxTerm<T> term;
        if constexpr (kKept) {
          term = kept(row, c);
        } else {
          term = terms(x);
        }
        return terms.result(term, sum);
      };
    });
  }

  DMLOPS_INLINE SoftmaxTerm<T> kept(std::int64_t row, std::int64_t c) const {
    SoftmaxTerm<T> term;
    term.load_from(kept_[row][0] + c, kept_[row][kNumbers - 1] + c);
    return term;
  }

  static constexpr int kNumbers = SoftmaxTerm<T>::kNumbers;
  // The terms of longer groups are computed twice.
  static constexpr std::int64_t kKeptRows = kNumbers == 2 ? 16 : 64;

  SoftmaxBlock<T> block_;
  const bool keeps_ = block_.count() <= kKeptRows;
  ColumnSums<T> sums_;
  TermSums<T, kSoftmaxColumns> term_sums_;
  alignas(kVectorBytes) float tops_[kSoftmaxColumns];
  bool plain_ = true;  // until an element is beyond PlainGroupTerms::kLargest
  alignas(kVectorBytes) float kept_[kKeptRows][kNumbers][kSoftmaxColumns];
};

}  // namespace dmlops::DMLOPS_TARGET
