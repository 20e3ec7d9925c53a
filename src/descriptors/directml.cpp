// Converts DirectML's C structs to descriptors. The structs' memory is untrusted: it is copied, may
// be misaligned, and is not read beyond the extent of a valid descriptor.
#include "dmlops/directml.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/text.hpp"
#include "descriptors/names.hpp"
#include "descriptors/table.hpp"

namespace dmlops {
namespace {

[[noreturn]] void refuse_struct(const std::string& where, const std::string& what) {
  throw ValidationError(where + what);
}

template <class T>
T load(const void* from) {
  T value;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
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
      refuse_struct(where, concat(" has no sizes: Sizes is null, and DimensionCount is ",
                                  desc.DimensionCount));
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
    refuse_struct(where, concat(" has tensor type ", static_cast<std::uint32_t>(desc.Type),
                                "; it must be DML_TENSOR_TYPE_BUFFER (1)"));
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
  if (count == 0) return {};
  if (pointer == nullptr) {
    refuse_struct(where, concat("axes are missing: Axes is null, and AxisCount is ", count));
  }
  if (count > kMaxRank) {
    refuse_struct(where, concat("axes has ", count, " entries; no tensor has more than ", kMaxRank,
                                " dimensions"));
  }
  std::vector<std::uint32_t> axes(count);
  std::memcpy(axes.data(), pointer, count * sizeof *pointer);
  return axes;
}

OperatorDesc read(const DML_OPERATOR_DESC& source, const OperatorInfo& op,
                  const std::string& where);

// Reads activations only: other operators are refused by their type, which bounds the nesting.
std::shared_ptr<const OperatorDesc> read_activation(const std::string& where,
                                                    const DML_OPERATOR_DESC* pointer) {
  if (pointer == nullptr) return nullptr;
  const auto fused = load<DML_OPERATOR_DESC>(pointer);
  const OperatorInfo* const op = find_operator(static_cast<OperatorType>(fused.Type));
  OperatorDesc unread;
  unread.type = static_cast<OperatorType>(fused.Type);
  return std::make_shared<const OperatorDesc>(
      op == nullptr || !op->is_fusable
          ? unread
          : read(fused, *op, concat(where, "fused_activation ", op->name, ": ")));
}

// AxisCount and Axes.
struct AxesMembers {
  std::uint32_t count;
  const std::uint32_t* values;
};

OperatorDesc read(const DML_OPERATOR_DESC& source, const OperatorInfo& op,
                  const std::string& where) {
  if (source.Desc == nullptr) refuse_struct(where, "Desc is null");
  OperatorDesc result;
  result.type = op.type;
  std::size_t tensors = 0, numbers = 0, scalars = 0, booleans = 0;
  for (const Field& field : op) {
    const void* const from = static_cast<const char*>(source.Desc) + field.offset;
    switch (field.kind) {
      case FieldKind::tensor:
      case FieldKind::parameter:
      case FieldKind::output:
        result.tensors[tensors++] =
            read_tensor(where + field.name, load<const DML_TENSOR_DESC*>(from));
        break;
      case FieldKind::number:
        result.numbers[numbers++] = load<float>(from);
        break;
      case FieldKind::scalar:
        result.scalars[scalars++] = load<ScalarUnion>(from);
        break;
      case FieldKind::data_type:
        result.min_max_data_type = static_cast<DataType>(load<DML_TENSOR_DATA_TYPE>(from));
        break;
      case FieldKind::scale_bias:
        result.scale_bias = read_scale_bias(load<const DML_SCALE_BIAS*>(from));
        break;
      case FieldKind::boolean:
        result.booleans[booleans++] = load<std::int32_t>(from) != 0;
        break;
      case FieldKind::axes: {
        const auto axes = load<AxesMembers>(from);
        result.axes = read_axes(where, axes.count, axes.values);
        break;
      }
      case FieldKind::activation:
        result.fused_activation = read_activation(where, load<const DML_OPERATOR_DESC*>(from));
        break;
    }
  }
  return result;
}

}  // namespace

BufferTensorDesc to_tensor_desc(const DML_BUFFER_TENSOR_DESC& desc) {
  return with_names(true, [&] {
    return read_buffer_tensor("DML_BUFFER_TENSOR_DESC", load<DML_BUFFER_TENSOR_DESC>(&desc));
  });
}

OperatorDesc to_operator_desc(const DML_OPERATOR_DESC& desc) {
  const auto source = load<DML_OPERATOR_DESC>(&desc);
  const OperatorInfo& op = known_operator(static_cast<OperatorType>(source.Type));
  OperatorDesc result = with_names(true, [&] { return read(source, op, concat(op.name, ": ")); });
  result.directml_names = true;
  return result;
}

}  // namespace dmlops
