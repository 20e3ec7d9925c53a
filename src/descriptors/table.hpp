// DirectML's operators, from its documentation: names, fields, data types and ranks per feature
// level.
#pragma once

#include <string>
#include <vector>

#include "dmlops/descriptors.hpp"

namespace dmlops {

// Operators with the same rules.
enum class Family { clip, clip1, activation, batch_normalization, log_softmax, log_softmax1 };

using TypeSet = std::uint32_t;  // bit i: the DataType of value i

// Ranks and data types that a feature level adds.
struct Support {
  FeatureLevel since;
  std::uint32_t min_rank, max_rank;
  TypeSet types;
};

struct OperatorInfo {
  static constexpr int kMaxSupports = 4;

  OperatorType type;
  const char* name;  // the descriptor's name: "ElementWiseClipOperatorDesc"
  Family family;
  bool in_place;
  Support supports[kMaxSupports];  // oldest first; unused ones have no types
  Activation activation = Activation::identity;

  FeatureLevel since() const { return supports[0].since; }
  int tensor_count() const { return family == Family::batch_normalization ? 6 : 2; }
  int input_count() const { return tensor_count() - 1; }
  bool fusable() const { return family == Family::activation; }
};

// Returns null if dmlops lacks the operator.
const OperatorInfo* find_operator(OperatorType type);
// Returns the row of an operator; throws ValidationError if dmlops lacks it.
const OperatorInfo& known_operator(OperatorType type);

// "mean_tensor"; the last one is the output.
const char* tensor_name(const OperatorInfo& op, int index);

// The kind of a struct's field. OperatorDesc has the n-th tensor of a struct in tensors[n], the
// n-th number in numbers[n], the n-th scalar in scalars[n].
enum class FieldKind { tensor, number, scalar, data_type, scale_bias, boolean, axes, activation };
struct Field {
  const char* name;
  FieldKind kind;
};
// In the order of the struct.
std::vector<Field> fields(const OperatorInfo& op);

constexpr std::size_t kFeatureLevelCount = 15;
extern const FeatureLevel kFeatureLevels[kFeatureLevelCount];  // lowest first
std::string name(FeatureLevel level);                          // "DML_FEATURE_LEVEL_5_1"
std::string number(FeatureLevel level);                        // "5_1"

std::string upper_name(DataType type);  // "FLOAT32"
std::string types_text(TypeSet types);  // "FLOAT32, FLOAT16"

}  // namespace dmlops
