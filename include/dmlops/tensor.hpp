// Tensors as the operators see them: a pointer, a data type, sizes and strides. Nothing here owns
// memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dmlops {

// IEEE 754 binary16, as bits. Storage only: the operators compute in float32.
struct float16 {
  std::uint16_t bits;
};

// The values of DML_TENSOR_DATA_TYPE.
enum class DataType : std::uint32_t {
  unknown = 0,
  float32 = 1,
  float16 = 2,
  uint32 = 3,
  uint16 = 4,
  uint8 = 5,
  int32 = 6,
  int16 = 7,
  int8 = 8,
  float64 = 9,
  uint64 = 10,
  int64 = 11,
  uint4 = 12,
  int4 = 13,
};
constexpr std::size_t kDataTypeCount = 14;

const char* name(DataType type);          // "float32"
std::size_t element_size(DataType type);  // in bytes; 0 for types without whole bytes
bool is_floating_point(DataType type);

constexpr int kMaxRank = 8;
using Dimensions = std::array<std::int64_t, kMaxRank>;  // only the first `rank` entries count

template <class Pointer>
struct BasicTensorView {
  Pointer data = nullptr;
  DataType type = DataType::unknown;
  int rank = 0;
  Dimensions sizes = {};
  Dimensions strides = {};  // in bytes; negative and zero are allowed

  BasicTensorView() = default;
  BasicTensorView(Pointer data_, DataType type_, int rank_, const Dimensions& sizes_,
                  const Dimensions& strides_)
      : data(data_), type(type_), rank(rank_), sizes(sizes_), strides(strides_) {}
  // A view to write is also a view to read.
  template <class Other>
  BasicTensorView(const BasicTensorView<Other>& other)
      : BasicTensorView(other.data, other.type, other.rank, other.sizes, other.strides) {}
};

using TensorView = BasicTensorView<void*>;
using ConstTensorView = BasicTensorView<const void*>;

}  // namespace dmlops
