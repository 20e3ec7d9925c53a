// log_softmax: (x - max) - log(sum(exp(x - max))) over each group; chooses the way through memory
// that fits the layout.
#pragma once

#include "kernels/log_softmax_columns.hpp"
#include "kernels/log_softmax_rows.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
void log_softmax(const Groups& groups) {
  constexpr std::int64_t kLong = 128;  // elements in a row that fill the lanes well enough
  constexpr std::int64_t kFew = 4;     // groups that leave most columns empty
  const GroupShape in{groups.rank, groups.sizes, groups.input_strides};
  const GroupShape out{groups.rank, groups.sizes, groups.output_strides};
  const bool contiguous =
      in.step() == static_cast<std::int64_t>(sizeof(T)) && in.sizes[in.rank - 1] >= kLong;
  if (groups.count <= kFew || contiguous) {
    log_softmax_along_rows<T>(groups, in, out);
  } else {
    log_softmax_down_columns<T>(groups, in, out);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
