// Sets of data types.
#pragma once

#include "dmlops/tensor.hpp"

namespace dmlops {

using TypeSet = std::uint32_t;  // bit i: the DataType of value i

constexpr TypeSet set_of(DataType type) { return TypeSet{1} << static_cast<std::uint32_t>(type); }

constexpr bool contains(TypeSet types, DataType type) {
  return static_cast<std::uint32_t>(type) < kDataTypeCount && (types & set_of(type)) != 0;
}

// The data types that an argument may have, and their description for messages.
struct AcceptedTypes {
  TypeSet set;
  const char* text;

  constexpr bool has(DataType type) const { return contains(set, type); }
};

constexpr AcceptedTypes kFloats = {set_of(DataType::float32) | set_of(DataType::float16),
                                   "float32 and float16"};
constexpr AcceptedTypes kSigned32 = {
    kFloats.set | set_of(DataType::int32) | set_of(DataType::int16) | set_of(DataType::int8),
    "float32, float16, and the signed integers of 8 to 32 bits"};
constexpr AcceptedTypes kNumbers32 = {
    kSigned32.set | set_of(DataType::uint32) | set_of(DataType::uint16) | set_of(DataType::uint8),
    "float32, float16, and the signed and unsigned integers of 8 to 32 bits"};
constexpr AcceptedTypes kNumbers64 = {
    kNumbers32.set | set_of(DataType::int64) | set_of(DataType::uint64),
    "float32, float16, and the signed and unsigned integers of 8 to 64 bits"};

}  // namespace dmlops
