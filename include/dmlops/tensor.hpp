// Data types, and views of tensors: a pointer, a data type, sizes and strides. A view does not own
// its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "dmlops/dimensions.hpp"
#include "dmlops/error.hpp"

namespace dmlops {

/// IEEE 754 binary16. Storage only: the operators compute in float32.
struct float16 {
  float16() = default;
  DMLOPS_API float16(float value);    ///< rounds to nearest even
  DMLOPS_API operator float() const;  ///< exact

  /// Returns the number with these bits.
  static constexpr float16 from_bits(std::uint16_t bits_) { return float16(bits_, Bits()); }

  std::uint16_t bits;  ///< sign, 5 bits of exponent, 10 of fraction

 private:
  struct Bits {};
  constexpr float16(std::uint16_t bits_, Bits) : bits(bits_) {}
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
constexpr std::size_t kDataTypeCount = 14;  ///< number of data types

DMLOPS_API const char* name(DataType type);          ///< "float32"
DMLOPS_API std::size_t element_size(DataType type);  ///< bytes; 0 for types without whole bytes
DMLOPS_API bool is_floating_point(DataType type);    ///< true for float32 and float16

/// The data type of elements of the C++ type `T`: float16, float, double, or an integer that is
/// neither bool nor a character. DataType::unknown for all other types.
template <class T>
constexpr DataType data_type_of() {
  constexpr bool is_number = std::is_integral_v<T> && !std::is_same_v<T, bool> &&
                             !std::is_same_v<T, char> && !std::is_same_v<T, wchar_t> &&
                             !std::is_same_v<T, char16_t> && !std::is_same_v<T, char32_t>;
  if constexpr (std::is_const_v<T>) {
    return data_type_of<std::remove_const_t<T>>();
  } else if constexpr (std::is_same_v<T, float16>) {
    return DataType::float16;
  } else if constexpr (std::is_same_v<T, float>) {
    return DataType::float32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DataType::float64;
  } else if constexpr (!is_number) {
    return DataType::unknown;
  } else if constexpr (std::is_signed_v<T>) {
    return sizeof(T) == 1   ? DataType::int8
           : sizeof(T) == 2 ? DataType::int16
           : sizeof(T) == 4 ? DataType::int32
                            : DataType::int64;
  } else {
    return sizeof(T) == 1   ? DataType::uint8
           : sizeof(T) == 2 ? DataType::uint16
           : sizeof(T) == 4 ? DataType::uint32
                            : DataType::uint64;
  }
}

/// \cond parts of BasicTensorView
namespace detail {

template <class T, class Pointer>
constexpr bool kIsElement = std::is_convertible_v<T*, Pointer>&&
                            data_type_of<std::remove_all_extents_t<T>>() != DataType::unknown;

template <class Container>
using PointedTo = std::remove_pointer_t<decltype(std::declval<Container&>().data())>;

// The type of the elements of a contiguous container. Not an array, as in the std::span of
// `float x[2][3]`: its size() counts rows, not numbers.
template <class Container>
using ElementOf =
    std::enable_if_t<std::is_integral_v<decltype(std::declval<Container&>().size())> &&
                         !std::is_array_v<PointedTo<Container>>,
                     PointedTo<Container>>;

template <class Array, std::size_t... kAxes>
constexpr IntegerList sizes_of_array(std::index_sequence<kAxes...>) {
  return IntegerList(std::extent_v<Array, kAxes>...);
}

}  // namespace detail
/// \endcond

/// Memory as a tensor. `Pointer` is `void*` or `const void*`. The operators refuse a view whose
/// `data` is null, unless the tensor is empty.
template <class Pointer>
struct BasicTensorView {
  Pointer data = nullptr;             ///< the element whose indices are all 0
  DataType type = DataType::unknown;  ///< of the elements
  int rank = 0;                       ///< number of dimensions, 0 to kMaxRank
  Dimensions sizes = {};              ///< of the dimensions; 0 is an empty tensor
  Dimensions strides = {};            ///< in bytes; negative and zero are allowed

  BasicTensorView() = default;

  /// A tensor with all members given.
  BasicTensorView(Pointer data_, DataType type_, int rank_, const Dimensions& sizes_,
                  const Dimensions& strides_)
      : data(data_), type(type_), rank(rank_), sizes(sizes_), strides(strides_) {}

  /// A packed tensor: in row-major order, without gaps.
  BasicTensorView(Pointer data_, DataType type_, const IntegerList& sizes_)
      : BasicTensorView(data_, type_, sizes_.count(), sizes_.values(),
                        detail::packed_strides(sizes_, element_size(type_))) {}
  /// A tensor with any strides.
  /// \throws Error if there are not as many strides as sizes
  BasicTensorView(Pointer data_, DataType type_, const IntegerList& sizes_,
                  const ElementStrides& strides_)
      : BasicTensorView(data_, type_, sizes_.count(), sizes_.values(),
                        detail::byte_strides(sizes_, strides_, element_size(type_))) {}
  /// A tensor with any strides.
  /// \throws Error if there are not as many strides as sizes
  BasicTensorView(Pointer data_, DataType type_, const IntegerList& sizes_,
                  const ByteStrides& strides_)
      : BasicTensorView(data_, type_, sizes_.count(), sizes_.values(),
                        detail::byte_strides(sizes_, strides_, 1)) {}

  /// A tensor with the data type of the pointer: `TensorView(pointer, {2, 3})` is packed,
  /// `TensorView(pointer, {2, 3}, ElementStrides{1, 2})` has strides.
  template <class T, class... Strides, std::enable_if_t<detail::kIsElement<T, Pointer>, int> = 0>
  BasicTensorView(T* data_, const IntegerList& sizes_, const Strides&... strides_)
      : BasicTensorView(static_cast<Pointer>(data_), data_type_of<std::remove_all_extents_t<T>>(),
                        sizes_, strides_...) {}

  /// An array with its own sizes: `float x[2][3]`.
  template <class T, std::size_t kCount, std::enable_if_t<detail::kIsElement<T, Pointer>, int> = 0>
  BasicTensorView(T (&array)[kCount])
      : BasicTensorView(array, detail::sizes_of_array<T[kCount]>(
                                   std::make_index_sequence<std::rank_v<T[kCount]>>())) {}

  /// A contiguous container such as `std::vector`, `std::array` or `std::span`: 1 dimension.
  template <class Container, class T = detail::ElementOf<Container>,
            std::enable_if_t<detail::kIsElement<T, Pointer>, int> = 0>
  BasicTensorView(Container&& container)
      : BasicTensorView(container.data(), IntegerList(container.size())) {}
  /// A contiguous container with sizes: packed, or with ElementStrides or ByteStrides.
  /// \throws Error if the tensor reaches outside the container
  template <class Container, class... Strides, class T = detail::ElementOf<Container>,
            std::enable_if_t<detail::kIsElement<T, Pointer>, int> = 0>
  BasicTensorView(Container&& container, const IntegerList& sizes_, const Strides&... strides_)
      : BasicTensorView(container.data(), sizes_, strides_...) {
    detail::require_within(rank, sizes, strides, sizeof(T), container.size());
  }

  /// A view of an output is also a view of an input.
  template <class Other, std::enable_if_t<std::is_convertible_v<Other, Pointer>, int> = 0>
  BasicTensorView(const BasicTensorView<Other>& other)
      : BasicTensorView(other.data, other.type, other.rank, other.sizes, other.strides) {}
};

using TensorView = BasicTensorView<void*>;             ///< of an output
using ConstTensorView = BasicTensorView<const void*>;  ///< of an input

}  // namespace dmlops
