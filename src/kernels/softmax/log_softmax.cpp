// The kernels of log_softmax, for whole groups and in chunks.
#include "kernels/softmax/log_softmax.hpp"

#include "kernels/softmax/log_softmax_chunks.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {

void set_log_softmax(KernelTable& table) {
  table.log_softmax[0] = &log_softmax<float>;
  table.log_softmax[1] = &log_softmax<float16>;
  table.log_softmax_sums[0] = &log_softmax_sums<float>;
  table.log_softmax_sums[1] = &log_softmax_sums<float16>;
  table.log_softmax_finish[0] = &log_softmax_finish<float>;
  table.log_softmax_finish[1] = &log_softmax_finish<float16>;
}

}  // namespace dmlops::DMLOPS_TARGET
