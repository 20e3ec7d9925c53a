/*
 * The C structs of DirectML that dmlops accepts, for C and C++, with the names and memory layout of
 * Microsoft's <DirectML.h>. If Microsoft's header has been included before, its declarations are
 * used instead. Only standard types are used, so no header of Windows is needed.
 */
#ifndef DMLOPS_DIRECTML_TYPES_H
#define DMLOPS_DIRECTML_TYPES_H

/* The include guards of Microsoft's header and of MinGW's. */
#if !defined(DIRECTML_H) && !defined(__directml_h__)

#include <stdint.h>

/* NOLINTBEGIN(readability-identifier-naming, bugprone-macro-parentheses): DirectML's names, some
   of them macro arguments */
/* Microsoft's header has the declarations of the levels up to this one. */
#ifndef DML_TARGET_VERSION
#define DML_TARGET_VERSION 0x6400
#endif

static const unsigned int DML_TENSOR_DIMENSION_COUNT_MAX = 5;
static const unsigned int DML_TENSOR_DIMENSION_COUNT_MAX1 = 8;
static const unsigned int DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT = 16;

/* In C++ the enumerations have a fixed underlying type of 32 bits, as in C: reading a value that is
   no enumerator is defined, and operators refuse the value with a message. */
#if defined(__cplusplus)
#define DMLOPS_INT32 : int32_t
#else
#define DMLOPS_INT32
#endif

enum DML_TENSOR_DATA_TYPE DMLOPS_INT32 {
  DML_TENSOR_DATA_TYPE_UNKNOWN = 0,
  DML_TENSOR_DATA_TYPE_FLOAT32 = 1,
  DML_TENSOR_DATA_TYPE_FLOAT16 = 2,
  DML_TENSOR_DATA_TYPE_UINT32 = 3,
  DML_TENSOR_DATA_TYPE_UINT16 = 4,
  DML_TENSOR_DATA_TYPE_UINT8 = 5,
  DML_TENSOR_DATA_TYPE_INT32 = 6,
  DML_TENSOR_DATA_TYPE_INT16 = 7,
  DML_TENSOR_DATA_TYPE_INT8 = 8,
  DML_TENSOR_DATA_TYPE_FLOAT64 = 9,
  DML_TENSOR_DATA_TYPE_UINT64 = 10,
  DML_TENSOR_DATA_TYPE_INT64 = 11,
  DML_TENSOR_DATA_TYPE_UINT4 = 12,
  DML_TENSOR_DATA_TYPE_INT4 = 13,
};
typedef enum DML_TENSOR_DATA_TYPE DML_TENSOR_DATA_TYPE;

enum DML_TENSOR_TYPE DMLOPS_INT32 {
  DML_TENSOR_TYPE_INVALID = 0,
  DML_TENSOR_TYPE_BUFFER = 1,
};
typedef enum DML_TENSOR_TYPE DML_TENSOR_TYPE;

enum DML_TENSOR_FLAGS DMLOPS_INT32 {
  DML_TENSOR_FLAG_NONE = 0,
  DML_TENSOR_FLAG_OWNED_BY_DML = 1,
};
typedef enum DML_TENSOR_FLAGS DML_TENSOR_FLAGS;
#if defined(__cplusplus)
constexpr DML_TENSOR_FLAGS operator|(DML_TENSOR_FLAGS a, DML_TENSOR_FLAGS b) {
  return static_cast<DML_TENSOR_FLAGS>(static_cast<int32_t>(a) | static_cast<int32_t>(b));
}
constexpr DML_TENSOR_FLAGS operator&(DML_TENSOR_FLAGS a, DML_TENSOR_FLAGS b) {
  return static_cast<DML_TENSOR_FLAGS>(static_cast<int32_t>(a) & static_cast<int32_t>(b));
}
inline DML_TENSOR_FLAGS& operator|=(DML_TENSOR_FLAGS& a, DML_TENSOR_FLAGS b) { return a = a | b; }
inline DML_TENSOR_FLAGS& operator&=(DML_TENSOR_FLAGS& a, DML_TENSOR_FLAGS b) { return a = a & b; }
#endif

enum DML_FEATURE_LEVEL DMLOPS_INT32 {
  DML_FEATURE_LEVEL_1_0 = 0x1000,
  DML_FEATURE_LEVEL_2_0 = 0x2000,
  DML_FEATURE_LEVEL_2_1 = 0x2100,
  DML_FEATURE_LEVEL_3_0 = 0x3000,
  DML_FEATURE_LEVEL_3_1 = 0x3100,
  DML_FEATURE_LEVEL_4_0 = 0x4000,
  DML_FEATURE_LEVEL_4_1 = 0x4100,
  DML_FEATURE_LEVEL_5_0 = 0x5000,
  DML_FEATURE_LEVEL_5_1 = 0x5100,
  DML_FEATURE_LEVEL_5_2 = 0x5200,
  DML_FEATURE_LEVEL_6_0 = 0x6000,
  DML_FEATURE_LEVEL_6_1 = 0x6100,
  DML_FEATURE_LEVEL_6_2 = 0x6200,
  DML_FEATURE_LEVEL_6_3 = 0x6300,
  DML_FEATURE_LEVEL_6_4 = 0x6400,
};
typedef enum DML_FEATURE_LEVEL DML_FEATURE_LEVEL;

typedef struct DML_BUFFER_TENSOR_DESC {
  DML_TENSOR_DATA_TYPE DataType;
  DML_TENSOR_FLAGS Flags;
  uint32_t DimensionCount;
  const uint32_t* Sizes;
  const uint32_t* Strides; /* may be null */
  uint64_t TotalTensorSizeInBytes;
  uint32_t GuaranteedBaseOffsetAlignment;
} DML_BUFFER_TENSOR_DESC;

typedef struct DML_TENSOR_DESC {
  DML_TENSOR_TYPE Type;
  const void* Desc; /* a DML_BUFFER_TENSOR_DESC */
} DML_TENSOR_DESC;

typedef struct DML_SCALE_BIAS {
  float Scale;
  float Bias;
} DML_SCALE_BIAS;

typedef union DML_SCALAR_UNION {
  unsigned char Bytes[8];
  int8_t Int8;
  uint8_t UInt8;
  int16_t Int16;
  uint16_t UInt16;
  int32_t Int32;
  uint32_t UInt32;
  int64_t Int64;
  uint64_t UInt64;
  float Float32;
  double Float64;
} DML_SCALAR_UNION;

/* The operators, and a struct for each. */
#include "dmlops/directml_operators.h"

#undef DMLOPS_INT32
/* NOLINTEND(readability-identifier-naming, bugprone-macro-parentheses) */

#endif
#endif
