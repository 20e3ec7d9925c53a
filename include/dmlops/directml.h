// DirectML's own C structs as input, for programs written for Windows.
//
// If Microsoft's <DirectML.h> has been included before, its declarations are used, otherwise those
// of directml_types.h, which have the same names and layouts. A program includes <DirectML.h> first
// or not at all.
#pragma once

#ifndef __cplusplus
#error "dmlops/directml.h is a C++ header; C programs include dmlops/dmlops.h"
#endif

#if !defined(DIRECTML_H) && !defined(__directml_h__) && !defined(DMLOPS_NO_WINDOWS_TYPES)
#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming): names of Windows. If Windows'
// own headers are included, these typedefs repeat theirs, which C++ allows.
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
// NOLINTEND(readability-identifier-naming)
#endif

#include <vector>

#include "dmlops/device.hpp"
#include "dmlops/directml_layout.h"

namespace dmlops {

/// Converts a DML_OPERATOR_DESC, with the structs that it points to, to a descriptor of this
/// library that holds no pointer to them. Refuses null pointers, counts and types with which the
/// structs cannot be read; validate() checks all other rules.
///
/// Reads at most DML_TENSOR_DIMENSION_COUNT_MAX1 sizes, strides and axes, even if counts are
/// larger. \throws ValidationError for a tree that cannot be read
DMLOPS_API OperatorDesc to_operator_desc(const DML_OPERATOR_DESC& desc);

/// Converts a DML_TENSOR_DESC.
/// \throws ValidationError for one that cannot be read
DMLOPS_API BufferTensorDesc to_tensor_desc(const DML_BUFFER_TENSOR_DESC& desc);

/// Device(level).compile() of a DML_OPERATOR_DESC.
/// \throws ValidationError for a descriptor that the level does not accept
/// \throws BindingError for an initial binding that breaks a rule
inline CompiledOperator compile(const DML_OPERATOR_DESC& desc,
                                FeatureLevel level = FeatureLevel::level_6_4,
                                const std::vector<ConstBinding>& initial = {}) {
  return Device(level).compile(to_operator_desc(desc), initial);
}

/// Checks a DML_OPERATOR_DESC.
/// \throws ValidationError if the level does not accept it
inline void validate(const DML_OPERATOR_DESC& desc, FeatureLevel level) {
  validate(to_operator_desc(desc), level);
}

/// Returns the lowest feature level that accepts a DML_OPERATOR_DESC.
/// \throws ValidationError if no level accepts it
inline FeatureLevel required_feature_level(const DML_OPERATOR_DESC& desc) {
  return required_feature_level(to_operator_desc(desc));
}

/// DMLCalcBufferTensorSize; TotalTensorSizeInBytes may still be 0.
/// \throws ValidationError for a rank, size or stride that no tensor can have
inline std::uint64_t calc_buffer_tensor_size(const DML_BUFFER_TENSOR_DESC& desc) {
  return calc_buffer_tensor_size(to_tensor_desc(desc));
}

#if DMLOPS_DIRECTML_TARGET >= 0x2000  // older versions of Microsoft's header lack feature levels

/// Device(level).compile() of a DML_OPERATOR_DESC.
/// \throws ValidationError for a descriptor that the level does not accept
/// \throws BindingError for an initial binding that breaks a rule
inline CompiledOperator compile(const DML_OPERATOR_DESC& desc, DML_FEATURE_LEVEL level,
                                const std::vector<ConstBinding>& initial = {}) {
  return compile(desc, static_cast<FeatureLevel>(level), initial);
}

/// Checks a DML_OPERATOR_DESC.
/// \throws ValidationError if the level does not accept it
inline void validate(const DML_OPERATOR_DESC& desc, DML_FEATURE_LEVEL level) {
  validate(desc, static_cast<FeatureLevel>(level));
}

#endif

}  // namespace dmlops

/// DirectML's helper function, in 64-bit arithmetic: `sizes` and `strides` are arrays of
/// `dimensionCount` numbers, and `strides` may be null. A template, so that overload resolution
/// prefers a definition that a program has copied from DirectML's documentation. \throws
/// ValidationError for a rank, size or stride that no tensor can have
// NOLINTBEGIN(readability-identifier-naming): DirectML's names
template <class = void>
std::uint64_t DMLCalcBufferTensorSize(DML_TENSOR_DATA_TYPE dataType, std::uint32_t dimensionCount,
                                      const std::uint32_t* sizes, const std::uint32_t* strides) {
  DML_BUFFER_TENSOR_DESC desc = {};
  desc.DataType = dataType;
  desc.DimensionCount = dimensionCount;
  desc.Sizes = sizes;
  desc.Strides = strides;
  return dmlops::calc_buffer_tensor_size(desc);
}
// NOLINTEND(readability-identifier-naming)
