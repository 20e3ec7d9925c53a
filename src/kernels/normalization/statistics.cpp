// The kernels of normalization with the input's mean and variance, and of its gradients.
#include "kernels/normalization/statistics.hpp"

#include "kernels/normalization/gradients.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {

void set_statistics(KernelTable& table) {
  table.statistics[0] = &statistics<float>;
  table.statistics[1] = &statistics<float16>;
  table.gradients[0] = &gradients<float>;
  table.gradients[1] = &gradients<float16>;
}

}  // namespace dmlops::DMLOPS_TARGET
