// The kernels of softmax and hardmax.
#include "kernels/softmax/softmax.hpp"

#include "kernels/softmax/hardmax.hpp"
#include "kernels/softmax/softmax_chunks.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {

void set_softmax(KernelTable& table) {
  table.softmax[0] = &softmax<float>;
  table.softmax[1] = &softmax<float16>;
  table.softmax_sums[0] = &softmax_sums<float>;
  table.softmax_sums[1] = &softmax_sums<float16>;
  table.softmax_finish[0] = &softmax_finish<float>;
  table.softmax_finish[1] = &softmax_finish<float16>;
  table.hardmax[0] = &hardmax<float>;
  table.hardmax[1] = &hardmax<float16>;
}

}  // namespace dmlops::DMLOPS_TARGET
