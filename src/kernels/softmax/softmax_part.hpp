// softmax and hardmax of a dense row in parts.
#pragma once

#include "kernels/softmax/hardmax.hpp"
#include "kernels/softmax/row_part.hpp"
#include "kernels/softmax/softmax_rows.hpp"

namespace dmlops::DMLOPS_TARGET {

// Returns the sum over the row.
template <class T, class Terms>
double add_parts(RowParts<T>& row, const Terms& terms) {
  row.for_each([&](const RowPart<T>& part) {
    part.for_each_block([&](const T* x, std::int64_t length, double* lanes) {
      add_block(x, length, terms, lanes);
    });
  });
  return row.sum();
}

template <class T, class Terms>
void finish_parts(RowParts<T>& row, const Terms& terms, const TermSum& sum) {
  row.for_each([&](const RowPart<T>& part) {
    finish_row(part.output, part.input, part.length, terms, sum);
  });
}

template <class T>
void softmax_in_parts(const Reduction& group) {
  RowParts<T> row(group);
  row.for_each([](RowPart<T>& part) {
    f32x smallest = splat<f32x>(kInfinity), largest = splat<f32x>(-kInfinity);
    const T* const x = part.input;
    for_each_vector_of_row(part.length,
                           [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
                             const f32x v = load_repeated(x, i, used);
                             smallest = min(smallest, v);
                             largest = max(largest, v);
                           });
    part.smallest = fold(smallest, Minimum());
    part.largest = fold(largest, Maximum());
  });
  float smallest, largest;
  row.set_extrema(smallest, largest);
  const bool plain =
      smallest >= -PlainGroupTerms<T>::kLargest && largest <= PlainGroupTerms<T>::kLargest;
  const GroupTerms<T> terms(splat<f32x>(largest));
  TermSums<T, kFloatLanes> sums = {};
  const double all = plain ? add_parts(row, PlainGroupTerms<T>()) : add_parts(row, terms);
  sums.sum[0] = static_cast<typename RowSum<T>::Lane>(all);
  const bool ordered = sums.compute(1, !plain);
  const TermSum sum = sums.of_group(0);
  if (plain && ordered) return finish_parts(row, PlainGroupTerms<T>(), sum);
  finish_parts(row, terms, sum);  // NaN throughout if the sum is NaN
}

template <class T>
void hardmax_in_parts(const Reduction& group) {
  using State = typename HardmaxRows<T>::State;
  RowParts<T> row(group);
  row.for_each([](RowPart<T>& part) {
    State state = HardmaxRows<T>::kNone;
    HardmaxRows<T>::find(state, part.input, part.begin, part.length);
    part.largest = state.max;
    part.index = state.index;
  });
  State state = HardmaxRows<T>::kNone;
  row.combine([&](const RowPart<T>& part) {
    const bool is_first = part.largest > state.max || part.largest != part.largest;
    if (state.max == state.max && is_first) state = {part.largest, part.index};
  });
  row.for_each([&](const RowPart<T>& part) {
    HardmaxRows<T>::write(state, part.output, part.begin, part.length);
  });
}

}  // namespace dmlops::DMLOPS_TARGET
