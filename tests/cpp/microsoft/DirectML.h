// Stands in for Microsoft's <DirectML.h>: its guard, its conditions on DML_TARGET_VERSION, and the
// declarations that the tests need, written from the documents. Enumerations without a fixed type,
// as there.
#pragma once
#define DIRECTML_H  // NOLINT(readability-identifier-naming)

#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming): DirectML's names
typedef unsigned int UINT;
typedef int BOOL;
typedef float FLOAT;
typedef std::uint64_t UINT64;

enum DML_TENSOR_DATA_TYPE {
  DML_TENSOR_DATA_TYPE_UNKNOWN,
  DML_TENSOR_DATA_TYPE_FLOAT32,
  DML_TENSOR_DATA_TYPE_FLOAT16,
  DML_TENSOR_DATA_TYPE_INT64 = 11,
};
enum DML_TENSOR_TYPE { DML_TENSOR_TYPE_INVALID, DML_TENSOR_TYPE_BUFFER };
enum DML_TENSOR_FLAGS { DML_TENSOR_FLAG_NONE, DML_TENSOR_FLAG_OWNED_BY_DML };
struct DML_BUFFER_TENSOR_DESC {
  DML_TENSOR_DATA_TYPE DataType;
  DML_TENSOR_FLAGS Flags;
  UINT DimensionCount;
  const UINT* Sizes;
  const UINT* Strides;
  UINT64 TotalTensorSizeInBytes;
  UINT GuaranteedBaseOffsetAlignment;
};
struct DML_TENSOR_DESC {
  DML_TENSOR_TYPE Type;
  const void* Desc;
};
enum DML_OPERATOR_TYPE {
  DML_OPERATOR_INVALID,
  DML_OPERATOR_ELEMENT_WISE_CLIP = 8,
  DML_OPERATOR_ACTIVATION_HARDMAX = 36,
  DML_OPERATOR_ACTIVATION_LOG_SOFTMAX = 41,
  DML_OPERATOR_ACTIVATION_PARAMETERIZED_RELU = 42,
  DML_OPERATOR_ACTIVATION_SOFTMAX = 48,
  DML_OPERATOR_BATCH_NORMALIZATION = 72,
  DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION = 73,
#if DML_TARGET_VERSION >= 0x2100
  DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1 = 115,
#endif
#if DML_TARGET_VERSION >= 0x3000
  DML_OPERATOR_ACTIVATION_RELU_GRAD = 129,
#endif
#if DML_TARGET_VERSION >= 0x3100
  DML_OPERATOR_ELEMENT_WISE_CLIP_GRAD = 142,
  DML_OPERATOR_BATCH_NORMALIZATION_GRAD = 146,
#endif
#if DML_TARGET_VERSION >= 0x4100
  DML_OPERATOR_BATCH_NORMALIZATION_TRAINING = 151,
  DML_OPERATOR_BATCH_NORMALIZATION_TRAINING_GRAD = 152,
#endif
#if DML_TARGET_VERSION >= 0x5000
  DML_OPERATOR_ELEMENT_WISE_CLIP1 = 153,
  DML_OPERATOR_ELEMENT_WISE_CLIP_GRAD1 = 154,
#endif
#if DML_TARGET_VERSION >= 0x5100
  DML_OPERATOR_ACTIVATION_SOFTMAX1 = 158,
  DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1 = 159,
  DML_OPERATOR_ACTIVATION_HARDMAX1 = 160,
#endif
#if DML_TARGET_VERSION >= 0x6300
  DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION2 = 171,
#endif
  // begin: enumerators, by tools/generate.py from tests/activation_rows.py
  DML_OPERATOR_ACTIVATION_ELU = 35,
  DML_OPERATOR_ACTIVATION_HARD_SIGMOID = 37,
  DML_OPERATOR_ACTIVATION_IDENTITY = 38,
  DML_OPERATOR_ACTIVATION_LEAKY_RELU = 39,
  DML_OPERATOR_ACTIVATION_LINEAR = 40,
  DML_OPERATOR_ACTIVATION_PARAMETRIC_SOFTPLUS = 43,
  DML_OPERATOR_ACTIVATION_RELU = 44,
  DML_OPERATOR_ACTIVATION_SCALED_ELU = 45,
  DML_OPERATOR_ACTIVATION_SCALED_TANH = 46,
  DML_OPERATOR_ACTIVATION_SIGMOID = 47,
  DML_OPERATOR_ACTIVATION_SOFTPLUS = 49,
  DML_OPERATOR_ACTIVATION_SOFTSIGN = 50,
  DML_OPERATOR_ACTIVATION_TANH = 51,
  DML_OPERATOR_ACTIVATION_THRESHOLDED_RELU = 52,
#if DML_TARGET_VERSION >= 0x2000
  DML_OPERATOR_ACTIVATION_SHRINK = 90,
#endif
#if DML_TARGET_VERSION >= 0x3000
  DML_OPERATOR_ACTIVATION_CELU = 128,
#endif
#if DML_TARGET_VERSION >= 0x5100
  DML_OPERATOR_ACTIVATION_GELU = 157,
#endif
#if DML_TARGET_VERSION >= 0x6200
  DML_OPERATOR_ACTIVATION_HARD_SWISH = 168,
  DML_OPERATOR_ACTIVATION_SWISH = 167,
#endif
  // end: enumerators
};
struct DML_SCALE_BIAS {
  FLOAT Scale, Bias;
};
struct DML_OPERATOR_DESC {
  DML_OPERATOR_TYPE Type;
  const void* Desc;
};
struct DML_ELEMENT_WISE_CLIP_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  const DML_SCALE_BIAS* ScaleBias;
  FLOAT Min, Max;
};
struct DML_BATCH_NORMALIZATION_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *MeanTensor, *VarianceTensor, *ScaleTensor, *BiasTensor,
      *OutputTensor;
  BOOL Spatial;
  FLOAT Epsilon;
  const DML_OPERATOR_DESC* FusedActivation;
};
struct DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *ScaleTensor, *BiasTensor, *OutputTensor;
  BOOL CrossChannel, NormalizeVariance;
  FLOAT Epsilon;
  const DML_OPERATOR_DESC* FusedActivation;
};
struct DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
};
typedef DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC DML_ACTIVATION_SOFTMAX_OPERATOR_DESC;
typedef DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC DML_ACTIVATION_HARDMAX_OPERATOR_DESC;
struct DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *SlopeTensor, *OutputTensor;
};
// begin: structs, by tools/generate.py from tests/activation_rows.py
struct DML_ACTIVATION_ELU_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Alpha;
};
struct DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Alpha, Beta;
};
struct DML_ACTIVATION_IDENTITY_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
};
struct DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Alpha;
};
struct DML_ACTIVATION_LINEAR_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Alpha, Beta;
};
struct DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Alpha, Beta;
};
struct DML_ACTIVATION_RELU_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
};
struct DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Alpha, Gamma;
};
struct DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Alpha, Beta;
};
struct DML_ACTIVATION_SIGMOID_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
};
struct DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Steepness;
};
struct DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
};
struct DML_ACTIVATION_TANH_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
};
struct DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Alpha;
};
#if DML_TARGET_VERSION >= 0x2000
struct DML_ACTIVATION_SHRINK_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Bias, Threshold;
};
#endif
#if DML_TARGET_VERSION >= 0x3000
struct DML_ACTIVATION_CELU_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Alpha;
};
#endif
#if DML_TARGET_VERSION >= 0x5100
struct DML_ACTIVATION_GELU_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
};
#endif
#if DML_TARGET_VERSION >= 0x6200
struct DML_ACTIVATION_HARD_SWISH_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT Alpha, Beta;
};
struct DML_ACTIVATION_SWISH_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  FLOAT SigmoidInputScale;
};
#endif
// end: structs
#if DML_TARGET_VERSION >= 0x2000
enum DML_FEATURE_LEVEL { DML_FEATURE_LEVEL_1_0 = 0x1000, DML_FEATURE_LEVEL_2_0 = 0x2000 };
#endif
#if DML_TARGET_VERSION >= 0x2100
struct DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *ScaleTensor, *BiasTensor, *OutputTensor;
  UINT AxisCount;
  const UINT* Axes;
  BOOL NormalizeVariance;
  FLOAT Epsilon;
  const DML_OPERATOR_DESC* FusedActivation;
};
#endif
#if DML_TARGET_VERSION >= 0x3000
struct DML_ACTIVATION_RELU_GRAD_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *InputGradientTensor, *OutputGradientTensor;
};
#endif
#if DML_TARGET_VERSION >= 0x3100
struct DML_ELEMENT_WISE_CLIP_GRAD_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *InputGradientTensor, *OutputGradientTensor;
  FLOAT Min, Max;
};
struct DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *InputGradientTensor, *MeanTensor, *VarianceTensor,
      *ScaleTensor, *OutputGradientTensor, *OutputScaleGradientTensor, *OutputBiasGradientTensor;
  FLOAT Epsilon;
};
#endif
#if DML_TARGET_VERSION >= 0x4100
struct DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *ScaleTensor, *BiasTensor, *FusedAddTensor, *OutputTensor,
      *OutputMeanTensor, *OutputVarianceTensor;
  FLOAT Epsilon;
  const DML_OPERATOR_DESC* FusedActivation;
};
typedef DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC
    DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC;
