// softmax and hardmax of a part of a dense row.
#pragma once

#include "kernels/softmax/hardmax.hpp"
#include "kernels/softmax/row_part.hpp"
#include "kernels/softmax/softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

// Computes the sums over the blocks of a part.
template <class T, class Terms>
void add_part(RowPart<T>& part, const Terms& terms) {
  part.for_each_block(0, [&](const T* x, std::int64_t length, double* lanes) {
    TermSum<T> sum;
    sum.add(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      return terms(load_elements(x, i, used)).rounded();
    });
    std::memcpy(lanes, sum.lanes(), kSumLanes * sizeof(double));
  });
}

template <class T, class Terms>
void finish_part(const RowPart<T>& part, const Terms& terms, float high, float low) {
  const T* const x = part.input();
  T* const y = part.output();
  const f32x highs = splat<f32x>(high), lows = splat<f32x>(low);
  for_each_vector_of_row(
      part.length(), [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
        const f32x products = terms(load_elements(x, i, used)).times(highs, lows);
        store_elements(y, i, used, terms.last(products));
      });
}

template <class T>
void softmax_part(const Reduction& group) {
  constexpr int kResultStage = RowPart<T>::kResultStage;
  if (group.stage > kResultStage) return;
  RowPart<T> part(group);
  if (group.stage == 0) {
    f32x smallest = splat<f32x>(kInfinity), largest = splat<f32x>(-kInfinity);
    const T* const x = part.input();
    for_each_vector_of_row(part.length(),
                           [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
                             const f32x v = load_repeated(x, i, used);
                             smallest = min(smallest, v);
                             largest = max(largest, v);
                           });
    part.numbers() = {fold(smallest, Minimum()), fold(largest, Maximum()), 0, 0};
    return;
  }
  float smallest, largest;
  part.set_extrema(smallest, largest);
  const bool plain =
      smallest >= -PlainGroupTerms<T>::kLargest && largest <= PlainGroupTerms<T>::kLargest;
  const GroupTerms<T> terms(splat<f32x>(largest));
  if (group.stage < kResultStage) {
    if (plain) return add_part(part, PlainGroupTerms<T>());
    return add_part(part, terms);
  }
  Reciprocals<T, kLanes<f32x>> reciprocals = {};
  reciprocals.sum[0] = static_cast<typename TermSum<T>::Lane>(part.sum(0));
  const bool ordered = reciprocals.compute(1, !plain);
  const float high = reciprocals.high[0], low = reciprocals.low[0];
  if (plain && ordered) return finish_part(part, PlainGroupTerms<T>(), high, low);
  finish_part(part, terms, high, low);  // NaN throughout if the sum is NaN
}

template <class T>
void hardmax_part(const Reduction& group) {
  constexpr int kResultStage = RowPart<T>::kResultStage;
  if (group.stage != 0 && group.stage != kResultStage) return;
  RowPart<T> part(group);
  typename Hardmax<T>::State state = Hardmax<T>::kNone;
  if (group.stage == 0) {
    Hardmax<T>::find(state, part.input(), part.begin(), part.length());
    part.numbers() = {0, state.max, state.index, 0};
    return;
  }
  part.for_each_part([&](const auto& numbers) {
    const bool is_first = numbers.largest > state.max || numbers.largest != numbers.largest;
    if (state.max == state.max && is_first) state = {numbers.largest, numbers.largest_index};
  });
  Hardmax<T>::write(state, part.output(), part.begin(), part.length());
}

}  // namespace dmlops::DMLOPS_TARGET
