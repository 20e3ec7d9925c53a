// log_softmax of a dense row in parts.
#pragma once

#include "kernels/softmax/log_softmax_rows.hpp"
#include "kernels/softmax/row_part.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
void log_softmax_in_parts(const Reduction& group) {
  RowParts<T> row(group);
  row.for_each([](RowPart<T>& part) {
    Range<T> seen;
    part.for_each_block([&](const T* x, std::int64_t length, double* lanes) {
      RowSum<T> sum;
      sum.clear();
      add_plain_terms(sum, x, length, seen);
      sum.store_to(lanes);
    });
    part.smallest = fold(seen.smallest, Minimum());
    part.largest = fold(seen.largest, Maximum());
  });
  using Sum = typename LaneSums<T>::Lane;
  LogSumExp<T, kFloatLanes> log_sum_exp = {};
  float smallest;
  row.set_extrema(smallest, log_sum_exp.largest[0]);
  log_sum_exp.plain_sum[0] = static_cast<Sum>(row.sum());
  log_sum_exp.take_plain(1);
  if (!(log_sum_exp.sum_excluding_max[0] >= 0)) {
    row.for_each([&](RowPart<T>& part) {
      const TermsExcludingMax<T> terms(splat<f32x>(log_sum_exp.largest[0]));
      part.non_max_count = 0;
      part.for_each_block([&](const T* x, std::int64_t length, double* lanes) {
        RowSum<T> sum;
        sum.clear();
        NonMaxCount below_max;
        add_terms_excluding_max(sum, x, length, terms, below_max);
        part.non_max_count += fold(below_max.count, Addition());
        sum.store_to(lanes);
      });
    });
    log_sum_exp.sum_excluding_maxima[0] = static_cast<Sum>(row.sum());
    log_sum_exp.max_count[0] = static_cast<float>(row.max_count());
    log_sum_exp.take_excluding_max(1);
  }
  log_sum_exp.compute(1);
  row.for_each([&](const RowPart<T>& part) {
    finish_row(part.output, part.input, part.length, smallest, log_sum_exp.high[0],
               log_sum_exp.low[0]);
  });
}

}  // namespace dmlops::DMLOPS_TARGET
