// The kernels of the activations.
#include "kernels/elementwise/activation_rows.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

template <class... Acts>
void set_each_activation(KernelTable& table, List<Acts...>) {
  std::size_t i = 0;
  ((table.activation[i][0] = &activation<float, Acts>,
    table.activation[i][1] = &activation<float16, Acts>, ++i),
   ...);
}

}  // namespace

void set_activations(KernelTable& table) { set_each_activation(table, Activations()); }

}  // namespace dmlops::DMLOPS_TARGET
