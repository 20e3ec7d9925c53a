// log_softmax: (x - max) - log(sum(exp(x - max))) over each group, along rows or down columns as
// the layout requires.
#pragma once

#include "kernels/softmax/log_softmax_columns.hpp"
#include "kernels/softmax/log_softmax_rows.hpp"

namespace dmlops::DMLOPS_TARGET {

// Shorter groups are computed down columns, unless there are few groups.
template <class T>
constexpr std::int64_t kAlongRows = std::is_same_v<T, float> ? 32 : 64;

template <class T>
void log_softmax(const Reduction& groups, const void*) {
  const ReductionNest& elements = groups.elements;
  const ElementLoops in{elements.rank, elements.sizes, elements.strides[1]};
  const ElementLoops out{elements.rank, elements.sizes, elements.strides[0]};
  const std::int64_t count = groups.end - groups.first;
  // True if elements of a group share cache lines in both operands, and fill the lanes of a sum.
  constexpr std::int64_t kShared = kLineBytes / 4;
  const bool contiguous =
      abs(in.step()) <= kShared && abs(out.step()) <= kShared && in.run() >= kSumLanes;
  // Few groups leave most columns empty; the overhead of a group along a row equals that of 8
  // elements per column.
  const bool few = count <= 8 && 8 * count <= in.count();
  if (few || (contiguous && in.count() >= kAlongRows<T>)) {
    const bool in_place = ChunkedRows<T>::dense(in) && in.rank > 1;
    if (WholeRows<T>::fit(in, out) && !in_place) {
      RowBatch<T, WholeRows<T>>(groups, in, out).run(groups.first, groups.end);
    } else {
      RowBatch<T, ChunkedRows<T>>(groups, in, out).run(groups.first, groups.end);
    }
  } else {
    ColumnBatch<T>(groups, in, out).run(groups.first, groups.end);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
