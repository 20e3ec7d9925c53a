// Sizes, strides and axes as arguments: lists of integers, in braces or in any container.
#pragma once

#if __cplusplus < 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "the headers of dmlops need C++17; dmlops/dmlops.h is the C interface"
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "dmlops/error.hpp"

namespace dmlops {

constexpr int kMaxRank = 8;  ///< maximum number of dimensions of a tensor
/// Sizes or strides; only the first `rank` entries count.
using Dimensions = std::array<std::int64_t, kMaxRank>;

/// \cond parts of IntegerList
namespace detail {

// Throws Error: more integers than dimensions. Not in the header, so that programs without
// exceptions can include it.
[[noreturn]] DMLOPS_API void refuse_integers(std::size_t count);

}  // namespace detail
/// \endcond

/// Sizes, strides or axes: at most kMaxRank integers of any types, `{2, 3}`, `{rows, columns}`, or
/// a contiguous container of integers.
class IntegerList {
 public:
  IntegerList() = default;  ///< an empty list

  /// The given integers.
  template <
      class... Integers,
      std::enable_if_t<(sizeof...(Integers) > 0) && (std::is_integral_v<Integers> && ...), int> = 0>
  constexpr IntegerList(Integers... values)
      : values_{static_cast<std::int64_t>(values)...}, count_(sizeof...(Integers)) {
    static_assert(sizeof...(Integers) <= kMaxRank, "a tensor has at most 8 dimensions");
  }

  /// The integers of a container.
  /// \throws Error if there are more than kMaxRank
  template <class Container,
            std::enable_if_t<std::is_integral_v<std::remove_reference_t<
                                 decltype(*std::declval<const Container&>().data())>>,
                             int> = 0>
  IntegerList(const Container& container) : count_(static_cast<int>(container.size())) {
    if (container.size() > values_.size()) detail::refuse_integers(container.size());
    for (std::size_t d = 0; d < container.size(); ++d) {
      values_[d] = static_cast<std::int64_t>(container.data()[d]);
    }
  }
  /// Deleted for Dimensions, whose number of used entries is unknown.
  IntegerList(const Dimensions&) = delete;

  int count() const { return count_; }                  ///< number of integers
  const Dimensions& values() const { return values_; }  ///< the integers, then zeros

 private:
  Dimensions values_ = {};
  int count_ = 0;
};

/// Strides in elements, one for each size: `ElementStrides{1, 2}`.
struct ElementStrides : IntegerList {
  using IntegerList::IntegerList;
};

/// Strides in bytes, one for each size: `ByteStrides{4, 8}`.
struct ByteStrides : IntegerList {
  using IntegerList::IntegerList;
};

/// \cond parts of BasicTensorView
namespace detail {

// Returns packed strides in bytes. Overflow saturates, and no operator accepts saturated strides.
DMLOPS_API Dimensions packed_strides(const IntegerList& sizes, std::size_t element);
// Converts strides in units of `unit` bytes to bytes, saturating. Throws Error unless there is one
// stride for each size.
DMLOPS_API Dimensions byte_strides(const IntegerList& sizes, const IntegerList& strides,
                                   std::size_t unit);
// Throws Error if the tensor reaches outside a container of `count` elements of `element` bytes.
DMLOPS_API void require_within(int rank, const Dimensions& sizes, const Dimensions& strides,
                               std::size_t element, std::size_t count);

}  // namespace detail
/// \endcond

}  // namespace dmlops
