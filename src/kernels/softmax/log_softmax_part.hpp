// log_softmax of a part of a dense row.
#pragma once

#include "kernels/softmax/log_softmax_rows.hpp"
#include "kernels/softmax/row_part.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
void log_softmax_part(const Reduction& group) {
  constexpr int kResultStage = RowPart<T>::kResultStage;
  if (group.stage > kResultStage) return;
  RowPart<T> part(group);
  if (group.stage == 0) {
    Range seen;
    part.for_each_block(0, [&](const T* x, std::int64_t length, double* lanes) {
      RowSum<PlainTerms<T, false>> sum({});
      sum.add(x, length);
      sum.store_to(lanes);
      seen += sum.seen();
    });
    part.numbers() = {fold(seen.smallest, Minimum()), fold(seen.largest, Maximum()), 0, 0};
    return;
  }
  using Sum = typename LaneSums<T>::Lane;
  LogSumExp<T, kLanes<f32x>> log_sum_exp = {};
  part.set_extrema(log_sum_exp.smallest[0], log_sum_exp.largest[0]);
  log_sum_exp.plain_sum[0] = static_cast<Sum>(part.sum(0));
  log_sum_exp.take_plain(1);
  const bool enough = log_sum_exp.sum_excluding_max[0] >= 0;
  if (group.stage < kResultStage) {
    if (enough) return;
    const TermsExcludingMax<T> terms(splat<f32x>(log_sum_exp.largest[0]));
    std::int64_t counted = 0;
    part.for_each_block(1, [&](const T* x, std::int64_t length, double* lanes) {
      RowSum<TermsExcludingMax<T>> sum(terms);
      sum.add(x, length);
      sum.store_to(lanes);
      counted += sum.non_max_count();
    });
    part.numbers().non_max_count = counted;
    return;
  }
  if (!enough) {
    log_sum_exp.sum_excluding_maxima[0] = static_cast<Sum>(part.sum(1));
    log_sum_exp.max_count[0] = static_cast<float>(part.count() - part.all_non_max());
    log_sum_exp.take_excluding_max(1);
  }
  log_sum_exp.compute(1);
  const Difference<T> difference(splat<f32x>(log_sum_exp.high[0]), splat<f32x>(log_sum_exp.low[0]));
  if (log_sum_exp.in_range(0)) {
    finish_row<true>(part.output(), part.input(), part.length(), difference);
  } else {
    finish_row<false>(part.output(), part.input(), part.length(), difference);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
