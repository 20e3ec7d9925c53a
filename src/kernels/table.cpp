// The kernels of one instruction set. Compiled once for each, with its flags and its name as
// DMLOPS_TARGET.
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {

void set_kernels(KernelTable& table) {
  set_activations(table);
  set_batch_normalizations(table);
  set_clip(table);
  set_gradients(table);
  set_log_softmax(table);
  set_softmax(table);
  set_statistics(table);
  set_two_inputs(table);
}

}  // namespace dmlops::DMLOPS_TARGET
