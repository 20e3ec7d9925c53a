// What DirectML's documents say of each operator: names, fields, data types and ranks per feature
// level.
#pragma once

#include <string>
#include <vector>

#include "dmlops/descriptors.hpp"

namespace dmlops {

// Operators that differ in little but the name share their rules.
enum class Family { clip, clip1, activation, batch_normalization, log_softmax, log_softmax1 };

using TypeSet = std::uint32_t;  // bit i: the DataType of value i

// From a feature level on, tensors of these ranks and data types are accepted, beside what was
// before.
struct Support {
  FeatureLevel since;
  std::uint32_t min_rank, max_rank;
  TypeSet types;
};

struct OperatorInfo {
  static constexpr int kMaxSupports = 4;

  OperatorType type;
  const char* name;  // of the descriptor: "ElementWiseClipOperatorDesc"
  Family family;
  bool in_place;
  Support supports[kMaxSupports];  // oldest first; unused ones have no types
  Activation activation = Activation::identity;

  FeatureLevel since() const { return supports[0].since; }
  int tensor_count() const { return family == Family::batch_normalization ? 6 : 2; }
  int input_count() const { return tensor_count() - 1; }
  bool fusable() const { return family == Family::activation; }
};

// Null where dmlops does not have the operator.
const OperatorInfo* find_operator(OperatorType type);
// The same; ValidationError where find_operator gives null.
const OperatorInfo& known_operator(OperatorType type);

// "mean_tensor"; the last one is the output.
const char* tensor_name(const OperatorInfo& op, int index);

// What the fields of a struct hold, and where OperatorDesc keeps it: the n-th tensor of a struct is
// tensors[n], the n-th number numbers[n], the n-th scalar scalars[n].
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
