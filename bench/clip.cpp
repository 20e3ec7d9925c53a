// clip: all data types dense, and scaled.
#include "bench.hpp"

namespace dmlops::bench {

void add_benchmarks() {
  const std::vector<DataType> types = {
      DataType::float32, DataType::float16, DataType::int8,   DataType::uint8, DataType::int16,
      DataType::uint16,  DataType::int32,   DataType::uint32, DataType::int64, DataType::uint64};
  const Scalar min(std::int64_t{0}), max(std::int64_t{1});
  add_dense("clip", types, [=](const ConstTensorView& input, const TensorView& output) {
    clip(input, min, max, std::nullopt, output);
  });
  for (const DataType type : types) {
    const std::int64_t size = 128 * kKiB / static_cast<std::int64_t>(element_size(type));
    add_unary({"clip", type, "scaled", {size}},
              [=](const ConstTensorView& input, const TensorView& output) {
                clip(input, min, max, ScaleBias{0.5F, 1}, output);
              });
  }
}

}  // namespace dmlops::bench
