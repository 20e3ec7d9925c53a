// hard_sigmoid: dense.
#include "bench.hpp"
#include "dmlops/activations.hpp"

namespace dmlops::bench {

void add_benchmarks() {
  add_dense("hard_sigmoid", {DataType::float32, DataType::float16},
            [](const ConstTensorView& input, const TensorView& output) {
              hard_sigmoid(input, 0.2F, 0.5F, output);
            });
}

}  // namespace dmlops::bench
