// Converts DirectML's C structs to descriptors. The structs' memory is untrusted: it is copied, may
// be misaligned, and is not read beyond the extent of a valid descriptor.
#include "dmlops/directml.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "descriptors/table.hpp"

namespace dmlops {
namespace {

[[noreturn]] void refuse_struct(const std::string& where, const std::string& what) {
  throw ValidationError(where + what);
}

template <class T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Copies `count` values, at most the capacity of the result.
void load_some(const std::uint32_t* from, std::uint32_t count,
               BufferTensorDesc::Dimensions& result) {
  std::memcpy(result.data(), from, std::min<std::size_t>(count, result.size()) * sizeof *from);
}

BufferTensorDesc read_buffer_tensor(const std::string& where, const DML_BUFFER_TENSOR_DESC& desc) {
  BufferTensorDesc tensor;
  tensor.data_type = static_cast<DataType>(desc.DataType);
  tensor.flags = static_cast<TensorFlags>(desc.Flags);
  tensor.dimension_count = desc.DimensionCount;
  if (desc.DimensionCount > 0) {
    if (desc.Sizes == nullptr) {
      refuse_struct(where, " has no sizes: Sizes is null, and DimensionCount is " +
                               std::to_string(desc.DimensionCount));
    }
    load_some(desc.Sizes, desc.DimensionCount, tensor.sizes);
  }
  if (desc.Strides != nullptr) {
    load_some(desc.Strides, desc.DimensionCount, tensor.strides.emplace());
  }
  tensor.total_tensor_size_in_bytes = desc.TotalTensorSizeInBytes;
  tensor.guaranteed_base_offset_alignment = desc.GuaranteedBaseOffsetAlignment;
  return tensor;
}

std::optional<BufferTensorDesc> read_tensor(const std::string& where,
                                            const DML_TENSOR_DESC* pointer) {
  if (pointer == nullptr) return std::nullopt;  // validation refuses null if the tensor is required
  const auto desc = load<DML_TENSOR_DESC>(pointer);
  if (desc.Type != DML_TENSOR_TYPE_BUFFER) {
    refuse_struct(where, " has tensor type " +
                             std::to_string(static_cast<std::uint32_t>(desc.Type)) +
                             "; it must be DML_TENSOR_TYPE_BUFFER (1)");
  }
  if (desc.Desc == nullptr) refuse_struct(where, " is a DML_TENSOR_DESC whose Desc is null");
  return read_buffer_tensor(where, load<DML_BUFFER_TENSOR_DESC>(desc.Desc));
}

std::optional<ScaleBias> read_scale_bias(const DML_SCALE_BIAS* pointer) {
  if (pointer == nullptr) return std::nullopt;
  const auto value = load<DML_SCALE_BIAS>(pointer);
  return ScaleBias{value.Scale, value.Bias};
}

std::vector<std::uint32_t> read_axes(const std::string& where, std::uint32_t count,
                                     const std::uint32_t* pointer) {
  if (count == 0) return {};  // validation refuses this count
  if (pointer == nullptr) {
    refuse_struct(where,
                  "axes are missing: Axes is null, and AxisCount is " + std::to_string(count));
  }
  if (count > kMaxRank) {
    refuse_struct(where, "axes has " + std::to_string(count) +
                             " entries; no tensor has more than " + std::to_string(kMaxRank) +
                             " dimensions");
  }
  std::vector<std::uint32_t> axes(count);
  std::memcpy(axes.data(), pointer, count * sizeof *pointer);
  return axes;
}

// The tensors of all activations and of LOG_SOFTMAX. An activation's numbers follow.
struct Unary {
  const DML_TENSOR_DESC* input;
  const DML_TENSOR_DESC* output;
};

OperatorDesc read(const DML_OPERATOR_DESC& source, const OperatorInfo& op,
                  const std::string& where) {
  if (source.Desc == nullptr) refuse_struct(where, "Desc is null");
  OperatorDesc result;
  result.type = op.type;
  const auto read_tensors = [&](std::initializer_list<const DML_TENSOR_DESC*> pointers) {
    int i = 0;
    for (const DML_TENSOR_DESC* pointer : pointers) {
      result.tensors[static_cast<std::size_t>(i)] =
          read_tensor(where + tensor_name(op, i), pointer);
      ++i;
    }
  };
  switch (op.family) {
    case Family::clip: {
      const auto desc = load<DML_ELEMENT_WISE_CLIP_OPERATOR_DESC>(source.Desc);
      read_tensors({desc.InputTensor, desc.OutputTensor});
      result.scale_bias = read_scale_bias(desc.ScaleBias);
      result.numbers = {desc.Min, desc.Max};
      break;
    }
    case Family::clip1: {
      const auto desc = load<DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC>(source.Desc);
      read_tensors({desc.InputTensor, desc.OutputTensor});
      result.scale_bias = read_scale_bias(desc.ScaleBias);
      result.min_max_data_type = static_cast<DataType>(desc.MinMaxDataType);
      result.scalars = {load<ScalarUnion>(&desc.Min), load<ScalarUnion>(&desc.Max)};
      break;
    }
    case Family::batch_normalization: {
      const auto desc = load<DML_BATCH_NORMALIZATION_OPERATOR_DESC>(source.Desc);
      read_tensors({desc.InputTensor, desc.MeanTensor, desc.VarianceTensor, desc.ScaleTensor,
                    desc.BiasTensor, desc.OutputTensor});
      result.spatial = desc.Spatial != 0;
      result.numbers = {desc.Epsilon, 0};
      if (desc.FusedActivation == nullptr) break;
      // Reads activations only: other operators are refused by their type, which bounds the
      // nesting.
      const auto fused = load<DML_OPERATOR_DESC>(desc.FusedActivation);
      const OperatorInfo* const activation = find_operator(static_cast<OperatorType>(fused.Type));
      OperatorDesc unread;
      unread.type = static_cast<OperatorType>(fused.Type);
      result.fused_activation = std::make_shared<const OperatorDesc>(
          activation == nullptr || !activation->fusable()
              ? unread
              : read(fused, *activation, where + "fused_activation " + activation->name + ": "));
      break;
    }
    case Family::log_softmax1: {
      const auto desc = load<DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC>(source.Desc);
      read_tensors({desc.InputTensor, desc.OutputTensor});
      result.axes = read_axes(where, desc.AxisCount, desc.Axes);
      break;
    }
    case Family::activation: {
      const int count = info(op.activation).parameter_count;
      std::memcpy(result.numbers.data(), static_cast<const char*>(source.Desc) + sizeof(Unary),
                  static_cast<std::size_t>(count) * sizeof(float));
      [[fallthrough]];
    }
    case Family::log_softmax: {
      const auto desc = load<Unary>(source.Desc);
      read_tensors({desc.input, desc.output});
      break;
    }
  }
  return result;
}

}  // namespace

BufferTensorDesc to_tensor_desc(const DML_BUFFER_TENSOR_DESC& desc) {
  return read_buffer_tensor("DML_BUFFER_TENSOR_DESC", load<DML_BUFFER_TENSOR_DESC>(&desc));
}

OperatorDesc to_operator_desc(const DML_OPERATOR_DESC& desc) {
  const auto source = load<DML_OPERATOR_DESC>(&desc);
  const OperatorInfo& op = known_operator(static_cast<OperatorType>(source.Type));
  return read(source, op, std::string(op.name) + ": ");
}

}  // namespace dmlops
