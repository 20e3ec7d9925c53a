// The traversal of strided layouts, by clip, whose own cost is negligible. Outputs are dense.
#include "bench.hpp"

namespace dmlops::bench {

void add_benchmarks() {
  struct Layout {
    const char* name;
    Shape sizes, strides;  // of the input, in elements
  };
  const Layout layouts[] = {
      {"every_second", {kMiB}, {2}},
      {"padded_rows", {1024, 1024}, {1040, 1}},
      {"rows_of_32", {8, 16, 16, 16, 32}, {16 * 16 * 16 * 81, 16 * 16 * 81, 16 * 40, 40, 1}},
      {"broadcast_rows", {1024, 1024}, {0, 1}},
      {"broadcast_columns", {1024, 1024}, {1, 0}},
      {"transposed", {1024, 1024}, {1, 1024}},
      {"transposed_odd", {1000, 1000}, {1, 1001}},
      {"nhwc_to_nchw", {8, 64, 56, 56}, {64 * 56 * 56, 1, 64 * 56, 64}},
      {"nhwc3_to_nchw", {8, 3, 224, 224}, {3 * 224 * 224, 1, 3 * 224, 3}},
      {"reversed_8d", {8, 8, 4, 4, 4, 4, 4, 4}, {1, 8, 64, 256, 1024, 4096, 16384, 65536}},
  };
  const Scalar min(std::int64_t{0}), max(std::int64_t{1});
  const Unary call = [=](const ConstTensorView& input, const TensorView& output) {
    clip(input, min, max, std::nullopt, output);
  };
  for (const std::int64_t mib : {1, 2, 4, 8}) add_memcpy(mib * kMiB);
  for (const Layout& layout : layouts) {
    for (const DataType type :
         {DataType::uint8, DataType::float16, DataType::float32, DataType::int64}) {
      add_unary({"clip", type, layout.name, layout.sizes}, call, layout.strides);
    }
  }
}

}  // namespace dmlops::bench
