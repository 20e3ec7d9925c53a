// Valid or almost valid descriptors of moderate sizes from a fuzzer's bytes.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "any_desc.hpp"

namespace dmlops::fuzz {

// Draws a parameter within the range of an activation's error bound.
inline float parameter(FuzzedDataProvider& bytes) {
  constexpr float values[] = {0.0f, 0.01f, 0.2f, 0.5f, 1.0f, 1.5f, 3.0f, -0.5f, -1.0f, -2.0f};
  return bytes.PickValueInArray(values);
}

inline std::uint32_t any_size(FuzzedDataProvider& bytes, std::uint32_t rank) {
  const bool small = bytes.ConsumeIntegralInRange<std::uint32_t>(0, rank) > 0;
  return small ? bytes.ConsumeIntegralInRange<std::uint32_t>(1, 4)
               : bytes.ConsumeIntegralInRange<std::uint32_t>(1, 80);
}

// Sizes of up to kElements elements: half of the time mostly small; otherwise as
// `dmlops bench --random` draws them, the number of elements and each size uniform in its
// logarithm.
inline void set_sizes(FuzzedDataProvider& bytes, BufferTensorDesc& tensor) {
  constexpr std::uint32_t kElements = 1500, kEighths = 84;  // of log2(kElements)
  const std::uint32_t rank = tensor.dimension_count;
  const bool logarithmic = bytes.ConsumeBool();
  const std::uint32_t first = bytes.ConsumeIntegralInRange<std::uint32_t>(0, rank - 1);
  std::uint32_t elements = 1, eighths = bytes.ConsumeIntegralInRange<std::uint32_t>(0, kEighths);
  for (std::uint32_t d = 0; d < rank; ++d) {
    std::uint32_t& size = tensor.sizes[(first + d) % rank];
    if (logarithmic) {
      const std::uint32_t taken =
          d + 1 == rank ? eighths : bytes.ConsumeIntegralInRange<std::uint32_t>(0, eighths);
      eighths -= taken;
      size = static_cast<std::uint32_t>(std::lround(std::exp2(taken / 8.0)));
    } else {
      size = any_size(bytes, rank);
    }
    size = std::min(size, std::max(1u, kElements / elements));
    elements *= size;
  }
}

// Strides in elements: axes in any order, dense or with steps and gaps; inputs also with broadcast
// dimensions, or with small random strides.
inline void set_strides(FuzzedDataProvider& bytes, BufferTensorDesc& tensor, bool output) {
  if (bytes.ConsumeIntegralInRange<int>(0, 3) == 0) return;
  BufferTensorDesc::Dimensions& strides = tensor.strides.emplace();
  if (bytes.ConsumeIntegralInRange<int>(0, 7) == 0) {
    for (std::uint32_t& stride : strides)
      stride = bytes.ConsumeIntegralInRange<std::uint32_t>(0, 40);
    return;
  }
  std::uint32_t order[kMaxRank];  // the fastest axis first
  const std::uint32_t rank = tensor.dimension_count;
  for (std::uint32_t d = 0; d < rank; ++d) order[d] = rank - 1 - d;
  if (bytes.ConsumeBool()) {
    for (std::uint32_t d = rank; d-- > 1;) {
      std::swap(order[d], order[bytes.ConsumeIntegralInRange<std::uint32_t>(0, d)]);
    }
  }
  const bool gaps = bytes.ConsumeBool(), steps = bytes.ConsumeBool();
  std::uint32_t run = 1;
  for (std::uint32_t d = 0; d < rank; ++d) {
    const std::uint32_t axis = order[d];
    if (gaps) {
      const bool wide = bytes.ConsumeIntegralInRange<int>(0, 7) == 0;
      run += bytes.ConsumeIntegralInRange<std::uint32_t>(0, wide ? 16 : 2);
    }
    if (steps && bytes.ConsumeIntegralInRange<int>(0, 2) == 0) {
      constexpr std::uint32_t factors[] = {2, 3, 4, 8};
      run *= bytes.PickValueInArray(factors);
    }
    const bool repeated = !output && bytes.ConsumeIntegralInRange<int>(0, 5) == 0;
    strides[axis] = repeated ? 0 : run;
    run *= repeated ? 1 : tensor.sizes[axis];
  }
}

inline BufferTensorDesc any_input(FuzzedDataProvider& bytes, const OperatorInfo& op) {
  BufferTensorDesc input;
  constexpr DataType types[] = {
      DataType::float32, DataType::float16, DataType::int8,   DataType::uint8, DataType::int16,
      DataType::uint16,  DataType::int32,   DataType::uint32, DataType::int64, DataType::uint64};
  const bool clips = op.family == Family::clip;
  const std::size_t kinds =
      clips || bytes.ConsumeIntegralInRange<int>(0, 7) == 0 ? std::size(types) : 2;
  input.data_type = types[bytes.ConsumeIntegralInRange<std::size_t>(0, kinds - 1)];
  input.dimension_count = bytes.ConsumeIntegralInRange<std::uint32_t>(1, 8);
  set_sizes(bytes, input);
  return input;
}

inline void set_tensors(FuzzedDataProvider& bytes, const OperatorInfo& op,
                        const BufferTensorDesc& input, OperatorDesc& desc) {
  for (int i = 0; i < op.tensor_count(); ++i) {
    const Field& field = op.fields[i];
    if (field.optional && bytes.ConsumeBool()) continue;
    BufferTensorDesc& tensor = desc.tensors[static_cast<std::size_t>(i)].emplace(input);
    const bool output = field.kind == FieldKind::output;
    if (field.like != 0) tensor.sizes = desc.tensors[static_cast<std::size_t>(field.like)]->sizes;
    for (std::uint32_t d = 0; field.kind == FieldKind::parameter && d < input.dimension_count;
         ++d) {
      if (bytes.ConsumeBool()) tensor.sizes[d] = 1;
    }
    set_strides(bytes, tensor, output);
    if (!output && bytes.ConsumeIntegralInRange<int>(0, 7) == 0) {
      tensor.flags = TensorFlags::owned_by_dml;
    }
  }
}

inline void set_axes(FuzzedDataProvider& bytes, std::uint32_t rank, OperatorDesc& desc) {
  if (bytes.ConsumeBool()) {
    desc.axes = {bytes.ConsumeIntegralInRange<std::uint32_t>(0, rank - 1)};
    return;
  }
  const auto axes = bytes.ConsumeIntegral<std::uint8_t>();
  const std::uint32_t known = bytes.ConsumeIntegralInRange<int>(0, 7) == 0 ? kMaxRank : rank;
  for (std::uint32_t axis = 0; axis < known; ++axis) {
    if ((axes >> axis & 1) != 0) desc.axes.push_back(axis);
  }
}

inline std::shared_ptr<const OperatorDesc> any_fused_activation(FuzzedDataProvider& bytes) {
  OperatorDesc fused;
  do {
    fused.type = any_operator(bytes).type;
  } while (!find_operator(fused.type)->is_fusable && bytes.remaining_bytes() > 0);
  for (float& number : fused.numbers) number = parameter(bytes);
  return std::make_shared<const OperatorDesc>(fused);
}

// A valid or almost valid descriptor.
inline OperatorDesc plausible_desc(FuzzedDataProvider& bytes) {
  OperatorDesc desc;
  // Half of the time an operator with special loops, mostly of the softmax family.
  constexpr OperatorType special[] = {
      OperatorType::activation_log_softmax1, OperatorType::activation_log_softmax1,
      OperatorType::activation_softmax1,     OperatorType::activation_hardmax1,
      OperatorType::batch_normalization,     OperatorType::element_wise_clip,
      OperatorType::element_wise_clip1};
  desc.type = bytes.ConsumeBool() ? bytes.PickValueInArray(special) : any_operator(bytes).type;
  const OperatorInfo& op = *find_operator(desc.type);
  const BufferTensorDesc input = any_input(bytes, op);
  set_tensors(bytes, op, input, desc);
  const bool curved = op.family == Family::activation;
  for (float& number : desc.numbers) number = curved ? parameter(bytes) : any_float(bytes);
  for (const Field& field : op) {
    if (field.name == std::string("epsilon")) desc.numbers[0] = 1e-5f;
  }
  if (op.has(FieldKind::boolean)) {
    for (bool& boolean : desc.booleans) boolean = bytes.ConsumeBool();
  }
  desc.min_max_data_type = input.data_type;
  for (ScalarUnion& scalar : desc.scalars) scalar.bits = bytes.ConsumeIntegral<std::uint64_t>();
  if (bytes.ConsumeBool()) {
    const float scale = any_float(bytes);
    desc.scale_bias = ScaleBias{scale, any_float(bytes)};
  }
  set_axes(bytes, input.dimension_count, desc);
  if (op.has(FieldKind::activation) && bytes.ConsumeBool())
    desc.fused_activation = any_fused_activation(bytes);
  return desc;
}

}  // namespace dmlops::fuzz
