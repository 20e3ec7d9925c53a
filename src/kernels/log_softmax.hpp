// log_softmax: (x - max) - log(sum(exp(x - max))) over each group; chooses the way through memory
// that fits the layout.
#pragma once

#include "kernels/log_softmax_columns.hpp"
#include "kernels/log_softmax_rows.hpp"

namespace dmlops::DMLOPS_TARGET {

// Short dense groups that follow one another are transposed in a buffer, so that they are columns
// too.
template <class T>
void log_softmax_transposed(const Groups& groups, std::int64_t count) {
  constexpr std::int64_t size = sizeof(T);
  alignas(kVectorBytes) char buffer[kTileBytes];
  const std::int64_t fitting = kTileBytes / size / count / kLanes<f32x> * kLanes<f32x>;
  const std::int64_t columns = fitting < kColumns ? fitting : kColumns;
  const std::int64_t stride = columns * size;
  const GroupShape shape{1, &count, &stride};
  for (std::int64_t g = 0; g < groups.count; g += columns) {
    const std::int64_t used = groups.count - g < columns ? groups.count - g : columns;
    const char* input = groups.input + g * groups.input_step;
    char* output = groups.output + g * groups.output_step;
    pack<Bits<T>>(buffer, columns * size, used, count, input, groups.input_step, size);
    log_softmax_down_columns<T>(buffer, buffer, shape, shape, used);
    pack<Bits<T>>(output, groups.output_step, count, used, buffer, columns * size, size);
  }
}

template <class T>
void log_softmax(const Groups& groups) {
  constexpr std::int64_t size = sizeof(T);
  constexpr std::int64_t kShort =
      256;  // elements in a group; longer ones fill the lanes well enough by themselves
  const GroupShape in{groups.rank, groups.sizes, groups.input_strides};
  const GroupShape out{groups.rank, groups.sizes, groups.output_strides};
  const std::int64_t count = in.count();
  if (groups.input_step == size && groups.output_step == size && groups.count > 1) {
    for (std::int64_t g = 0; g < groups.count; g += kColumns) {
      const std::int64_t columns = groups.count - g < kColumns ? groups.count - g : kColumns;
      log_softmax_down_columns<T>(groups.input + g * size, groups.output + g * size, in, out,
                                  columns);
    }
  } else if (in.dense(size) && out.dense(size) && count <= kShort &&
             groups.count >= kLanes<f32x> / 2) {
    log_softmax_transposed<T>(groups, count);
  } else {
    log_softmax_along_rows<T>(groups, in, out);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
