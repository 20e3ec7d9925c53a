// Descriptors from a fuzzer's bytes: hostile in every field, or close to valid.
#pragma once

#include <cstring>
#include <fuzzer/FuzzedDataProvider.h>

#include "descriptors/table.hpp"
#include "dmlops/device.hpp"

namespace dmlops::fuzz {

inline const OperatorInfo& any_operator(FuzzedDataProvider& bytes) {
  const OperatorInfos all = operators();
  return *(all.begin() +
           bytes.ConsumeIntegralInRange<std::ptrdiff_t>(0, all.end() - all.begin() - 1));
}

inline float any_float(FuzzedDataProvider& bytes) {
  const auto bits = bytes.ConsumeIntegral<std::uint32_t>();
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Random bits in every field.
inline BufferTensorDesc any_tensor(FuzzedDataProvider& bytes) {
  BufferTensorDesc tensor;
  tensor.data_type = static_cast<DataType>(bytes.ConsumeIntegral<std::uint8_t>() % 16);
  tensor.flags = static_cast<TensorFlags>(bytes.ConsumeIntegral<std::uint8_t>() % 4);
  tensor.dimension_count = bytes.ConsumeBool() ? bytes.ConsumeIntegralInRange<std::uint32_t>(1, 8)
                                               : bytes.ConsumeIntegral<std::uint32_t>();
  const auto fill = [&](BufferTensorDesc::Dimensions& values) {
    for (std::uint32_t& value : values) {
      value = bytes.ConsumeBool() ? bytes.ConsumeIntegral<std::uint8_t>()
                                  : bytes.ConsumeIntegral<std::uint32_t>();
    }
  };
  fill(tensor.sizes);
  if (bytes.ConsumeBool()) fill(tensor.strides.emplace());
  if (bytes.ConsumeBool()) {
    tensor.total_tensor_size_in_bytes = bytes.ConsumeIntegral<std::uint64_t>();
  }
  if (bytes.ConsumeBool()) {
    tensor.guaranteed_base_offset_alignment = bytes.ConsumeIntegral<std::uint32_t>();
  }
  return tensor;
}

// Any operator type, valid or not, with any tensors; half of the time all are equal, as most
// operators require.
inline OperatorDesc any_desc(FuzzedDataProvider& bytes, int depth = 0) {
  OperatorDesc desc;
  desc.type = bytes.ConsumeIntegralInRange<int>(0, 15) == 0
                  ? static_cast<OperatorType>(bytes.ConsumeIntegral<std::uint32_t>())
                  : any_operator(bytes).type;
  if (depth == 0 || bytes.ConsumeIntegralInRange<int>(0, 7) == 0) {
    const bool alike = bytes.ConsumeBool();
    const BufferTensorDesc common = any_tensor(bytes);
    for (auto& tensor : desc.tensors) {
      if (bytes.ConsumeIntegralInRange<int>(0, 31) == 0) continue;
      tensor = alike ? common : any_tensor(bytes);
    }
  }
  for (float& number : desc.numbers) number = any_float(bytes);
  desc.min_max_data_type = bytes.ConsumeBool()
                               ? desc.tensors[0].value_or(BufferTensorDesc()).data_type
                               : static_cast<DataType>(bytes.ConsumeIntegral<std::uint32_t>());
  for (ScalarUnion& scalar : desc.scalars) scalar.bits = bytes.ConsumeIntegral<std::uint64_t>();
  if (bytes.ConsumeBool()) {
    const float scale = any_float(bytes);
    desc.scale_bias = ScaleBias{scale, any_float(bytes)};
  }
  for (bool& boolean : desc.booleans) boolean = bytes.ConsumeBool();
  desc.axes.resize(bytes.ConsumeIntegralInRange<std::size_t>(0, 10));
  for (std::uint32_t& axis : desc.axes) {
    axis = bytes.ConsumeBool() ? bytes.ConsumeIntegral<std::uint8_t>() % 9
                               : bytes.ConsumeIntegral<std::uint32_t>();
  }
  if (depth < 2 && bytes.ConsumeBool()) {
    desc.fused_activation = std::make_shared<const OperatorDesc>(any_desc(bytes, depth + 1));
  }
  return desc;
}

}  // namespace dmlops::fuzz
