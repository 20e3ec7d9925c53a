// log_softmax: rows of several lengths, an inner axis, several axes.
#include "bench.hpp"

namespace dmlops::bench {

void add_benchmarks() {
  struct Case {
    const char* layout;
    Shape sizes, axes;
  };
  const Case cases[] = {
      {"rows_10", {16384, 10}, {1}},           {"rows_64", {4096, 64}, {1}},
      {"rows_1024", {128, 1024}, {1}},         {"rows_32768", {32, 32768}, {1}},
      {"inner_axis_21", {8, 21, 64, 64}, {1}}, {"outer_axis_1024", {1024, 128}, {0}},
      {"axes_0_2", {64, 128, 128}, {0, 2}},
  };
  add_memcpy(kMiB);
  add_memcpy(4 * kMiB);
  for (const Case& c : cases) {
    for (const DataType type : {DataType::float32, DataType::float16}) {
      add_unary({"log_softmax", type, c.layout, c.sizes},
                [=](const ConstTensorView& input, const TensorView& output) {
                  log_softmax(input, c.axes.data(), c.axes.size(), output);
                });
    }
  }
}

}  // namespace dmlops::bench
