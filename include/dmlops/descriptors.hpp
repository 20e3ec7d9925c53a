// DirectML's descriptors: tensors, operators, feature levels, and their validation.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dmlops/operator_types.hpp"
#include "dmlops/operators.hpp"
#include "dmlops/tensor.hpp"

namespace dmlops {

/// The values of DML_FEATURE_LEVEL.
enum class FeatureLevel : std::uint32_t {
  level_1_0 = 0x1000,
  level_2_0 = 0x2000,
  level_2_1 = 0x2100,
  level_3_0 = 0x3000,
  level_3_1 = 0x3100,
  level_4_0 = 0x4000,
  level_4_1 = 0x4100,
  level_5_0 = 0x5000,
  level_5_1 = 0x5100,
  level_5_2 = 0x5200,
  level_6_0 = 0x6000,
  level_6_1 = 0x6100,
  level_6_2 = 0x6200,
  level_6_3 = 0x6300,
  level_6_4 = 0x6400,
};

/// The values of DML_TENSOR_FLAGS.
enum class TensorFlags : std::uint32_t {
  none = 0,
  owned_by_dml = 1,  ///< an input that is bound once, when the operator is compiled
};

using TensorDataType = DataType;  ///< DirectML's name of the type

/// DML_BUFFER_TENSOR_DESC. Only the first `dimension_count` entries of the arrays are used.
struct BufferTensorDesc {
  using Dimensions = std::array<std::uint32_t, kMaxRank>;  ///< sizes or strides

  BufferTensorDesc() = default;
  /// A packed tensor, or one with as many `strides` as sizes. More than kMaxRank sizes make a
  /// descriptor that no operator accepts.
  /// \throws ValidationError if there are not as many strides as sizes
  DMLOPS_API BufferTensorDesc(TensorDataType data_type_, const std::vector<std::uint32_t>& sizes_,
                              const std::vector<std::uint32_t>& strides_ = {});

  TensorDataType data_type = TensorDataType::unknown;  ///< of the elements
  TensorFlags flags = TensorFlags::none;               ///< ownership of the memory
  std::uint32_t dimension_count = 0;                   ///< 1 to kMaxRank
  Dimensions sizes = {};                               ///< each at least 1
  std::optional<Dimensions> strides;  ///< in elements; none: packed, in row-major order
  std::optional<std::uint64_t> total_tensor_size_in_bytes;  ///< none: the minimum size
  std::uint32_t guaranteed_base_offset_alignment = 0;       ///< 0, or a power of two
};

/// DML_SCALAR_UNION: the bytes of a number whose data type another field gives.
struct ScalarUnion {
  std::uint64_t bits = 0;  ///< the number is at the beginning
};

/// Converts a number to the bytes of a data type: exactly to integers, rounded to floating point.
/// \throws ValidationError if the data type does not hold the number, or rounds it to infinity
DMLOPS_API ScalarUnion scalar_union(TensorDataType data_type, const Scalar& value);

/// \cond
// The containers in OperatorDesc have another layout in libstdc++'s debug mode. The tag changes the
// names of the functions that take one, so that program and library of different modes do not link.
#if defined(_GLIBCXX_DEBUG)
#define DMLOPS_CONTAINER_MODE __attribute__((abi_tag("glibcxx_debug")))
#else
#define DMLOPS_CONTAINER_MODE
#endif
/// \endcond

/// DML_OPERATOR_DESC of any operator, with the struct that it points to. Members that the operator
/// lacks are ignored. The structs of operator_descs.hpp are easier to write, and convert to
/// OperatorDesc.
struct DMLOPS_CONTAINER_MODE OperatorDesc {
  static constexpr int kMaxTensors = 8;  ///< the tensors of BATCH_NORMALIZATION_GRAD

  OperatorType type = OperatorType::invalid;  ///< the operator
  /// In the order of the struct's fields, outputs last. Empty if the operator is fused.
  std::array<std::optional<BufferTensorDesc>, kMaxTensors> tensors;
  /// The FLOAT fields in their order: Min, Max of CLIP, Epsilon, an activation's parameters.
  std::array<float, 2> numbers = {};
  TensorDataType min_max_data_type = TensorDataType::unknown;  ///< CLIP1, CLIP_GRAD1
  std::array<ScalarUnion, 2> scalars;                          ///< CLIP1, CLIP_GRAD1: Min, Max
  std::optional<ScaleBias> scale_bias;                         ///< CLIP, CLIP1
  /// The BOOL fields in their order: Spatial of BATCH_NORMALIZATION; CrossChannel and
  /// NormalizeVariance, or UseMean and UseVariance, of mean-variance normalization.
  std::array<bool, 2> booleans = {true, true};
  std::vector<std::uint32_t> axes;  ///< softmax family and normalization over any axes
  std::shared_ptr<const OperatorDesc> fused_activation;  ///< normalizations
  /// True if error messages have DirectML's names: "InputTensor". Set by to_operator_desc().
  bool directml_names = false;
};

#undef DMLOPS_CONTAINER_MODE

/// Checks a descriptor.
/// \throws ValidationError if the level does not accept it
DMLOPS_API void validate(const OperatorDesc& desc, FeatureLevel level);

/// Returns the lowest feature level that accepts a descriptor.
/// \throws ValidationError if no level accepts it
DMLOPS_API FeatureLevel required_feature_level(const OperatorDesc& desc);

/// DMLCalcBufferTensorSize: returns the bytes from the first element to the last, rounded up to a
/// multiple of 4. \throws ValidationError for a rank, size or stride that no tensor can have
DMLOPS_API std::uint64_t calc_buffer_tensor_size(const BufferTensorDesc& tensor);

}  // namespace dmlops
