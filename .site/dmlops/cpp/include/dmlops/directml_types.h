// The C structs of DirectML that dmlops takes, with the names and the memory layout that they have
// in Microsoft's <DirectML.h>, for programs that do not include it. Declared with the standard's
// types, so that nothing of Windows is needed.
#pragma once

#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming): DirectML's names
#if !defined(DMLOPS_NO_WINDOWS_TYPES)
// The names in which such programs are written. Where Windows' own headers are included as well,
// these repeat them, which C++ allows.
typedef unsigned int UINT;
typedef int BOOL;
typedef float FLOAT;
#if defined(_WIN32)
typedef unsigned long long UINT64;
#else
typedef std::uint64_t UINT64;
#endif
#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif
#endif

// Microsoft's header has the declarations of the levels up to this one.
#ifndef DML_TARGET_VERSION
#define DML_TARGET_VERSION 0x6400
#endif

static const unsigned int DML_TENSOR_DIMENSION_COUNT_MAX = 5;
static const unsigned int DML_TENSOR_DIMENSION_COUNT_MAX1 = 8;
static const unsigned int DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT = 16;

// The enumerations have a fixed type, 32 bits as in C: any number that a program writes there can
// be read, and is refused in words.

enum DML_TENSOR_DATA_TYPE : std::int32_t {
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

enum DML_TENSOR_TYPE : std::int32_t {
  DML_TENSOR_TYPE_INVALID = 0,
  DML_TENSOR_TYPE_BUFFER = 1,
};

enum DML_TENSOR_FLAGS : std::int32_t {
  DML_TENSOR_FLAG_NONE = 0,
  DML_TENSOR_FLAG_OWNED_BY_DML = 1,
};
constexpr DML_TENSOR_FLAGS operator|(DML_TENSOR_FLAGS a, DML_TENSOR_FLAGS b) {
  return static_cast<DML_TENSOR_FLAGS>(static_cast<std::int32_t>(a) | static_cast<std::int32_t>(b));
}
constexpr DML_TENSOR_FLAGS operator&(DML_TENSOR_FLAGS a, DML_TENSOR_FLAGS b) {
  return static_cast<DML_TENSOR_FLAGS>(static_cast<std::int32_t>(a) & static_cast<std::int32_t>(b));
}
inline DML_TENSOR_FLAGS& operator|=(DML_TENSOR_FLAGS& a, DML_TENSOR_FLAGS b) { return a = a | b; }
inline DML_TENSOR_FLAGS& operator&=(DML_TENSOR_FLAGS& a, DML_TENSOR_FLAGS b) { return a = a & b; }

enum DML_OPERATOR_TYPE : std::int32_t {
  DML_OPERATOR_INVALID = 0,
  DML_OPERATOR_ELEMENT_WISE_CLIP = 8,
  DML_OPERATOR_ACTIVATION_ELU = 35,
  DML_OPERATOR_ACTIVATION_HARD_SIGMOID = 37,
  DML_OPERATOR_ACTIVATION_IDENTITY = 38,
  DML_OPERATOR_ACTIVATION_LEAKY_RELU = 39,
  DML_OPERATOR_ACTIVATION_LINEAR = 40,
  DML_OPERATOR_ACTIVATION_LOG_SOFTMAX = 41,
  DML_OPERATOR_ACTIVATION_PARAMETRIC_SOFTPLUS = 43,
  DML_OPERATOR_ACTIVATION_RELU = 44,
  DML_OPERATOR_ACTIVATION_SCALED_ELU = 45,
  DML_OPERATOR_ACTIVATION_SCALED_TANH = 46,
  DML_OPERATOR_ACTIVATION_SIGMOID = 47,
  DML_OPERATOR_ACTIVATION_SOFTPLUS = 49,
  DML_OPERATOR_ACTIVATION_SOFTSIGN = 50,
  DML_OPERATOR_ACTIVATION_TANH = 51,
  DML_OPERATOR_ACTIVATION_THRESHOLDED_RELU = 52,
  DML_OPERATOR_BATCH_NORMALIZATION = 72,
  DML_OPERATOR_ACTIVATION_SHRINK = 90,
  DML_OPERATOR_ACTIVATION_CELU = 128,
  DML_OPERATOR_ELEMENT_WISE_CLIP1 = 153,
  DML_OPERATOR_ACTIVATION_GELU = 157,
  DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1 = 159,
};

enum DML_FEATURE_LEVEL : std::int32_t {
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

struct DML_BUFFER_TENSOR_DESC {
  DML_TENSOR_DATA_TYPE DataType;
  DML_TENSOR_FLAGS Flags;
  std::uint32_t DimensionCount;
  const std::uint32_t* Sizes;
  const std::uint32_t* Strides;  // may be null
  std::uint64_t TotalTensorSizeInBytes;
  std::uint32_t GuaranteedBaseOffsetAlignment;
};

struct DML_TENSOR_DESC {
  DML_TENSOR_TYPE Type;
  const void* Desc;  // a DML_BUFFER_TENSOR_DESC
};

struct DML_OPERATOR_DESC {
  DML_OPERATOR_TYPE Type;
  const void* Desc;  // the operator's own struct
};

struct DML_SCALE_BIAS {
  float Scale;
  float Bias;
};

union DML_SCALAR_UNION {
  unsigned char Bytes[8];
  std::int8_t Int8;
  std::uint8_t UInt8;
  std::int16_t Int16;
  std::uint16_t UInt16;
  std::int32_t Int32;
  std::uint32_t UInt32;
  std::int64_t Int64;
  std::uint64_t UInt64;
  float Float32;
  double Float64;
};

struct DML_ELEMENT_WISE_CLIP_OPERATOR_DESC {
  const DML_TENSOR_DESC* InputTensor;
  const DML_TENSOR_DESC* OutputTensor;
  const DML_SCALE_BIAS* ScaleBias;  // may be null
  float Min;
  float Max;
};

struct DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC {
  const DML_TENSOR_DESC* InputTensor;
  const DML_TENSOR_DESC* OutputTensor;
  const DML_SCALE_BIAS* ScaleBias;  // may be null
  DML_TENSOR_DATA_TYPE MinMaxDataType;
  DML_SCALAR_UNION Min;
  DML_SCALAR_UNION Max;
};

struct DML_BATCH_NORMALIZATION_OPERATOR_DESC {
  const DML_TENSOR_DESC* InputTensor;
  const DML_TENSOR_DESC* MeanTensor;
  const DML_TENSOR_DESC* VarianceTensor;
  const DML_TENSOR_DESC* ScaleTensor;
  const DML_TENSOR_DESC* BiasTensor;
  const DML_TENSOR_DESC* OutputTensor;
  std::int32_t Spatial;
  float Epsilon;
  const DML_OPERATOR_DESC* FusedActivation;  // may be null
};

struct DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC {
  const DML_TENSOR_DESC* InputTensor;
  const DML_TENSOR_DESC* OutputTensor;
  std::uint32_t AxisCount;
  const std::uint32_t* Axes;
};

// The others have two tensors, and then 0, 1 or 2 numbers.
#define DMLOPS_DIRECTML_STRUCT(name, ...)        \
  struct DML_ACTIVATION_##name##_OPERATOR_DESC { \
    const DML_TENSOR_DESC* InputTensor;          \
    const DML_TENSOR_DESC* OutputTensor;         \
    __VA_ARGS__                                  \
  }
DMLOPS_DIRECTML_STRUCT(LOG_SOFTMAX, );
DMLOPS_DIRECTML_STRUCT(ELU, float Alpha;);
DMLOPS_DIRECTML_STRUCT(HARD_SIGMOID, float Alpha; float Beta;);
DMLOPS_DIRECTML_STRUCT(IDENTITY, );
DMLOPS_DIRECTML_STRUCT(LEAKY_RELU, float Alpha;);
DMLOPS_DIRECTML_STRUCT(LINEAR, float Alpha; float Beta;);
DMLOPS_DIRECTML_STRUCT(PARAMETRIC_SOFTPLUS, float Alpha; float Beta;);
DMLOPS_DIRECTML_STRUCT(RELU, );
DMLOPS_DIRECTML_STRUCT(SCALED_ELU, float Alpha; float Gamma;);
DMLOPS_DIRECTML_STRUCT(SCALED_TANH, float Alpha; float Beta;);
DMLOPS_DIRECTML_STRUCT(SIGMOID, );
DMLOPS_DIRECTML_STRUCT(SOFTPLUS, float Steepness;);
DMLOPS_DIRECTML_STRUCT(SOFTSIGN, );
DMLOPS_DIRECTML_STRUCT(TANH, );
DMLOPS_DIRECTML_STRUCT(THRESHOLDED_RELU, float Alpha;);
DMLOPS_DIRECTML_STRUCT(SHRINK, float Bias; float Threshold;);
DMLOPS_DIRECTML_STRUCT(CELU, float Alpha;);
DMLOPS_DIRECTML_STRUCT(GELU, );
#undef DMLOPS_DIRECTML_STRUCT
// NOLINTEND(readability-identifier-naming)
