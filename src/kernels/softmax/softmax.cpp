// The kernels of softmax and hardmax.
#include "kernels/softmax/softmax.hpp"

#include "kernels/softmax/hardmax.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {

void set_softmax(KernelTable& table) {
  table.softmax[0] = &softmax<float>;
  table.softmax[1] = &softmax<float16>;
  table.hardmax[0] = &hardmax<float>;
  table.hardmax[1] = &hardmax<float16>;
}

}  // namespace dmlops::DMLOPS_TARGET
