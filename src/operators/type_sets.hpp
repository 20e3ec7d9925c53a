// Sets of data types.
#pragma once

#include "dmlops/tensor.hpp"

namespace dmlops {

using TypeSet = std::uint32_t;  // bit i: the DataType of value i

constexpr TypeSet set_of(DataType type) { return TypeSet{1} << static_cast<std::uint32_t>(type); }

constexpr TypeSet kFloats = set_of(DataType::float32) | set_of(DataType::float16);
constexpr TypeSet kSigned32 =
    set_of(DataType::int32) | set_of(DataType::int16) | set_of(DataType::int8);
constexpr TypeSet kUnsigned32 =
    set_of(DataType::uint32) | set_of(DataType::uint16) | set_of(DataType::uint8);
constexpr TypeSet kNumbers32 = kFloats | kSigned32 | kUnsigned32;
constexpr TypeSet kNumbers64 = kNumbers32 | set_of(DataType::int64) | set_of(DataType::uint64);

constexpr bool contains(TypeSet types, DataType type) {
  return static_cast<std::uint32_t>(type) < kDataTypeCount && (types & set_of(type)) != 0;
}

}  // namespace dmlops
