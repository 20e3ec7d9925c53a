// log_softmax: (x - max) - log(sum(exp(x - max))) over each group, along rows or down columns as
// the layout requires.
#pragma once

#include "kernels/softmax/log_softmax_columns.hpp"
#include "kernels/softmax/log_softmax_part.hpp"
#include "kernels/softmax/log_softmax_rows.hpp"

namespace dmlops::DMLOPS_TARGET {

// Shorter groups are computed down columns, unless there are few groups.
template <class T>
constexpr std::int64_t kAlongRows = std::is_same_v<T, float> ? 32 : 64;

template <class T>
void log_softmax(const Reduction& groups, const void*) {
  if (groups.parts > 1) return log_softmax_in_parts<T>(groups);
  const ElementLoops in = element_loops(groups, 1), out = element_loops(groups, 0);
  if (fills_rows(groups, in, out, kAlongRows<T>)) {
    LogSoftmaxRows<T>(groups).run();
  } else {
    ColumnBatch<T>(groups, in, out).run(groups.first, groups.end);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
