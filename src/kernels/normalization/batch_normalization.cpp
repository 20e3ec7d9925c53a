// The kernels of batch normalization, with every activation.
#include "kernels/normalization/batch_normalization.hpp"

#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

template <class... Acts>
void set_each_normalization(KernelTable& table, List<Acts...>) {
  std::size_t i = 0;
  ((table.batch_normalization[i][0] = &batch_normalization<float, Acts>,
    table.batch_normalization[i][1] = &batch_normalization<float16, Acts>, ++i),
   ...);
}

}  // namespace

void set_batch_normalizations(KernelTable& table) {
  set_each_normalization(table, FusableActivations());
}

}  // namespace dmlops::DMLOPS_TARGET
