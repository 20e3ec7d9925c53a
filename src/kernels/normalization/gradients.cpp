// The kernels of the gradients of batch normalization.
#include "kernels/normalization/gradients.hpp"

#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {

void set_gradients(KernelTable& table) {
  table.gradients[0] = &gradients<float>;
  table.gradients[1] = &gradients<float16>;
}

}  // namespace dmlops::DMLOPS_TARGET
