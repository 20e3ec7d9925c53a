// The kernels of log_softmax, (x - max) - log(sum(exp(x - max))) over each group, along rows or
// down columns as the layout requires, and in chunks.
#include "kernels/softmax/log_softmax_chunks.hpp"
#include "kernels/softmax/log_softmax_columns.hpp"
#include "kernels/softmax/log_softmax_part.hpp"
#include "kernels/softmax/log_softmax_rows.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

// Shorter groups are computed down columns, unless there are few groups.
template <class T>
constexpr std::int64_t kAlongRows = std::is_same_v<T, float> ? 32 : 64;

template <class T>
void log_softmax(const Reduction& groups, const void*) {
  if (groups.parts > 1) return log_softmax_in_parts<T>(groups);
  if (fills_rows(groups, kAlongRows<T>)) {
    LogSoftmaxRows<T>(groups).run();
  } else {
    LogSoftmaxColumns<T>(groups).run();
  }
}

}  // namespace

void set_log_softmax(KernelTable& table) {
  table.log_softmax[0] = &log_softmax<float>;
  table.log_softmax[1] = &log_softmax<float16>;
  table.log_softmax_sums[0] = &log_softmax_sums<float>;
  table.log_softmax_sums[1] = &log_softmax_sums<float16>;
  table.log_softmax_finish[0] = &log_softmax_finish<float>;
  table.log_softmax_finish[1] = &log_softmax_finish<float16>;
}

}  // namespace dmlops::DMLOPS_TARGET