#endif
#if DML_TARGET_VERSION >= 0x5000
union DML_SCALAR_UNION {
  unsigned char Bytes[8];
  std::int64_t Int64;
};
struct DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  const DML_SCALE_BIAS* ScaleBias;
  DML_TENSOR_DATA_TYPE MinMaxDataType;
  DML_SCALAR_UNION Min, Max;
};
struct DML_ELEMENT_WISE_CLIP_GRAD1_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *InputGradientTensor, *OutputGradientTensor;
  DML_TENSOR_DATA_TYPE MinMaxDataType;
  DML_SCALAR_UNION Min, Max;
};
#endif
#if DML_TARGET_VERSION >= 0x5100
struct DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *OutputTensor;
  UINT AxisCount;
  const UINT* Axes;
};
typedef DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC;
typedef DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC DML_ACTIVATION_HARDMAX1_OPERATOR_DESC;
#endif
#if DML_TARGET_VERSION >= 0x6300
struct DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC {
  const DML_TENSOR_DESC *InputTensor, *ScaleTensor, *BiasTensor, *OutputTensor;
  UINT AxisCount;
  const UINT* Axes;
  BOOL UseMean, UseVariance;
  FLOAT Epsilon;
  const DML_OPERATOR_DESC* FusedActivation;
};
#endif
// NOLINTEND(readability-identifier-naming)
