// Tensors as the operators see them: a pointer, a data type, sizes and strides. Nothing here owns
// memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dmlops/export.hpp"

namespace dmlops {

/// IEEE 754 binary16, as bits. Storage only: the operators compute in float32.
struct float16 {
  std::uint16_t bits;  ///< sign, 5 bits of exponent, 10 of fraction
};

/// The values of DML_TENSOR_DATA_TYPE.
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
constexpr std::size_t kDataTypeCount = 14;  ///< how many there are

DMLOPS_API const char* name(DataType type);          ///< "float32"
DMLOPS_API std::size_t element_size(DataType type);  ///< bytes; 0 for types without whole bytes
DMLOPS_API bool is_floating_point(DataType type);    ///< is it one that the operators compute in?

constexpr int kMaxRank = 8;  ///< a tensor's most dimensions
/// Sizes or strides; only the first `rank` entries count.
using Dimensions = std::array<std::int64_t, kMaxRank>;

/// Memory as a tensor: `Pointer` is `void*` or `const void*`.
template <class Pointer>
struct BasicTensorView {
  Pointer data = nullptr;             ///< the element whose indices are all 0
  DataType type = DataType::unknown;  ///< of the elements
  int rank = 0;                       ///< the number of dimensions, 0 to kMaxRank
  Dimensions sizes;                   ///< of the dimensions; 0 is an empty tensor
  Dimensions strides;                 ///< in bytes; negative and zero are allowed

  BasicTensorView() : sizes(), strides() {}
  /// All but the sizes and strides, whose values are not set.
  BasicTensorView(Pointer data_, DataType type_, int rank_)
      : data(data_), type(type_), rank(rank_) {}
  /// All of it.
  BasicTensorView(Pointer data_, DataType type_, int rank_, const Dimensions& sizes_,
                  const Dimensions& strides_)
      : data(data_), type(type_), rank(rank_), sizes(sizes_), strides(strides_) {}
  /// A view to write is also a view to read.
  template <class Other>
  BasicTensorView(const BasicTensorView<Other>& other)
      : BasicTensorView(other.data, other.type, other.rank, other.sizes, other.strides) {}
};

using TensorView = BasicTensorView<void*>;             ///< to write
using ConstTensorView = BasicTensorView<const void*>;  ///< to read

}  // namespace dmlops
