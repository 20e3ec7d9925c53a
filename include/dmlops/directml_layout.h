// Asserts the sizes and offsets of DirectML's structs on 64-bit processors, for the declarations in
// effect: Microsoft's, or those of directml_types.h.
#pragma once

#include <cstddef>

#include "dmlops/directml_types.h"

// Skips feature levels that DML_TARGET_VERSION excludes from Microsoft's header.
#if defined(DML_TARGET_VERSION)
#define DMLOPS_DIRECTML_TARGET DML_TARGET_VERSION
#else
#define DMLOPS_DIRECTML_TARGET 0x1000
#endif

#define DMLOPS_SIZE(type, size) \
  static_assert(sizeof(type) == (size), #type " has not the size that dmlops was built for")
#define DMLOPS_AT(type, field, offset)             \
  static_assert(offsetof(type, field) == (offset), \
                #type "::" #field " is not where dmlops was built to find it")

DMLOPS_SIZE(void*, 8);
DMLOPS_SIZE(DML_TENSOR_DATA_TYPE, 4);
DMLOPS_SIZE(DML_TENSOR_FLAGS, 4);
DMLOPS_SIZE(DML_TENSOR_TYPE, 4);
DMLOPS_SIZE(DML_OPERATOR_TYPE, 4);

DMLOPS_SIZE(DML_BUFFER_TENSOR_DESC, 48);
DMLOPS_AT(DML_BUFFER_TENSOR_DESC, DataType, 0);
DMLOPS_AT(DML_BUFFER_TENSOR_DESC, Flags, 4);
DMLOPS_AT(DML_BUFFER_TENSOR_DESC, DimensionCount, 8);
DMLOPS_AT(DML_BUFFER_TENSOR_DESC, Sizes, 16);
DMLOPS_AT(DML_BUFFER_TENSOR_DESC, Strides, 24);
DMLOPS_AT(DML_BUFFER_TENSOR_DESC, TotalTensorSizeInBytes, 32);
DMLOPS_AT(DML_BUFFER_TENSOR_DESC, GuaranteedBaseOffsetAlignment, 40);

DMLOPS_SIZE(DML_TENSOR_DESC, 16);
DMLOPS_AT(DML_TENSOR_DESC, Type, 0);
DMLOPS_AT(DML_TENSOR_DESC, Desc, 8);

DMLOPS_SIZE(DML_OPERATOR_DESC, 16);
DMLOPS_AT(DML_OPERATOR_DESC, Type, 0);
DMLOPS_AT(DML_OPERATOR_DESC, Desc, 8);

DMLOPS_SIZE(DML_SCALE_BIAS, 8);
DMLOPS_AT(DML_SCALE_BIAS, Scale, 0);
DMLOPS_AT(DML_SCALE_BIAS, Bias, 4);

#if DMLOPS_DIRECTML_TARGET >= 0x2000
DMLOPS_SIZE(DML_FEATURE_LEVEL, 4);
#endif

#include "dmlops/directml_operators_layout.h"

#undef DMLOPS_AT
#undef DMLOPS_SIZE
