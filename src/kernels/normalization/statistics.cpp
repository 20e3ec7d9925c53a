// The kernels of normalization with the input's mean and variance.
#include "kernels/normalization/statistics.hpp"

#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {

void set_statistics(KernelTable& table) {
  table.statistics[0] = &statistics<float>;
  table.statistics[1] = &statistics<float16>;
}

}  // namespace dmlops::DMLOPS_TARGET
